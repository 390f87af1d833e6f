"""Single clicks of many links by page, newest first, from the database and the archive.

The clicks of each archived day are counted first, so that only the days of a page are read.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import Select, Table, func, select

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import COLUMN_TYPES, build_source, iter_batches, open_connection
from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.archive.service import ensure_directory, list_files, require_files
from refract.clicks.models import ClickEvent
from refract.clicks.queries import select_events
from refract.clicks.spool.format import LINK_CLICK
from refract.core.clock import EPOCH
from refract.core.runtime import Runtime

COLUMN_INDEXES: Final = {name: place for place, name in enumerate(COLUMN_TYPES)}
_EVENT = cast("Table", ClickEvent.__table__)
_NEWEST: Final = ("at", "spool_id", "segment", "place")
_FILES_PER_CALL: Final = 200


@dataclass(frozen=True, slots=True)
class ClickSelection:
    """The clicks of some links within [begin, end)."""

    links: Select[int]
    begin: datetime | None = None
    end: datetime | None = None
    without_bots: bool = False


@dataclass(frozen=True, slots=True)
class _Segment:
    """Clicks that are read together: of an archived day, or without files those in the database."""

    clicks: int
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CountedClicks:
    """The clicks of a selection, in segments from the newest to the oldest."""

    selection: ClickSelection
    link_ids: Sequence[int]
    segments: Sequence[_Segment]

    @property
    def total(self) -> int:
        return sum(segment.clicks for segment in self.segments)


async def count_clicks(rt: Runtime, selection: ClickSelection) -> CountedClicks:
    """Count the clicks of a selection. Three queries at most, and the archive is read once."""
    first = (selection.begin or EPOCH).astimezone(UTC).date()
    last = (selection.end or rt.clock.now()).astimezone(UTC).date()
    link_ids: list[int] = []
    async with rt.db.read() as session:
        hot = await session.scalar(
            select(func.count()).select_from(_EVENT).where(*_build_conditions(selection))
        )
        files = await list_files(session, first, last)
        if files:
            link_ids = list(await session.scalars(selection.links))
    segments = [_Segment(hot or 0)]
    if files and link_ids:
        segments += await _count_archived_days(rt, selection, link_ids, files)
    return CountedClicks(selection, link_ids, segments)


async def load_clicks(
    rt: Runtime, counted: CountedClicks, offset: int, limit: int
) -> list[Sequence[Any]]:
    """Return a stretch of the clicks, newest first, with the columns of `COLUMN_INDEXES`."""
    found: list[Sequence[Any]] = []
    for segment in counted.segments:
        if offset >= segment.clicks:
            offset -= segment.clicks
            continue
        wanted = limit - len(found)
        if segment.files:
            found += await _read_archived(rt, counted, segment.files, offset, wanted)
        else:
            found += await _read_recent(rt, counted.selection, offset, wanted)
        offset = 0
        if len(found) >= limit:
            break
    return found


def _build_conditions(selection: ClickSelection) -> list[Any]:
    conditions: list[Any] = [
        _EVENT.c.target_id.in_(selection.links),
        _EVENT.c.kind == LINK_CLICK,
    ]
    if selection.begin is not None:
        conditions.append(_EVENT.c.at >= selection.begin)
    if selection.end is not None:
        conditions.append(_EVENT.c.at < selection.end)
    if selection.without_bots:
        conditions.append(_EVENT.c.bot.is_(False))
    return conditions


async def _read_recent(
    rt: Runtime, selection: ClickSelection, offset: int, limit: int
) -> list[Sequence[Any]]:
    newest = [_EVENT.c[name].desc() for name in _NEWEST]
    events = select_events().where(*_build_conditions(selection)).order_by(*newest)
    async with rt.db.read() as session:
        return [tuple(row) for row in await session.execute(events.offset(offset).limit(limit))]


async def _count_archived_days(
    rt: Runtime, selection: ClickSelection, link_ids: Sequence[int], files: Sequence[ArchiveFile]
) -> list[_Segment]:
    directory = ensure_directory(rt)
    names = await asyncio.to_thread(require_files, directory, files)
    by_day: dict[date, list[str]] = {}
    for file, name in zip(files, names, strict=True):
        by_day.setdefault(file.day, []).append(name)
    days = sorted(by_day, reverse=True)
    found: list[_Segment] = []
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        for begin in range(0, len(days), _FILES_PER_CALL):
            batch = days[begin : begin + _FILES_PER_CALL]
            counts = await process.call(
                _count_days,
                directory,
                [by_day[day] for day in batch],
                _describe(selection, link_ids),
            )
            found += [
                _Segment(count, by_day[day])
                for day, count in zip(batch, counts, strict=True)
                if count
            ]
    return found


async def _read_archived(
    rt: Runtime, counted: CountedClicks, files: Sequence[str], offset: int, limit: int
) -> list[Sequence[Any]]:
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        return await process.call(
            _read_day,
            ensure_directory(rt),
            files,
            _describe(counted.selection, counted.link_ids),
            offset,
            limit,
        )


_Description = tuple[Sequence[int], datetime | None, datetime | None, bool]


def _describe(selection: ClickSelection, link_ids: Sequence[int]) -> _Description:
    return link_ids, selection.begin, selection.end, selection.without_bots


def _build_filter(description: _Description) -> tuple[str, list[Any]]:
    link_ids, begin, end, without_bots = description
    parts, values = (
        ["kind = ?", "target_id IN (SELECT unnest(?::BIGINT[]))"],
        [
            LINK_CLICK,
            list(link_ids),
        ],
    )
    if begin is not None:
        parts.append('"at" >= ?')
        values.append(begin.astimezone(UTC))
    if end is not None:
        parts.append('"at" < ?')
        values.append(end.astimezone(UTC))
    if without_bots:
        parts.append("NOT bot")
    return " AND ".join(parts), values


def _count_days(
    directory: Path, days: Sequence[Sequence[str]], description: _Description
) -> list[int]:
    condition, values = _build_filter(description)
    counts: list[int] = []
    with open_connection(directory) as connection:
        for names in days:
            query = (
                f"SELECT count(*) FROM {build_source(directory, names)}"  # noqa: S608 - own words
                f" WHERE {condition}"
            )
            counts += [
                row[0] for batch in iter_batches(connection, query, values, 1) for row in batch
            ]
    return counts


def _read_day(
    directory: Path, names: Sequence[str], description: _Description, offset: int, limit: int
) -> list[Sequence[Any]]:
    condition, values = _build_filter(description)
    columns = ", ".join(f'"{name}"' for name in COLUMN_TYPES)
    order = ", ".join(f'"{name}" DESC' for name in _NEWEST)
    query = (
        f"SELECT {columns} FROM {build_source(directory, names)}"  # noqa: S608 - own words
        f" WHERE {condition} ORDER BY {order} LIMIT {int(limit)} OFFSET {int(offset)}"
    )
    with open_connection(directory) as connection:
        return [row for batch in iter_batches(connection, query, values, 1_000) for row in batch]


async def iter_click_batches(
    rt: Runtime, counted: CountedClicks, stretches: Sequence[tuple[int, int]]
) -> AsyncIterator[list[Sequence[Any]]]:
    """Yield the clicks of these stretches: offset and limit of each."""
    for offset, limit in stretches:
        yield await load_clicks(rt, counted, offset, limit)
