"""P5: how many clicks a second one process takes from its spool into the database, with agent,
place and roll-ups.

    python -m bench ingest [--clicks N] [--databases sqlite,postgresql,mysql] [--profile]

Clicks as a busy minute leaves them: Zipf over 5,000 links, 300 agents, 20,000 networks, 200
referring pages, every twentieth private, every tenth with a campaign. A rate is by the clock of
this machine and its load; CPU per click is of the ingesting process alone. The bar is 20,000 clicks
a second on SQLite and on PostgreSQL; the cost depends on the spread, so a second line has 100
links.
"""

import argparse
import asyncio
import cProfile
import gc
import itertools
import os
import pstats
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, text

from bench._common import busy, table, write
from refract import migrations
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.spool.format import LINK_CLICK, PRIVATE, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.verify import reconcile
from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings

BAR = 20_000
AGENTS, NETWORKS, REFERRERS, CAMPAIGNS = 300, 20_000, 200, 20
TURN = 50
FIRST_ID = 100_000_000_000_000_000
_SYSTEMS = (
    "Windows NT 10.0; Win64; x64",
    "X11; Linux x86_64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "Linux; Android 14; Pixel 8",
)


def agents() -> list[bytes]:
    """Browsers of many versions on some systems, and the usual share of programs."""
    browsers = [
        f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.0.0"
        " Safari/537.36"
        for version, system in itertools.product(range(60, 128), _SYSTEMS)
    ]
    programs = [
        f"Mozilla/5.0 (compatible; Examplebot/{version}.0; +https://bots.example/{version})"
        for version in range(AGENTS)
    ]
    return [agent.encode() for agent in (browsers + programs)[:AGENTS]]


def frames(clicks: int, links: int, chance: random.Random) -> Iterator[bytes]:
    """Clicks that came at twenty thousand a second and end now."""
    weights = list(itertools.accumulate(1 / rank for rank in range(1, links + 1)))
    targets = chance.choices(range(links), cum_weights=weights, k=clicks)
    known = agents()
    networks = [chance.randrange(1 << 24).to_bytes(3, "big") for _ in range(NETWORKS)]
    pages = [
        f"https://site{number}.example/articles/{number}".encode() for number in range(REFERRERS)
    ]
    began = time.time_ns() - clicks * 50_000
    for number, target in enumerate(targets):
        query = (
            f"utm_source=mail&utm_campaign=c{chance.randrange(CAMPAIGNS)}".encode()
            if number % 10 == 0
            else b""
        )
        yield encode_frame(
            LINK_CLICK,
            FIRST_ID + target * (1 << 22),
            began + number * 50_000,
            PRIVATE if number % 20 == 7 else 0,
            chance.choice(networks),
            chance.choice(known),
            chance.choice(pages) if number % 3 else b"",
            query,
        )


def fill(root: Path, clicks: int, links: int) -> None:
    spool = SpoolWriter(root, node="bench", segment_bytes=8 << 20)
    waiting = frames(clicks, links, random.Random(5))
    while turn := list(itertools.islice(waiting, TURN)):
        spool.append(turn)
    spool.close()


async def _database(dialect: str, folder: Path) -> str | None:
    """A database of our own on the server that `make bench` started.

    None for SQLite's file, which is new anyway.
    """
    if dialect == "sqlite":
        return None
    server = os.environ[f"REFRACT_TEST_{dialect.upper()}_URL"]
    admin = Database(Settings(data_dir=folder, database_url=server))
    name = f"bench_ingest_{os.getpid()}"
    async with admin.engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.execute(text(f"DROP DATABASE IF EXISTS {name}"))
        await autocommit.execute(text(f"CREATE DATABASE {name}"))
    await admin.close()
    return make_url(server).set(database=name).render_as_string(hide_password=False)


async def _ingest(rt: Runtime, clicks: int) -> dict[str, float]:
    gc.collect()
    gc.freeze()  # as the server does once it has started
    began, spent = time.perf_counter(), time.process_time()
    stored = await Ingester(rt).apply_all()
    seconds, cpu = time.perf_counter() - began, time.process_time() - spent
    figures = await reconcile(rt)
    if stored != clicks or figures.drift:
        raise SystemExit(f"{stored} of {clicks} clicks were stored; {figures.drift}")
    return {
        "clicks_per_second": round(clicks / seconds),
        "cpu_microseconds": round(cpu * 1e6 / clicks, 1),
    }


async def measure(dialect: str, clicks: int, links: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        url = await _database(dialect, Path(folder))
        settings = Settings(data_dir=Path(folder), database_url=url)
        db = Database(settings)
        await migrations.upgrade(db)
        await db.close()
        fill(settings.effective_spool_dir, clicks, links)
        async with open_runtime(settings) as rt:
            return await _ingest(rt, clicks)


def _profiled(dialect: str, clicks: int) -> None:
    profile = cProfile.Profile()
    profile.runcall(lambda: asyncio.run(measure(dialect, clicks, 5_000)))
    pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make bench ingest", description=__doc__.splitlines()[0])
    parser.add_argument("--clicks", type=int, default=200_000)
    parser.add_argument("--databases", default="sqlite,postgresql,mysql")
    parser.add_argument(
        "--profile", action="store_true", help="say where the time goes, instead of measuring"
    )
    given = parser.parse_args(arguments)
    load, found, rows, held = busy(), {}, [], True
    for dialect in given.databases.split(","):
        if given.profile:
            _profiled(dialect, given.clicks)
            continue
        for links in (5_000, 100):
            result: dict[str, Any] = asyncio.run(measure(dialect, given.clicks, links))
            found[f"{dialect}, {links} links"] = result
            rows.append(
                [
                    f"{dialect}, {links:,} links",
                    f"{result['clicks_per_second']:,}",
                    f"{result['cpu_microseconds']:.1f}",
                ]
            )
            held = held and (dialect == "mysql" or result["clicks_per_second"] >= BAR)
    if found:
        table(["clicks into the database", "clicks/s", "µs CPU each"], rows)
        print(
            f"bar: {BAR:,} clicks a second on SQLite and PostgreSQL: {'held' if held else 'MISSED'}"
        )
        write(
            "ingest",
            __doc__.splitlines()[0],
            load,
            clicks=given.clicks,
            bar=BAR,
            held=held,
            results=found,
        )
    return 0 if held else 1
