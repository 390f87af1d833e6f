"""P9: how much smaller is an old day as a column file than as the rows it replaces, and does it
give the same answers?

    python -m bench archive [--clicks N] [--databases sqlite,postgresql,mysql]

Generated traffic of one day goes through the real spool and ingester into the database. The size of
the rows is what the table and its indexes grew by; then the program's own job moves the day into
its file. Every event is read back and compared. The bar is 90 % smaller.
"""

import argparse
import asyncio
import hashlib
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy import func, select, text

from bench._common import busy, table, write
from bench._runtime import own_runtime
from refract.cli.demo.traffic import TrafficPlan, make_visits, write_spool
from refract.clicks.archive import service
from refract.clicks.archive.parquet import COLUMN_TYPES, get_table_name
from refract.clicks.columns.service import build_missing_tables
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.models import ClickEvent
from refract.clicks.stats import events as stats_events
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime

BAR = 0.90
LINKS = 200
DAY = datetime(2026, 5, 20, tzinfo=UTC)
_SIZES = {
    "sqlite": "SELECT SUM(pgsize) FROM dbstat WHERE name LIKE '%click_events%'",
    "postgresql": "SELECT pg_total_relation_size('click_events')",
    "mysql": (
        "SELECT data_length + index_length FROM information_schema.tables "
        "WHERE table_schema = DATABASE() AND table_name = 'click_events'"
    ),
}


async def _size(rt: Runtime) -> int:
    async with rt.db.engine.connect() as connection:
        if rt.db.dialect == "mysql":
            await connection.execute(text("ANALYZE TABLE click_events"))
        try:
            return int((await connection.execute(text(_SIZES[rt.db.dialect]))).scalar_one())
        except Exception:  # noqa: BLE001 - SQLite without dbstat: the file, less what is free
            pages, free, size = [
                (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
                for name in ("page_count", "freelist_count", "page_size")
            ]
            return int((pages - free) * size)


async def _digest(rt: Runtime) -> str:
    """Of every event of every link, read the way exports read them."""
    found = hashlib.blake2b()
    for link in range(1, LINKS + 1):
        async for some in stats_events.iter_events(rt, link, DAY, DAY + timedelta(days=1)):
            for event in some:
                found.update(repr(event).encode())
    return found.hexdigest()


async def measure(dialect: str, clicks: int) -> dict[str, Any]:
    async with own_runtime(dialect, "archive", DAY + timedelta(days=2)) as rt:
        empty = await _size(rt)
        plan = TrafficPlan(range(1, LINKS + 1), DAY, DAY + timedelta(days=1), clicks, seed=9)
        write_spool(rt.settings.effective_spool_dir, make_visits(plan))
        await Ingester(rt).apply_all()
        rows, before = await _size(rt) - empty, await _digest(rt)
        cast("ManualClock", rt.clock).advance(20 * 86_400)
        begun = time.process_time()
        moved = await service.archive_old_days(rt)
        spent = time.process_time() - begun
        async with rt.db.read() as session:
            (file,) = await service.list_files(session, DAY.date(), DAY.date())
            left = await session.scalar(select(func.count()).select_from(ClickEvent))
        same = await _digest(rt) == before and moved == clicks and left == 0
        await build_missing_tables(rt)
        table_bytes = (service.ensure_directory(rt) / get_table_name(file.name)).stat().st_size
    return {
        "rows_bytes": rows,
        "file_bytes": file.size,
        "table_bytes": table_bytes,
        "smaller": 1 - (file.size + table_bytes) / rows,
        "same": same,
        "cpu_us_per_event": spent / clicks * 1e6,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make bench archive", description=__doc__.splitlines()[0])
    parser.add_argument("--clicks", type=int, default=200_000)
    parser.add_argument("--databases", default="sqlite,postgresql,mysql")
    given = parser.parse_args(arguments)
    load, results = busy(), {}
    for dialect in given.databases.split(","):
        results[dialect] = asyncio.run(measure(dialect, given.clicks))
    lines = [
        [
            name,
            f"{one['rows_bytes'] / given.clicks:.0f} B",
            f"{one['file_bytes'] / given.clicks:.1f} B",
            f"{one['table_bytes'] / given.clicks:.1f} B",
            f"{one['smaller']:.1%}",
            str(one["same"]),
        ]
        for name, one in results.items()
    ]
    table(["database", "a row", "in the file", "in its table", "smaller", "same answers"], lines)
    print(f"{len(COLUMN_TYPES)} columns, {given.clicks:,} events")
    held = all(one["smaller"] >= BAR and one["same"] for one in results.values())
    print(f"bar: {BAR:.0%} smaller, same answers: {'held' if held else 'MISSED'}")
    write("archive", "P9", load, clicks=given.clicks, results=results, held=held)
    return 0 if held else 1
