"""Single events, wherever they are: in the database, or in the column files of old days. Each is found exactly once.

An event moves from the database into a file in one transaction, so a snapshot shows it in one of the two. What one snapshot showed is
read before the next is taken; files that were merged meanwhile stay for an hour.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import Table, func, select

from refract.analytics.archive import begin_of, directory_of, files_of, paths_of, snapshot
from refract.analytics.archive_models import ArchiveFile
from refract.analytics.columns import COLUMNS, NAMES, ORDER, batches, load, opened, source_of
from refract.analytics.frames import LINK_CLICK
from refract.analytics.models import ClickEvent
from refract.core.db import ReadSession
from refract.core.runtime import Runtime

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE: Final = 1_000
MOST_AT_ONCE: Final = 100_000
"""Archived events of all links that one look into the files may come upon."""
CAMPAIGN_PARTS: Final = {"sources": "utm_source", "mediums": "utm_medium", "terms": "utm_term", "contents": "utm_content"}
"""What only single events know: roll-ups keep campaigns alone."""
_DAY: Final = timedelta(days=1)
_TICK: Final = timedelta(microseconds=1)
_EVENT = cast("Table", ClickEvent.__table__)
_ALL = [_EVENT.c[name] for name in COLUMNS]
_ORDER = [_EVENT.c[name] for name in ORDER]
_IN_FILES: Final = 'target_id = ? AND kind = ? AND "at" >= ? AND "at" < ?'
_SORTED: Final = ", ".join(f'"{name}"' for name in ORDER)

Event = tuple[Any, ...]
"""The columns of an event, in the order of `COLUMNS`."""


@dataclass(frozen=True, slots=True)
class Window:
    """All events of a target in [begin, end): some from the database, the others in these files."""

    target: int
    begin: datetime
    end: datetime
    hot: Sequence[Event]
    files: Sequence[str]


async def windows(rt: Runtime, target: int, begin: datetime, end: datetime) -> AsyncIterator[Window]:
    """The time from begin to end in pieces that fit into memory, in order, those without an event left out."""
    at = begin
    while at < end:
        async with rt.db.read() as session:
            await snapshot(session)
            found = await _next_window(session, directory_of(rt), target, at, end)
        if found is None:
            return
        yield found
        at = found.end


async def demand_archive(rt: Runtime, begin: datetime, end: datetime) -> None:
    """Raise ArchiveMissing if a file with events of [begin, end) is not there."""
    async with rt.db.read() as session:
        files = await files_of(session, begin.date(), end.date())
    await asyncio.to_thread(paths_of, directory_of(rt), files)


async def events(rt: Runtime, target: int, begin: datetime, end: datetime) -> AsyncIterator[list[Event]]:
    """Every event in [begin, end), in order of time, some at a time."""
    async for window in windows(rt, target, begin, end):
        if not window.files:
            yield list(window.hot)
            continue
        reading = _read(directory_of(rt), window)
        try:
            while (some := await asyncio.to_thread(next, reading, None)) is not None:
                yield some
        finally:
            await asyncio.to_thread(reading.close)


async def campaign_part(rt: Runtime, target: int, dimension: str, begin: datetime, end: datetime) -> tuple[Counter[str], int]:
    """Clicks of people by the values of one part of their campaigns, and how many clicks of people there were."""
    column = CAMPAIGN_PARTS[dimension]
    chosen = (_EVENT.c.target_id == target, _EVENT.c.kind == LINK_CLICK, _EVENT.c.at >= begin, _EVENT.c.at < end, _EVENT.c.bot.is_(False))
    async with rt.db.read() as session:
        await snapshot(session)
        hot = [
            tuple(row) for row in await session.execute(select(_EVENT.c[column], func.count()).where(*chosen).group_by(_EVENT.c[column]))
        ]
        files = await files_of(session, begin.date(), end.date())
    sums: Counter[str | None] = Counter()
    archived = await asyncio.to_thread(_grouped, directory_of(rt), files, column, target, begin, end) if files else []
    for value, clicks in [*hot, *archived]:
        sums[value] += clicks
    people = sums.total()
    return Counter({value: clicks for value, clicks in sums.items() if value}), people


def query_of(directory: Path, window: Window, connection: "DuckDBPyConnection") -> tuple[str, list[object]]:
    """What a connection is asked to find a window's events in order; the ones from the database are handed to it."""
    load(connection, window.hot)
    hot = f"SELECT {NAMES} FROM events"  # noqa: S608 - our own words, here and below
    if not window.files:
        return f"{hot} ORDER BY {_SORTED}", []
    archived = f"SELECT {NAMES} FROM {source_of(directory, window.files)} WHERE {_IN_FILES}"  # noqa: S608
    return f"SELECT * FROM ({archived} UNION ALL {hot}) ORDER BY {_SORTED}", [window.target, LINK_CLICK, window.begin, window.end]  # noqa: S608


async def _next_window(session: ReadSession, directory: Path, target: int, at: datetime, end: datetime) -> Window | None:
    hot, until = await _page(session, target, at, end)
    day: date | None = await session.scalar(
        select(func.min(ArchiveFile.day)).where(
            ArchiveFile.day >= at.date(), ArchiveFile.day <= (end - _TICK).date(), ArchiveFile.dropped_at.is_(None)
        )
    )
    if day is None:
        return Window(target, at, until, hot, []) if hot else None
    opens = max(at, begin_of(day))
    before = [row for row in hot if row[_AT] < opens]
    if before:
        return Window(target, at, min(until, opens), before, [])
    files = await files_of(session, day, day)
    pieces = 1 + sum(file.events for file in files) // MOST_AT_ONCE
    closes = min(until, begin_of(day) + _DAY, opens + _DAY / pieces)
    return Window(target, opens, closes, [row for row in hot if row[_AT] < closes], paths_of(directory, files))


async def _page(session: ReadSession, target: int, at: datetime, end: datetime) -> tuple[list[Event], datetime]:
    """The next events in the database, and up to where they are all there are."""
    chosen = (_EVENT.c.target_id == target, _EVENT.c.kind == LINK_CLICK)
    later = select(*_ALL).where(*chosen, _EVENT.c.at >= at, _EVENT.c.at < end).order_by(*_ORDER)
    rows = [tuple(row) for row in await session.execute(later.limit(PAGE + 1))]
    if len(rows) <= PAGE:
        return rows, end
    last: datetime = rows[-1][_AT]
    if whole := [row for row in rows if row[_AT] < last]:
        return whole, last
    same = select(*_ALL).where(*chosen, _EVENT.c.at == last).order_by(*_ORDER)  # more of one moment than fit
    return [tuple(row) for row in await session.execute(same)], last + _TICK


def _read(directory: Path, window: Window) -> Generator[list[Event], None, None]:
    with opened(directory) as connection:
        yield from batches(connection, *query_of(directory, window, connection), size=PAGE)


def _grouped(directory: Path, files: Sequence[ArchiveFile], column: str, target: int, begin: datetime, end: datetime) -> list[Event]:
    source, values = source_of(directory, paths_of(directory, files)), [target, LINK_CLICK, begin.astimezone(UTC), end.astimezone(UTC)]
    question = f"SELECT {column}, count(*) FROM {source} WHERE {_IN_FILES} AND NOT bot GROUP BY 1"  # noqa: S608
    with opened(directory) as connection:
        return [row for some in batches(connection, question, values, PAGE) for row in some]


_AT: Final = list(COLUMNS).index("at")
