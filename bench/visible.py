"""How long after its redirect is a click in the API, while two thousand others come every second?

    python -m bench visible [--rate N] [--seconds N] [--databases sqlite,postgresql]

A real server in its default role answers a steady stream of redirects over 50 links on several
connections. Beside it, once a second, a link that nobody else clicks is clicked once, and its
statistics are asked for until they show the click: that is the delay, with the asking itself in it.
The rate that was reached is printed, since on a busy machine it may be lower. The bar is 5 seconds
for every click.
"""

import argparse
import asyncio
import json
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench._common import AGENT, busy, table, write
from bench._runtime import own_database
from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from tests import make
from tools.serving import Served, serving

BAR = 5.0
LINKS = 50
CONNECTIONS = 8
UNLIMITED: dict[str, Any] = {"key_requests_per_hour": "unlimited", "creates_per_hour": "unlimited"}
_REQUEST = "GET /{} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: " + AGENT + "\r\n\r\n"


async def _prepare(settings: Settings, probes: int) -> tuple[str, list[int]]:
    async with open_runtime(settings) as rt, rt.db.write() as session:
        ada = await make.person(session, rt)
        for number in range(LINKS):
            await make.link(session, rt, ada, name=f"busy-{number}")
        watched = [
            (await make.link(session, rt, ada, name=f"watched-{number}")).id
            for number in range(probes)
        ]
        return await make.key(session, rt, ada), watched


async def _load(served: Served, rate: int, until: float) -> int:
    """A steady stream on one connection.

    Every tenth of a second as many requests as belong into it, pipelined.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", _port(served))
    answered, due = 0, time.monotonic()
    share = max(1, rate // 10)
    while time.monotonic() < until:
        writer.write(
            "".join(_REQUEST.format(f"busy-{number % LINKS}") for number in range(share)).encode()
        )
        for _ in range(share):
            await reader.readuntil(b"\r\n\r\n")
            answered += 1
        due += 0.1
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    writer.close()
    return answered


def _port(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


def _seen(served: Served, key: str, link: int) -> int:
    begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    url = f"{served.url}/api/v1/links/{link}/stats?granularity=hour&from={begin}"
    asked = urllib.request.Request(url, headers={"X-API-Key": key})  # noqa: S310
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - our own server
        return int(json.loads(answer.read())["totals"]["clicks"])


async def _probe(served: Served, key: str, number: int, link: int) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", _port(served))
    writer.write(_REQUEST.format(f"watched-{number}").encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.close()
    begun = time.monotonic()
    while not await asyncio.to_thread(_seen, served, key, link):  # noqa: ASYNC110 - polls a process
        await asyncio.sleep(0.25)
    return time.monotonic() - begun


async def _measure(served: Served, settings: Settings, rate: int, seconds: int) -> dict[str, Any]:
    key, watched = await _prepare(settings, seconds)
    until = time.monotonic() + seconds + 2
    load = [
        asyncio.create_task(_load(served, rate // CONNECTIONS, until)) for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(1)
    probes = []
    for number, link in enumerate(watched):
        probes.append(asyncio.create_task(_probe(served, key, number, link)))
        await asyncio.sleep(1)
    delays = sorted(await asyncio.gather(*probes))
    answered = sum(await asyncio.gather(*load))
    return {
        "rate": answered / (seconds + 2),
        "median": delays[len(delays) // 2],
        "longest": delays[-1],
        "clicks_watched": len(delays),
    }


def measure(dialect: str, rate: int, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        given = dict(UNLIMITED)
        if dialect != "sqlite":
            given["database_url"] = asyncio.run(own_database(dialect, Path(folder), "visible"))
        with serving(Path(folder) / "data", **given) as served:
            return asyncio.run(
                _measure(served, Settings(data_dir=served.data_dir, **given), rate, seconds)
            )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make bench visible", description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=2_000, help="redirects a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--databases", default="sqlite,postgresql")
    given = parser.parse_args(arguments)
    load, results = busy(), {}
    for dialect in given.databases.split(","):
        results[dialect] = measure(dialect, given.rate, given.seconds)
    lines = [
        [name, f"{one['rate']:,.0f}/s", f"{one['median']:.2f} s", f"{one['longest']:.2f} s"]
        for name, one in results.items()
    ]
    table(["database", "redirects", "median", "longest"], lines)
    held = all(one["longest"] <= BAR for one in results.values())
    print(f"bar: visible within {BAR:.0f} seconds: {'held' if held else 'MISSED'}")
    write("visible", "visible", load, results=results, held=held)
    return 0 if held else 1
