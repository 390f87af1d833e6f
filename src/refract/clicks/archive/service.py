"""Archiving of old days: each event is in exactly one place at any moment.

A slice of a day is copied into a file, which is synced to disk; then one small transaction adds the
file's row and deletes the same events. If the process dies before that commit, the file is
unreferenced and the events are unchanged; after it, everything is done. Unreferenced files are
swept later. Files of one day are merged in the same way.
"""

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import Table, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import (
    PARQUET_SUFFIX,
    SORT_COLUMNS,
    TABLE_SUFFIX,
    UNFINISHED_SUFFIX,
    ParquetFile,
    get_table_name,
    merge_files,
    write_rows,
)
from refract.clicks.models import ClickEvent
from refract.clicks.queries import select_events
from refract.core.db.bulk import get_rowcount
from refract.core.db.session import ReadSession, WriteSession
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.jobs.slices import run_in_slices

ONE_DAY: Final = timedelta(days=1)
BATCH_SIZES: Final = {"sqlite": 4_000, "postgresql": 20_000, "mysql": 10_000}
"""Events that are moved together: on SQLite all writers wait while they are deleted."""
MAX_MERGED_FILES: Final = 64
GRACE_SECONDS: Final = 3_600.0
"""Seconds that an unreferenced file is kept, since it may be being read."""
EXPORT_PREFIX: Final = ".export-"
"""Prefix of the folders in which exports are assembled."""
_MAX_TRIES: Final = 5
_FILE_PATTERN: Final = re.compile(
    rf"\d{{4}}-\d\d-\d\d-\d+-[0-9a-f]+({re.escape(PARQUET_SUFFIX)}|{re.escape(TABLE_SUFFIX)})"
    rf"({re.escape(UNFINISHED_SUFFIX)}.*)?"
)
_EVENT = cast("Table", ClickEvent.__table__)
_ORDER = [_EVENT.c[name] for name in SORT_COLUMNS]


class ArchiveFileMissing(Unavailable):
    """The archived clicks of {day} can't be read.

    The file {name} is missing from the archive directory.
    """


class ArchiveConflict(Exception):
    """The day changed meanwhile, by a late click or another archiver. Try again."""


@dataclass(frozen=True, slots=True)
class DaySlice:
    """Some events of a day: all those between the first one's time and the last one's.

    `part` is the next free part number.
    """

    day: date
    part: int
    rows: Sequence[Any]

    @property
    def first(self) -> datetime:
        moment: datetime = self.rows[0].at
        return moment

    @property
    def last(self) -> datetime:
        moment: datetime = self.rows[-1].at
        return moment


async def archive_old_days(rt: Runtime) -> int:
    """Move every whole day that is old enough; return the number of events moved."""
    moved = 0
    while (day := await _find_oldest_due(rt)) is not None:
        moved += await archive_day(rt, day)
    return moved


async def archive_day(rt: Runtime, day: date) -> int:
    """Move one UTC day out of the database, then merge the day's files."""
    moved = await run_in_slices(rt, partial(_archive_slice, rt, day))
    await merge_day(rt, day)
    return moved


async def _archive_slice(rt: Runtime, day: date) -> int:
    """Move a slice of a day; return how many events moved.

    Raises `ArchiveConflict` if the day changed meanwhile at every try.
    """
    directory = ensure_directory(rt)
    for tries_left in reversed(range(_MAX_TRIES)):
        part = await _load_next_slice(rt, day)
        if part is None:
            break
        rows = [tuple(row) for row in part.rows]
        try:
            written = await asyncio.to_thread(write_rows, directory, f"{day}-{part.part}", rows)
            await _commit_slice(rt, part, written)
        except ArchiveConflict:
            if not tries_left:
                raise
            continue
        return len(rows)
    return 0


async def merge_day(rt: Runtime, day: date) -> None:
    """Merge all files of a day into one, smallest first."""
    directory = ensure_directory(rt)
    while True:
        async with rt.db.read() as session:
            files = await list_files(session, day, day)
        if len(files) < 2:
            return
        chosen = sorted(files, key=lambda file: (file.size, file.part))[:MAX_MERGED_FILES]
        part = max(file.part for file in files) + 1
        merged = await asyncio.to_thread(
            merge_files, directory, f"{day}-{part}", require_files(directory, chosen)
        )
        if merged.events != sum(file.events for file in chosen):
            problem = (
                f"the files of {day} hold {merged.events} events instead of"
                f" {sum(file.events for file in chosen)}"
            )
            raise OSError(problem)
        try:
            await _replace_files(rt, day, part, merged, chosen)
        except ArchiveConflict:
            continue


async def drop_expired_files(rt: Runtime) -> int:
    """Delete files beyond their retention; return their number. Their events still count."""
    now = rt.clock.now()
    horizon = now.date() - timedelta(days=rt.settings.archive_days)
    outlived = (ArchiveFile.day < horizon, ArchiveFile.dropped_at.is_(None))
    async with rt.db.write() as session:
        names = list(await session.scalars(select(ArchiveFile.name).where(*outlived)))
        await session.execute(update(ArchiveFile).where(*outlived).values(dropped_at=now))
    directory = ensure_directory(rt)
    for name in names:
        (directory / name).unlink(missing_ok=True)
        (directory / get_table_name(name)).unlink(missing_ok=True)
    return len(names)


async def sweep_files(rt: Runtime, grace: float = GRACE_SECONDS) -> int:
    """Delete unreferenced files, left by a dead archiver or merged a while ago."""
    directory = ensure_directory(rt)
    before = time.time() - grace
    found = [
        path
        for path in directory.iterdir()
        if _FILE_PATTERN.fullmatch(path.name) and path.stat().st_mtime <= before
    ]
    async with rt.db.read() as session:
        names = await list_names(session)
    wanted = {*names, *map(get_table_name, names)}
    unwanted = [path for path in found if path.name not in wanted]
    for path in unwanted:
        path.unlink(missing_ok=True)
    for folder in directory.glob(f"{EXPORT_PREFIX}*"):
        if folder.stat().st_mtime <= before:
            # Left by a process that died during an export.
            shutil.rmtree(folder, ignore_errors=True)
    return len(unwanted)


async def list_files(session: ReadSession, first: date, last: date) -> list[ArchiveFile]:
    """Return the files of these days, including the last one."""
    wanted = select(ArchiveFile).where(
        ArchiveFile.day >= first, ArchiveFile.day <= last, ArchiveFile.dropped_at.is_(None)
    )
    return list(await session.scalars(wanted.order_by(ArchiveFile.day, ArchiveFile.part)))


async def list_names(session: ReadSession) -> list[str]:
    """Return the names of all files that should exist."""
    wanted = select(ArchiveFile.name).where(ArchiveFile.dropped_at.is_(None))
    return list(await session.scalars(wanted))


class ArchiveSummary(NamedTuple):
    """Counts of all events ever archived, and the names of the files that should exist."""

    events: int
    link_events: int
    names: list[str]


async def summarize_archive(session: ReadSession) -> ArchiveSummary:
    files = list(await session.scalars(select(ArchiveFile)))
    names = [file.name for file in files if file.dropped_at is None]
    return ArchiveSummary(
        sum(file.events for file in files), sum(file.link_events for file in files), names
    )


async def use_snapshot(session: ReadSession) -> None:
    """Give the session one snapshot for all statements, so that a moving event is seen once."""
    if session.dialect != "sqlite":
        await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def ensure_directory(rt: Runtime) -> Path:
    directory = rt.settings.effective_archive_dir
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def require_files(directory: Path, files: Sequence[ArchiveFile]) -> list[str]:
    """Return the names of the files; raise ArchiveMissing if one is missing."""
    for file in files:
        if not (directory / file.name).is_file():
            raise ArchiveFileMissing(day=file.day, name=file.name)
    return [file.name for file in files]


def get_day_start(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


async def _find_oldest_due(rt: Runtime) -> date | None:
    horizon = get_day_start(rt.clock.now().date() - timedelta(days=rt.settings.event_days))
    async with rt.db.read() as session:
        oldest: datetime | None = await session.scalar(
            select(_EVENT.c.at).where(_EVENT.c.at < horizon).order_by(_EVENT.c.at).limit(1)
        )
    return oldest.date() if oldest is not None else None


async def _load_next_slice(rt: Runtime, day: date) -> DaySlice | None:
    size = BATCH_SIZES[rt.db.dialect]
    of_day = (_EVENT.c.at >= get_day_start(day), _EVENT.c.at < get_day_start(day) + ONE_DAY)
    async with rt.db.read() as session:
        await use_snapshot(session)
        highest = await session.scalar(
            select(func.max(ArchiveFile.part)).where(ArchiveFile.day == day)
        )
        rows = list(
            await session.execute(select_events().where(*of_day).order_by(*_ORDER).limit(size + 1))
        )
        if len(rows) > size:
            # Whole moments only, so that the slice is complete between its first and last event.
            rows = [row for row in rows if row.at < rows[-1].at] or list(
                await session.execute(
                    select_events().where(_EVENT.c.at == rows[0].at).order_by(*_ORDER)
                )
            )
    return DaySlice(day, (highest or 0) + 1, rows) if rows else None


async def _commit_slice(rt: Runtime, part: DaySlice, written: ParquetFile) -> None:
    async with _write_or_conflict(rt) as session:
        session.add(_build_row(rt, part.day, part.part, written))
        await session.flush()
        gone = await session.execute(
            delete(_EVENT).where(_EVENT.c.at >= part.first, _EVENT.c.at <= part.last)
        )
        if get_rowcount(gone) != len(part.rows):
            raise ArchiveConflict


async def _replace_files(
    rt: Runtime, day: date, part: int, merged: ParquetFile, old: Sequence[ArchiveFile]
) -> None:
    async with _write_or_conflict(rt) as session:
        session.add(_build_row(rt, day, part, merged))
        await session.flush()
        parts = [file.part for file in old]
        known = (
            ArchiveFile.day == day,
            ArchiveFile.part.in_(parts),
            ArchiveFile.dropped_at.is_(None),
        )
        if get_rowcount(await session.execute(delete(ArchiveFile).where(*known))) != len(old):
            raise ArchiveConflict
    for file in old:
        os.utime(ensure_directory(rt) / file.name)  # its grace period begins now


@asynccontextmanager
async def _write_or_conflict(rt: Runtime) -> AsyncIterator[WriteSession]:
    """Open a transaction in which a taken part number raises ArchiveConflict."""
    try:
        async with rt.db.write() as session:
            yield session
    except IntegrityError as exc:
        raise ArchiveConflict from exc


def _build_row(rt: Runtime, day: date, part: int, written: ParquetFile) -> ArchiveFile:
    return ArchiveFile(day=day, part=part, created_at=rt.clock.now(), **written._asdict())
