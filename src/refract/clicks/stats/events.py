"""Single click events from the database and from the Parquet files of old days, each exactly once.

An event moves from the database into a file in one transaction, so a snapshot shows it in one of
the two. The rows of one snapshot are read before the next is taken; files that were merged
meanwhile stay for an hour.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import Table, func, select

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import (
    COLUMN_LIST,
    COLUMN_TYPES,
    SORT_COLUMNS,
    build_source,
    iter_batches,
    load_events,
    open_connection,
)
from refract.clicks.archive.processes import ArchiveProcess, ArchiveProcesses
from refract.clicks.archive.service import (
    ensure_directory,
    get_day_start,
    list_files,
    require_files,
    use_snapshot,
)
from refract.clicks.columns.dimensions import CAMPAIGN_COLUMNS
from refract.clicks.models import ClickEvent
from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE_SIZE: Final = 1_000
MAX_ARCHIVED_EVENTS: Final = 100_000
"""Maximum number of archived events, of all links, in one window."""
_ONE_DAY: Final = timedelta(days=1)
_TICK: Final = timedelta(microseconds=1)
_EVENT = cast("Table", ClickEvent.__table__)
_ORDER = [_EVENT.c[name] for name in SORT_COLUMNS]
_FILE_FILTER: Final = 'target_id = ? AND kind = ? AND "at" >= ? AND "at" < ?'
_SORT_ORDER: Final = ", ".join(f'"{name}"' for name in SORT_COLUMNS)

EventRow = tuple[Any, ...]
"""The columns of an event, in the order of `COLUMN_TYPES`."""


@dataclass(frozen=True, slots=True)
class EventWindow:
    """All events of a target in [begin, end): some from the database, the others in these files."""

    target: int
    begin: datetime
    end: datetime
    recent: Sequence[EventRow]
    files: Sequence[str]


async def iter_windows(
    rt: Runtime, target: int, begin: datetime, end: datetime
) -> AsyncIterator[EventWindow]:
    """Yield the period in windows that fit into memory, in order, without empty ones."""
    at = begin
    while at < end:
        async with rt.db.read() as session:
            await use_snapshot(session)
            found = await _load_next_window(session, ensure_directory(rt), target, at, end)
        if found is None:
            return
        yield found
        at = found.end


async def require_archive_files(rt: Runtime, begin: datetime, end: datetime) -> None:
    """Raise ArchiveFileMissing if a file with events of [begin, end) is missing."""
    async with rt.db.read() as session:
        files = await list_files(session, begin.date(), end.date())
    await asyncio.to_thread(require_files, ensure_directory(rt), files)


async def iter_events(
    rt: Runtime, target: int, begin: datetime, end: datetime
) -> AsyncIterator[list[EventRow]]:
    """Yield the events in [begin, end) in batches, in order of time."""
    async with AsyncExitStack() as exit_stack:
        process: ArchiveProcess | None = None
        async for window in iter_windows(rt, target, begin, end):
            if not window.files:
                yield list(window.recent)
                continue
            if process is None:
                process = await exit_stack.enter_async_context(
                    rt.singleton(ArchiveProcesses).acquire()
                )
            reading = process.iterate(_read_window, ensure_directory(rt), window)
            async with aclosing(reading):
                async for batch in reading:
                    yield batch


async def count_campaign_values(
    rt: Runtime, target: int, dimension: str, begin: datetime, end: datetime
) -> tuple[Counter[str], int]:
    """Count clicks of people by the values of one campaign parameter.

    Return the counts and the number of all clicks of people.
    """
    column = CAMPAIGN_COLUMNS[dimension]
    chosen = (
        _EVENT.c.target_id == target,
        _EVENT.c.kind == LINK_CLICK,
        _EVENT.c.at >= begin,
        _EVENT.c.at < end,
        _EVENT.c.bot.is_(False),
    )
    async with rt.db.read() as session:
        await use_snapshot(session)
        hot = [
            tuple(row)
            for row in await session.execute(
                select_events(EVENT_COLUMNS[column], func.count())
                .where(*chosen)
                .group_by(EVENT_COLUMNS[column])
            )
        ]
        files = await list_files(session, begin.date(), end.date())
    sums: Counter[str | None] = Counter()
    archived: list[EventRow] = []
    if files:
        directory = ensure_directory(rt)
        names = await asyncio.to_thread(require_files, directory, files)
        async with rt.singleton(ArchiveProcesses).acquire() as process:
            archived = await process.call(
                _count_archived, directory, names, column, target, begin, end
            )
    for value, clicks in [*hot, *archived]:
        sums[value] += clicks
    people = sums.total()
    return Counter({value: clicks for value, clicks in sums.items() if value}), people


def build_query(
    directory: Path, window: EventWindow, connection: "DuckDBPyConnection"
) -> tuple[str, list[object]]:
    """Return the query for a window's events in order, after loading the recent ones.

    The events from the database are put into a table of the connection.
    """
    load_events(connection, window.recent)
    hot = f"SELECT {COLUMN_LIST} FROM events"  # noqa: S608 - our own words, here and below
    if not window.files:
        return f"{hot} ORDER BY {_SORT_ORDER}", []
    archived = (
        f"SELECT {COLUMN_LIST} FROM"  # noqa: S608
        f" {build_source(directory, window.files)} WHERE {_FILE_FILTER}"
    )
    return f"SELECT * FROM ({archived} UNION ALL {hot}) ORDER BY {_SORT_ORDER}", [  # noqa: S608
        window.target,
        LINK_CLICK,
        window.begin,
        window.end,
    ]


async def _load_next_window(
    session: ReadSession, directory: Path, target: int, at: datetime, end: datetime
) -> EventWindow | None:
    hot, until = await _load_page(session, target, at, end)
    day: date | None = await session.scalar(
        select(func.min(ArchiveFile.day)).where(
            ArchiveFile.day >= at.date(),
            ArchiveFile.day <= (end - _TICK).date(),
            ArchiveFile.dropped_at.is_(None),
        )
    )
    if day is None:
        return EventWindow(target, at, until, hot, []) if hot else None
    opens = max(at, get_day_start(day))
    before = [row for row in hot if row[_AT_INDEX] < opens]
    if before:
        return EventWindow(target, at, min(until, opens), before, [])
    files = await list_files(session, day, day)
    pieces = 1 + sum(file.events for file in files) // MAX_ARCHIVED_EVENTS
    closes = min(until, get_day_start(day) + _ONE_DAY, opens + _ONE_DAY / pieces)
    return EventWindow(
        target,
        opens,
        closes,
        [row for row in hot if row[_AT_INDEX] < closes],
        require_files(directory, files),
    )


async def _load_page(
    session: ReadSession, target: int, at: datetime, end: datetime
) -> tuple[list[EventRow], datetime]:
    """Return the next events in the database, and the time up to which they are complete."""
    chosen = (_EVENT.c.target_id == target, _EVENT.c.kind == LINK_CLICK)
    later = select_events().where(*chosen, _EVENT.c.at >= at, _EVENT.c.at < end).order_by(*_ORDER)
    rows = [tuple(row) for row in await session.execute(later.limit(PAGE_SIZE + 1))]
    if len(rows) <= PAGE_SIZE:
        return rows, end
    last: datetime = rows[-1][_AT_INDEX]
    if whole := [row for row in rows if row[_AT_INDEX] < last]:
        return whole, last
    # More events of one moment than fit.
    same = select_events().where(*chosen, _EVENT.c.at == last).order_by(*_ORDER)
    return [tuple(row) for row in await session.execute(same)], last + _TICK


def _read_window(directory: Path, window: EventWindow) -> Generator[list[EventRow], None, None]:
    with open_connection(directory) as connection:
        yield from iter_batches(
            connection, *build_query(directory, window, connection), size=PAGE_SIZE
        )


def _count_archived(
    directory: Path,
    files: Sequence[str],
    column: str,
    target: int,
    begin: datetime,
    end: datetime,
) -> list[EventRow]:
    source, values = (
        build_source(directory, files),
        [target, LINK_CLICK, begin.astimezone(UTC), end.astimezone(UTC)],
    )
    question = (
        f"SELECT {column}, count(*) FROM {source}"  # noqa: S608
        f" WHERE {_FILE_FILTER} AND NOT bot GROUP BY 1"
    )
    with open_connection(directory) as connection:
        return [
            row for batch in iter_batches(connection, question, values, PAGE_SIZE) for row in batch
        ]


_AT_INDEX: Final = list(COLUMN_TYPES).index("at")
