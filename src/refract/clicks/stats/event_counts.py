"""Clicks counted one by one, for filters that roll-ups cannot answer.

Recent clicks are counted by the database, older ones in their column files by DuckDB, in a process
of its own. Both belong to one snapshot, so each click is counted once.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Integer,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    union_all,
)

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import (
    COLUMN_LIST,
    build_source,
    load_events,
    open_connection,
)
from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.archive.service import (
    ensure_directory,
    get_day_start,
    list_files,
    require_files,
    use_snapshot,
)
from refract.clicks.models import ClickEvent
from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER, to_datetime, to_seconds
from refract.clicks.stats.filters import (
    FILE_EXPRESSIONS,
    VALUE_EXPRESSIONS,
    ClickFilter,
    match_archived,
    match_events,
)
from refract.clicks.stats.results import ClickCounts
from refract.clicks.stats.scope import LinkScope, StatsScope
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime

_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_AGENT_ID: Final = ClickEvent.__table__.c.agent_id
_CELLS, _DAYS, _VALUES = 0, 1, 2
CountRow = tuple[int, int, str, int, int, int]
"""What is counted (cells, days, from 2 on the values of a dimension), number, value, counts."""


@dataclass(slots=True)
class EventCounts:
    """Clicks by bucket, in total and by value, of one period."""

    buckets: list[ClickCounts]
    totals: ClickCounts
    values: dict[str, Counter[str]]
    kept_from: int = 0
    """Clicks before this moment are no longer kept, in seconds."""


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Clicks to be counted: their links, filter and period, and what they are counted by."""

    scope: StatsScope
    chosen: ClickFilter
    edges: Sequence[int]
    """The beginnings of the buckets, and the end of the last one. On quarter hours."""
    dimensions: Sequence[str] = ()
    link_ids: Sequence[int] = field(default=())
    """The links of the scope, for the process that reads files."""

    @property
    def begin(self) -> int:
        return self.edges[0]

    @property
    def end(self) -> int:
        return self.edges[-1]

    @property
    def kind(self) -> int:
        return self.scope.kind


async def count_events(
    rt: Runtime, scope: StatsScope, chosen: ClickFilter, edges: Sequence[int], *dimensions: str
) -> EventCounts:
    """Count the clicks of a period that a filter matches.

    Six queries, and a call of the process that reads files if there are any.
    """
    asked = EventQuery(scope, chosen, edges, dimensions)
    first, last = (to_datetime(at).date() for at in (asked.begin, asked.end - 1))
    async with rt.db.read() as session:
        await use_snapshot(session)
        files = await list_files(session, first, last)
        dropped = await session.scalar(
            select(func.max(ArchiveFile.day)).where(ArchiveFile.dropped_at.is_not(None))
        )
        days = sorted({file.day for file in files})
        rows = await _count_recent(session, asked, days)
        late = await _load_late_events(session, asked, days) if files else []
        links = await _load_link_ids(session, scope) if files else []
    if files:
        asked = EventQuery(scope, chosen, edges, dimensions, links)
        directory = ensure_directory(rt)
        names = await asyncio.to_thread(require_files, directory, files)
        processes = rt.singleton(ArchiveProcesses)
        async with processes.counting, processes.acquire() as process:
            rows += await process.call(_count_archived, directory, names, asked, late)
    kept_from = to_seconds(get_day_start(dropped + timedelta(days=1))) if dropped else 0
    return await asyncio.to_thread(_sum_rows, asked, rows, kept_from)


def _sum_rows(asked: EventQuery, rows: Sequence[CountRow], kept_from: int) -> EventCounts:
    buckets = [[0, 0, 0] for _ in asked.edges[1:]]
    uniques, values = 0, {dimension: Counter[str]() for dimension in asked.dimensions}
    for part, number, value, people, bots, visitors in rows:
        if part == _CELLS:
            bucket = buckets[number]
            bucket[0] += people
            bucket[1] += bots
            bucket[2] += visitors
        elif part == _DAYS:
            uniques += visitors
        elif value:
            values[asked.dimensions[part - _VALUES]][value] += people
    clicks, bots = (sum(bucket[place] for bucket in buckets) for place in (0, 1))
    counts = [ClickCounts(people, visitors, robots) for people, robots, visitors in buckets]
    return EventCounts(counts, ClickCounts(clicks, uniques, bots), values, kept_from)


# Recent clicks, in the database.


async def _count_recent(
    session: ReadSession, asked: EventQuery, archived: Sequence[date]
) -> list[CountRow]:
    oldest: datetime | None = await session.scalar(select(func.min(EVENT_COLUMNS["at"])))
    if oldest is None or to_seconds(oldest) >= asked.end:
        return []
    begin = max(asked.begin, to_seconds(oldest) // _QUARTER_SECONDS * _QUARTER_SECONDS)
    edges = sorted(
        {begin, asked.end}
        | {edge for edge in asked.edges if begin < edge}
        | set(range((begin // _DAY_SECONDS + 1) * _DAY_SECONDS, asked.end, _DAY_SECONDS))
    )
    found: list[CountRow] = []
    for row in await session.execute(_build_recent_query(asked, edges, archived)):
        part, number, value, people, bots, visitors = row
        if part == _CELLS:
            number = bisect_right(asked.edges, edges[number]) - 1
        # MariaDB adds up decimals.
        found.append((part, number, value or "", int(people), int(bots or 0), visitors or 0))
    return found


def _build_recent_query(asked: EventQuery, edges: list[int], archived: Sequence[date]) -> Any:
    """Return a query of all counts, over one set of matching events.

    A cell is the part of a bucket in one UTC day: a visitor of two days is two visitors.
    """
    column = EVENT_COLUMNS
    agent = func.coalesce(cast(_AGENT_ID, String(20)), column["user_agent"], "")
    visitor = func.coalesce(column["network"], "") + literal(" ") + agent
    days = [edge for edge in edges if edge % _DAY_SECONDS == 0]
    matching = (
        select_events(
            _find_place(column["at"], edges[1:-1], 0).label("cell"),
            _find_place(column["at"], days, 0).label("day"),
            column["bot"].label("bot"),
            case((column["bot"].is_(False), visitor)).label("visitor"),
            *(VALUE_EXPRESSIONS[name].label(f"value_{name}") for name in asked.dimensions),
        )
        .where(*_match_recent(asked, edges[0]), ~_match_days(archived))
        .cte("matching")
    )
    found = matching.c
    people = func.sum(case((found.bot.is_(False), 1), else_=0))
    bots = func.sum(case((found.bot.is_(False), 0), else_=1))
    uniques = func.count(found.visitor.distinct())
    nothing = literal(0, Integer)
    branches = [
        select(literal(_CELLS), found.cell, literal(""), people, bots, uniques).group_by(
            found.cell
        ),
        select(literal(_DAYS), found.day, literal(""), people, bots, uniques).group_by(found.day),
    ]
    for number, name in enumerate(asked.dimensions, _VALUES):
        value = found[f"value_{name}"]
        branches.append(
            select(
                literal(number), nothing, cast(value, String(512)), func.count(), nothing, nothing
            )
            .where(found.bot.is_(False), value.is_not(None))
            .group_by(value)
        )
    return union_all(*branches)


def _find_place(at: ColumnElement[Any], edges: Sequence[int], first: int) -> ColumnElement[int]:
    """Return how many of these moments are not after `at`, by halving."""
    if not edges:
        return literal(first, Integer)
    middle = len(edges) // 2
    return case(
        (at < to_datetime(edges[middle]), _find_place(at, edges[:middle], first)),
        else_=_find_place(at, edges[middle + 1 :], first + middle + 1),
    )


def match_targets(scope: StatsScope, *, is_brief: bool = False) -> ColumnElement[bool]:
    """Return the condition of events on the links of a scope.

    Events of a brief time are few: they are found by time, and not by each link of the scope.
    """
    target = EVENT_COLUMNS["target_id"]
    if isinstance(scope, LinkScope):
        return target == scope.link_id
    links = scope.select_links()
    if is_brief:
        return links.where(links.selected_columns[0] == target).exists()
    return target.in_(links)


def _match_recent(asked: EventQuery, begin: int) -> list[ColumnElement[bool]]:
    return [
        match_targets(asked.scope),
        EVENT_COLUMNS["kind"] == asked.kind,
        EVENT_COLUMNS["at"] >= to_datetime(begin),
        EVENT_COLUMNS["at"] < to_datetime(asked.end),
        match_events(asked.chosen),
    ]


def _match_days(days: Sequence[date]) -> ColumnElement[bool]:
    """Return the condition of events of these days."""
    at = EVENT_COLUMNS["at"]
    ranges: list[list[datetime]] = []
    for day in days:
        begin = get_day_start(day)
        if ranges and ranges[-1][1] == begin:
            ranges[-1][1] += timedelta(days=1)
        else:
            ranges.append([begin, begin + timedelta(days=1)])
    return or_(literal(1) == 0, *(and_(at >= begin, at < end) for begin, end in ranges))


async def _load_late_events(
    session: ReadSession, asked: EventQuery, days: Sequence[date]
) -> list[tuple[Any, ...]]:
    """Return the events in the database of days that have files: normally a few late clicks.

    They are counted together with those in the files, since visitors of one day are not added up.
    """
    conditions = (*_match_recent(asked, asked.begin), _match_days(days))
    return [tuple(row) for row in await session.execute(select_events().where(*conditions))]


async def _load_link_ids(session: ReadSession, scope: StatsScope) -> list[int]:
    if isinstance(scope, LinkScope):
        return [scope.link_id]
    return sorted(await session.scalars(scope.select_links()))


# Older clicks, in files. Runs in the process that reads them.


def _count_archived(
    directory: Path, names: Sequence[str], asked: EventQuery, late: Sequence[tuple[Any, ...]]
) -> list[CountRow]:
    matched, parameters = match_archived(asked.chosen)
    source = f"SELECT {COLUMN_LIST} FROM {build_source(directory, names)}"  # noqa: S608
    if late:
        source += f" UNION ALL SELECT {COLUMN_LIST} FROM events"  # noqa: S608
    links = "target_id = ?" if len(asked.link_ids) == 1 else "target_id IN (SELECT unnest(?))"
    matching = (
        f'FROM ({source}) WHERE {links} AND kind = ? AND "at" >= ? AND "at" < ? AND {matched}'
    )
    values = [
        asked.link_ids[0] if len(asked.link_ids) == 1 else list(asked.link_ids),
        asked.kind,
        to_datetime(asked.begin),
        to_datetime(asked.end),
        *parameters,
    ]
    with open_connection(directory) as connection:
        if late:
            load_events(connection, late)
        found = _count_archived_buckets(connection, asked, matching, values)
        if asked.dimensions:
            found += _count_archived_values(connection, asked, matching, values)
    return found


def _count_archived_buckets(
    connection: Any, asked: EventQuery, matching: str, values: list[Any]
) -> list[CountRow]:
    """Count by bucket and UTC day. A list tells the bucket of each quarter hour."""
    first = asked.begin // _QUARTER_SECONDS
    buckets = [
        number
        for number, (begin, end) in enumerate(pairwise(asked.edges))
        for _ in range(begin, end, _QUARTER_SECONDS)
    ]
    question = (
        'SELECT bucket, "day", count(*) FILTER (NOT bot), count(*) FILTER (bot),'  # noqa: S608
        " count(DISTINCT visitor) FILTER (NOT bot) FROM (SELECT"
        f' list_extract(?::SMALLINT[], (epoch_us("at") // 900000000 - {first} + 1)) AS bucket,'
        ' epoch_us("at") // 86400000000 AS "day", bot,'
        f" hash(coalesce(network, ''), coalesce(user_agent, '')) AS visitor {matching})"
        ' GROUP BY GROUPING SETS ((bucket, "day"), ("day"))'
    )
    return [
        (_DAYS if bucket is None else _CELLS, bucket or 0, "", people, bots, uniques)
        for bucket, _, people, bots, uniques in connection.execute(
            question, [buckets, *values]
        ).fetchall()
    ]


def _count_archived_values(
    connection: Any, asked: EventQuery, matching: str, values: list[Any]
) -> list[CountRow]:
    names = [f"value{number}" for number in range(len(asked.dimensions))]
    columns = ", ".join(
        f"{FILE_EXPRESSIONS[dimension]} AS {name}"
        for name, dimension in zip(names, asked.dimensions, strict=True)
    )
    question = (
        f"SELECT count(*), {', '.join(names)}"  # noqa: S608 - our own columns
        f" FROM (SELECT {columns} {matching} AND NOT bot)"
        f" GROUP BY GROUPING SETS ({', '.join(f'({name})' for name in names)})"
    )
    found: list[CountRow] = []
    for clicks, *row in connection.execute(question, values).fetchall():
        for number, value in enumerate(row):
            if value is not None:
                found.append((_VALUES + number, 0, str(value), clicks, 0, 0))
    return found
