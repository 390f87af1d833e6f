"""Backup and restore: into an empty directory and onto every database, under writes.

Every table is equal.

The backup is taken while links are being made. What it says of itself is what the restored database
holds, and everything that was acknowledged before it began is in it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import insert

from proofs.harness import stage
from proofs.harness.filling import Filler, fill_archive, sums
from proofs.harness.report import Report
from proofs.harness.site import database, site
from refract import migrations
from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.links.models import Link, LinkTotals
from refract.transfer.backup import create_backup
from refract.transfer.restore import finish_restore, load_backup


@dataclass(frozen=True, slots=True)
class Size:
    rows: int
    links: int


SIZES = {"short": Size(rows=5_000, links=50), "full": Size(rows=500_000, links=5_000)}
BASE = 1 << 50


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    report = Report(f"backup and restore: from {dialect}", seed)
    async with site(home, dialect) as made, made.runtime() as rt:
        await Filler(rt.db).fill()
        await fill_archive(rt.db, made.settings().effective_archive_dir)
        await _many(rt.db, size.rows)
        before = [link.id for link in await stage.plant(rt, size.links, prefix="before")]
        writing = asyncio.create_task(_write_on(rt, stop := asyncio.Event()))
        file, began = home / "backup.zip", time.monotonic()
        manifest = await create_backup(
            made.settings(), rt.db, file, datetime.now(UTC), lambda *_: None
        )
        took = time.monotonic() - began
        stop.set()
        during = await writing
        report.say("rows", manifest.rows)
        report.say(
            "backup",
            f"{took:.1f} s, {manifest.rows / took:,.0f} rows/s, {file.stat().st_size:,} bytes",
        )
        report.say("links made meanwhile", during)
        for other in ("sqlite", "postgresql", "mysql"):
            async with database(other) as url:
                place = home / f"to-{other}"
                place.mkdir(mode=0o700)
                await _compare(
                    report,
                    Settings(data_dir=place, database_url=url),
                    file,
                    manifest.tables,
                    before,
                )
    return report


async def _many(db: Database, rows: int) -> None:
    for begin in range(0, rows, 10_000):
        async with db.write() as session:
            some = range(begin, min(rows, begin + 10_000))
            totals = [
                {
                    "link_id": BASE + number,
                    "total_clicks": number,
                    "bot_clicks": 1,
                    "last_clicked_at": None,
                }
                for number in some
            ]
            await session.execute(insert(LinkTotals), totals)


async def _write_on(rt: Runtime, stop: asyncio.Event) -> int:
    number = 0
    while not stop.is_set():
        await stage.plant(rt, 5, prefix=f"during-{number}")
        number += 5
        await asyncio.sleep(0.01)
    return number


async def _compare(
    report: Report, settings: Settings, file: Path, wanted: dict[str, str], before: list[int]
) -> None:
    db = Database(settings)
    try:
        began = time.monotonic()
        await load_backup(settings, db, file, lambda *_: None)
        await finish_restore(db)
        took = time.monotonic() - began
        found = await sums(db)
        report.none(
            f"to {db.dialect}: tables that differ",
            sum(found[name] != spelled for name, spelled in wanted.items()),
        )
        async with db.read() as session:
            missing = sum([await session.get(Link, number) is None for number in before])
        report.none(f"to {db.dialect}: links of before that are missing", missing)
        report.none(
            f"to {db.dialect}: schema behind",
            int(await migrations.get_current_revision(db) != migrations.get_head()),
        )
        report.say(f"to {db.dialect}: restored and compared", f"{took:.1f} s")
    finally:
        await db.close()
    async with open_runtime(settings) as rt:
        made = await stage.plant(rt, 1, prefix="after")
    report.bar(f"to {db.dialect}: links made afterwards", len(made), "1", held=len(made) == 1)


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("backup", arguments, __doc__, "sqlite,postgresql,mysql", prove)
