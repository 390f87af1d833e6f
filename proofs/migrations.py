"""Every migration up, down and up again with data, and killed half-way over and over.

It ends with the schema that the models describe.

`refract migrate` is killed at random moments and then run to its end; on MariaDB every statement
commits by itself, so a step may be found half done. Then each revision goes down and up again over
a database with rows in nearly every table.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, delete, inspect, select

from proofs.harness import stage
from proofs.harness.filling import Filler
from proofs.harness.report import Report
from proofs.harness.site import ROOT, database
from refract import migrations
from refract.core.db.session import Database
from refract.core.settings.model import Settings
from refract.jobs.models import Job
from refract.migrations.tables import metadata
from refract.transfer.row_format import TableCodec, list_tables
from refract.transfer.table_io import compute_checksum, open_snapshot


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int
    kills: int


SIZES = {"short": Size(rounds=1, kills=2), "full": Size(rounds=10, kills=8)}


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    chance = random.Random(seed)
    report = Report(f"migrations: {dialect}", seed)
    killed = different = again = 0
    for number in range(size.rounds):
        async with database(dialect) as url:
            place = home / str(number)
            place.mkdir(mode=0o700)
            killed += await asyncio.to_thread(_migrate_under_fire, place, url, size.kills, chance)
            db = Database(Settings(data_dir=place, database_url=url))
            try:
                different += len(await differences(db))
                again += await down_and_up(db)
                different += len(await differences(db))
            finally:
                await db.close()
    report.bar(
        "killed half-way", killed, f"≥ {size.rounds}", held=killed >= size.rounds, timed=True
    )
    report.none("differences between schema and models", different)
    report.none("tables whose rows changed though their revision was not touched", again)
    return report


def _migrate_under_fire(place: Path, url: str | None, kills: int, chance: random.Random) -> int:
    """How many of the kills found it at work.

    The moment is chosen within what a whole run takes.
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith("REFRACT_")}
    environment = (
        plain
        | {"PYTHONPATH": str(ROOT / "src"), "REFRACT_DATA_DIR": str(place)}
        | ({"REFRACT_DATABASE_URL": url} if url else {})
    )
    command = [
        sys.executable,
        "-c",
        "from refract.cli import main; print('begun', flush=True); main()",
        "migrate",
    ]
    hit = 0
    for _ in range(kills):
        process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.3, 3.0))
        if process.poll() is None:
            process.kill()
            hit += 1
        process.communicate()
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return hit


async def down_and_up(db: Database) -> int:
    """Each revision down, the newest first, and up again.

    The answer is how many tables came out otherwise than they went in.

    What the newest revision brought goes with it, so the rows are compared by the columns that
    stay.
    """
    revisions = sorted(
        int(path.stem.split("_", 1)[0])
        for path in (migrations.MIGRATIONS_DIR / "versions").glob("[0-9]*.py")
    )
    lower = [f"{number:04}" for number in revisions[:-1]]
    await migrations.downgrade(db, lower[-1])
    kept = await _columns(db)
    await migrations.upgrade(db)
    await Filler(db).fill()
    before, jobs = await _add_up(db, kept), await _list_jobs(db)
    await migrations.downgrade(db, lower[-1])
    await migrations.upgrade(db)
    async with db.write() as session:  # a revision may leave work to a job, which isn't data
        await session.execute(delete(Job).where(Job.id.not_in(jobs)))
    after = await _add_up(db, kept)
    for revision in [*reversed(lower), "base"]:
        await migrations.downgrade(db, revision)
    await migrations.upgrade(db)
    return sum(after[name] != sum_ for name, sum_ in before.items())


async def _list_jobs(db: Database) -> list[int]:
    async with db.read() as session:
        return list(await session.scalars(select(Job.id)))


async def _columns(db: Database) -> dict[str, set[str]]:
    """Of every table there is, the columns there are."""

    def look(connection: Connection) -> dict[str, set[str]]:
        found = inspect(connection)
        return {
            name: {column["name"] for column in found.get_columns(name)}
            for name in found.get_table_names()
        }

    async with db.engine.connect() as connection:
        return await connection.run_sync(look)


async def _add_up(db: Database, kept: dict[str, set[str]]) -> dict[str, str]:
    """What every table that is kept adds up to, seen through the columns that are."""
    found = {}
    async with open_snapshot(db) as connection:
        for model in list_tables():
            if model.name in kept:
                form = TableCodec(
                    model,
                    [column.name for column in model.columns if column.name in kept[model.name]],
                )
                found[model.name] = (await compute_checksum(connection, form)).text
    return found


async def differences(db: Database) -> list[Any]:
    def compare(connection: Any) -> list[Any]:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": _ours}
        )
        return list(compare_metadata(context, metadata))

    async with db.engine.connect() as connection:
        return await connection.run_sync(compare)


def _ours(_object: Any, name: str | None, kind: str, _reflected: bool, _other: Any) -> bool:
    """Leave out full-text and trigram indexes, with their tables and columns: no model has them."""
    return not (
        kind in ("table", "index", "column")
        and name is not None
        and ("_fts" in name or name.endswith("_trigram"))
    )


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("migrations", arguments, __doc__, "sqlite,postgresql,mysql", prove)
