"""P3: the cold path.

A million links, asked for at random at 500 a second, with a table too small to help.

    python -m bench cold [--links N] [--rate R] [--seconds S] [--databases sqlite,postgresql]

The client keeps its timetable whatever the server does, so a slow answer delays nobody else's start
and waiting counts. One query per miss is read from the server's own figures. Times are of this
machine and its load, so the run says how long the server ran and how long it stood ready without
getting a core: where the second is not far below the first, p99 says nothing about the bar. Hits,
asked for afterwards, are shown for scale; they need a thirtieth of the CPU and so suffer far less
from a busy machine.
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import make_url, text

from bench._common import AGENT, busy, cpu_seconds, metrics, table, waited_seconds, write
from bench._links import make_links
from refract.core.db.session import Database
from refract.core.settings.model import Settings
from tools.serving import serving

CONNECTIONS = 32
HOT = 100


async def load(url: str, links: int, rate: int, seconds: int) -> list[float]:
    """Latency of each request in milliseconds, from the moment it was due."""
    parts = urlsplit(url)
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection(parts.hostname, parts.port))
    found: list[float] = []

    async def one(due: float, number: int) -> None:
        reader, writer = await free.get()
        writer.write(
            f"GET /s{number} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {AGENT}\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        found.append((time.perf_counter() - due) * 1000)
        if not head.startswith(b"HTTP/1.1 302"):
            raise SystemExit(f"/s{number} was answered with {head.splitlines()[0].decode()}")
        free.put_nowait((reader, writer))

    began = time.perf_counter()
    async with asyncio.TaskGroup() as requests:
        for turn in range(rate * seconds):
            due = began + turn / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            requests.create_task(one(due, random.randrange(links)))
    while not free.empty():
        free.get_nowait()[1].close()
    return sorted(found)


async def fresh_database(server: str) -> str:
    """An empty database beside the others on a server."""
    name = f"refract_bench_{os.getpid()}"
    await _on(server, f"CREATE DATABASE {name}")
    return make_url(server).set(database=name).render_as_string(hide_password=False)


async def _on(server: str, statement: str) -> None:
    db = Database(Settings(database_url=server))
    async with db.engine.connect() as connection:
        await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(
            text(statement)
        )
    await db.close()


def measure(kind: str, options: argparse.Namespace) -> dict[str, float]:
    server = os.environ.get(f"REFRACT_TEST_{kind.upper()}_URL", "")
    database = asyncio.run(fresh_database(server)) if kind != "sqlite" else None
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        data = Path(directory) / "data"
        print(f"{kind}: making {options.links} links", flush=True)
        make_links(data, options.links, database)
        more = {"database_url": database} if database else {}
        with serving(data, role="redirect", cached_links=1000, **more) as served:
            asyncio.run(load(served.url, options.links, options.rate, 2))
            pid = served.process.pid
            before, cost, waited = metrics(served.url), cpu_seconds(pid), waited_seconds(pid)
            latencies = asyncio.run(load(served.url, options.links, options.rate, options.seconds))
            cost, waited = cpu_seconds(pid) - cost, waited_seconds(pid) - waited
            after = metrics(served.url)
            asyncio.run(load(served.url, HOT, options.rate, 2))
            hot = asyncio.run(load(served.url, HOT, options.rate, options.seconds))
    if database:
        asyncio.run(_on(server, f"DROP DATABASE {make_url(database).database}"))
    asked = (
        after['refract_lookups_total{tier="database"}']
        - before['refract_lookups_total{tier="database"}']
    )
    hits = (
        after['refract_lookups_total{tier="memory"}']
        - before['refract_lookups_total{tier="memory"}']
    )
    return {
        "requests": len(latencies),
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[len(latencies) * 99 // 100],
        "hot_p99_ms": hot[len(hot) * 99 // 100],
        "most_ms": latencies[-1],
        "ran_s": cost,
        "waited_s": waited,
        "cpu_us": cost / len(latencies) * 1e6,
        "queries_per_miss": asked / (len(latencies) - hits),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench cold", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--databases", default="sqlite,postgresql")
    options = parser.parse_args(arguments)
    load_before = busy()
    found = {kind: measure(kind, options) for kind in options.databases.split(",")}
    print()
    figures = (
        "p50_ms",
        "p99_ms",
        "hot_p99_ms",
        "most_ms",
        "ran_s",
        "waited_s",
        "cpu_us",
        "queries_per_miss",
    )
    table(
        [
            "",
            "p50 ms",
            "p99 ms",
            "p99 ms of hits",
            "most ms",
            "ran s",
            "waited s",
            "µs CPU",
            "queries per miss",
        ],
        [[kind, *(f"{one[name]:.2f}" for name in figures)] for kind, one in found.items()],
    )
    print(f"P3 bar: p99 ≤ 10 ms at {options.rate}/s, one query per miss")
    write("cold", "P3", load_before, options=vars(options), databases=found)
    return (
        0
        if all(one["queries_per_miss"] == 1 and one["p99_ms"] <= 10 for one in found.values())
        else 1
    )
