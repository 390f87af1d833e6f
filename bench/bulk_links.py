"""P7: how many links a second one bulk call makes, and how many single calls do, through the API of
a real server.

Every call of 1,000 rows is one transaction with owners and history; the second line of each
database adds a name and two tags to every row. Figures are the best of several calls and the CPU
time of the server's processes per link. The bar is 5,000 links a second in bulk.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import make_url, text

from refract.core.db.session import Database
from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from tests import make
from tools.serving import Served, serving

BAR = 5_000
ROWS = 1_000
SINGLE = 200
UNLIMITED = {"key_requests_per_hour": "unlimited", "creates_per_hour": "unlimited"}


@dataclass(frozen=True)
class Figures:
    """The best rate, and what a link cost on average."""

    rate: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.rate:>8,.0f} links/s  {self.cpu:>6,.0f} µs CPU each"


class Caller:
    """Asks one server, and looks at the CPU time of its processes."""

    def __init__(self, served: Served, key: str) -> None:
        self._url = f"{served.url}/api/v1/links"
        self._key = key
        self._process = psutil.Process(served.process.pid)

    def measure(self, path: str, bodies: list[Any], links: int) -> Figures:
        """Post each body in turn; `links` is how many each of them makes."""
        best, spent = 0.0, self._cpu()
        for body in bodies:
            raw = json.dumps(body).encode()
            start = time.perf_counter()
            answer = self._post(path, raw)
            best = max(best, links / (time.perf_counter() - start))
            if answer.get("created", 1) != links:
                raise SystemExit(json.dumps(answer)[:2000])
        return Figures(best, (self._cpu() - spent) * 1e6 / (links * len(bodies)))

    def _post(self, path: str, raw: bytes) -> dict[str, Any]:
        headers = {"X-API-Key": self._key, "Content-Type": "application/json"}
        with urllib.request.urlopen(  # noqa: S310 - our own server
            urllib.request.Request(self._url + path, raw, headers)  # noqa: S310 - our own server
        ) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def _cpu(self) -> float:
        times = [
            process.cpu_times()
            for process in (self._process, *self._process.children(recursive=True))
        ]
        return sum(one.user + one.system for one in times)


def _rows(call: int, *, dressed: bool) -> dict[str, Any]:
    extra = {"tags": ["import", "2027"], "title": "A page"} if dressed else {}
    return {
        "links": [
            {
                "destination": f"https://example.com/{call}/{row}",
                **extra,
                **({"names": [f"page-{call}-{row}"]} if dressed else {}),
            }
            for row in range(ROWS)
        ]
    }


async def _key(settings: Settings) -> str:
    async with open_runtime(settings) as rt, rt.db.write() as session:
        return await make.key(session, rt, await make.person(session, rt))


async def _empty_database(dialect: str, folder: Path) -> str | None:
    """The URL of a database of our own on the server that `make bench` started.

    None for SQLite's file, which is new anyway.
    """
    if dialect == "sqlite":
        return None
    server = os.environ[f"REFRACT_TEST_{dialect.upper()}_URL"]
    admin = Database(Settings(data_dir=folder, database_url=server))
    async with admin.engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        name = f"bench_bulk_{os.getpid()}"
        await autocommit.execute(text(f"CREATE DATABASE {name}"))
    await admin.close()
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def measure(dialect: str, calls: int) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory() as folder:
        url = asyncio.run(_empty_database(dialect, Path(folder)))
        given: dict[str, Any] = {**UNLIMITED, **({"database_url": url} if url else {})}
        with serving(Path(folder) / "data", **given) as served:
            caller = Caller(served, asyncio.run(_key(Settings(data_dir=served.data_dir, **given))))
            return {
                "bulk": caller.measure(
                    "/bulk", [_rows(call, dressed=False) for call in range(calls)], ROWS
                ),
                "bulk, named and tagged": caller.measure(
                    "/bulk", [_rows(100 + call, dressed=True) for call in range(calls)], ROWS
                ),
                "single": caller.measure(
                    "",
                    [{"destination": f"https://example.com/{number}"} for number in range(SINGLE)],
                    1,
                ),
            }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make bench bulk_links", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--calls", type=int, default=10, help="bulk calls of each kind")
    parser.add_argument("--databases", default="sqlite,postgresql,mysql")
    given = parser.parse_args(arguments)
    held = True
    for dialect in given.databases.split(","):
        found = measure(dialect, given.calls)
        for name, figures in found.items():
            print(f"{dialect:<11} {name:<24} {figures}")
        held = held and found["bulk"].rate >= BAR
    print(f"bar: {BAR:,} links a second in bulk: {'held' if held else 'MISSED'}")
    return 0 if held else 1
