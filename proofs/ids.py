"""Clocks that jump back and forth, processes that are killed and that wish for the same worker id.

No id is ever given twice.
"""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from proofs.harness import stage
from proofs.harness.report import Report
from proofs.harness.site import ROOT, database
from refract import migrations
from refract.core.db.session import Database
from refract.core.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Size:
    processes: int
    seconds: float


SIZES = {"short": Size(processes=4, seconds=5), "full": Size(processes=12, seconds=120)}


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    report = Report(f"ids: {dialect}, {size.processes} processes whose clocks jump", seed)
    chance = random.Random(seed)
    async with database(dialect) as url:
        db = Database(Settings(data_dir=home, database_url=url))
        await migrations.upgrade(db)
        await db.close()
        kills = await asyncio.to_thread(_torment, home, url or "", size, chance)
    ids = await asyncio.to_thread(_read, home)
    workers = {number >> 12 & 1023 for number in ids}
    report.say("ids", len(ids))
    report.say("worker ids that were used", len(workers))
    report.say("processes killed", kills)
    report.none("ids given twice", len(ids) - len(set(ids)))
    report.bar("enough of them to mean something", len(ids), "≥ 1,000", held=len(ids) >= 1000)
    return report


def _torment(home: Path, url: str, size: Size, chance: random.Random) -> int:
    """Processes come and go; each writes its ids as soon as it has them, so that a killed one's are
    known.
    """
    until, number, kills = time.monotonic() + size.seconds, 0, 0
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        nonlocal number
        number += 1
        left = max(0.5, until - time.monotonic())
        words = [
            str(home),
            url,
            str(chance.randrange(1 << 32)),
            str(left),
            str(home / f"ids-{number}"),
        ]
        running.append(
            subprocess.Popen([sys.executable, "-m", "proofs.harness.idmaker", *words], cwd=ROOT)
        )

    for _ in range(size.processes):
        begin()
    while time.monotonic() < until - 1.5:
        time.sleep(chance.uniform(0.3, 1.5))
        victim = running.pop(chance.randrange(len(running)))
        victim.kill()
        victim.wait()
        kills += 1
        begin()
    for process in running:
        process.wait(60)
    return kills


def _read(home: Path) -> list[int]:
    """Whole lines only: a killed process may have left half of one."""
    return [
        int(line)
        for path in home.glob("ids-*")
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("ids", arguments, __doc__, "sqlite,postgresql,mysql", prove)
