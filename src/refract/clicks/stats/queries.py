"""Queries of roll-ups: everything that a request needs in one query."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    and_,
    case,
    cast,
    literal,
    null,
    select,
    union_all,
)

from refract.clicks.models import ClickPack, ClickRollup, OpenRollup
from refract.clicks.rollups import day_cumulatives
from refract.clicks.rollups.breakdowns import BreakdownCounts
from refract.clicks.rollups.granularity import (
    DAY,
    GRAIN_SECONDS,
    MONTH,
    QUARTER,
    end_of,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.groups import load_group
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.rollups.sketches import encode_visitors
from refract.clicks.rollups.state import GrainRange, RollupProgress, plan_ranges, round_range
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.session import ReadSession
from refract.links.models import USER_LINKS, LinkOwner

MIN_CLICK_TIME: Final = 1_704_067_200  # 2024, when ids begin: no click is older
_MAX_STARTS: Final = 5_000
_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_OPEN: Final = 0
"""The grain of open roll-ups in results: quarter hours that are in no other row."""
_PACKED: Final = -1
"""The grain of quarter hours in packs."""

RollupTable = type[ClickRollup] | type[OpenRollup] | type[ClickPack]


class StatsRow(NamedTuple):
    """A roll-up. `visitors` is None where `uniques` is sufficient."""

    target: int
    grain: int
    start: int
    people: int
    bots: int
    private: int
    uniques: int
    visitors: bytes | None
    parts: bytes | BreakdownCounts | None
    edges: bytes | None = None


class PartialDay(NamedTuple):
    """The part of a UTC day between one of its ends and a quarter hour."""

    day: int
    quarter: int
    is_end: bool
    """Whether it is the part after that moment, not the one before it."""


@dataclass(slots=True)
class TargetGroup:
    """Targets, and their loaded rows."""

    build_condition: Callable[[RollupTable], ColumnElement[bool]]
    """Return the condition that selects these targets in a table."""
    is_single: bool
    """Whether it is one target: then the row of a closed day is sufficient for its visitors."""
    rows: dict[int, list[StatsRow]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[int, list[int]] = field(default_factory=dict)
    partial_days: set[int] = field(default_factory=set)
    """Days whose cumulatives are needed."""
    late_days: set[int] = field(default_factory=set)
    """Closed days with open rows: their own rows are not sufficient for their visitors."""

    def copy_empty(self) -> "TargetGroup":
        """Return the same targets without rows."""
        return TargetGroup(self.build_condition, self.is_single)

    def add_row(self, row: StatsRow) -> None:
        if row.grain == _PACKED:
            self.rows[_PACKED] += _iter_packed(row)
        else:
            self.rows[row.grain].append(row)

    def sort(self) -> None:
        for grain, rows in self.rows.items():
            rows.sort(key=lambda row: row.start)
            self.starts[grain] = [row.start for row in rows]

    def select_range(self, stretch: GrainRange) -> list[StatsRow]:
        starts = self.starts.get(stretch.grain, [])
        return (
            self.rows[stretch.grain][
                bisect_left(starts, stretch.begin) : bisect_left(starts, stretch.end)
            ]
            if starts
            else []
        )

    def select_partial_day(self, edge: PartialDay) -> list[StatsRow]:
        """Return the counts at one end of a day as a row; empty if the day has no clicks."""
        starts = self.starts.get(DAY, [])
        place = bisect_left(starts, edge.day)
        if place == len(starts) or starts[place] != edge.day:
            return []
        row = self.rows[DAY][place]
        assert row.edges is not None  # noqa: S101 - unfinalized days are excluded
        people, bots, uniques = (
            day_cumulatives.read_after if edge.is_end else day_cumulatives.read_before
        )(row.edges, edge.quarter)
        return [StatsRow(row.target, QUARTER, edge.day, people, bots, 0, uniques, None, None)]


class RollupQuery:
    """A query of the roll-ups of some targets.

    First add every range, then read once, then select the rows of each range.
    """

    def __init__(self, state: RollupProgress, groups: Sequence[TargetGroup], now: int) -> None:
        self.state = state
        self._groups = groups
        self._until = now + 3600  # clocks of nodes are not further ahead than this
        self._ranges: set[tuple[int, int, bool]] = set()
        self._requested: set[tuple[int, int, int]] = set()
        self._unfinalized: set[tuple[int, int]] = set()
        self._is_open_loaded = False

    def add_range(self, begin: int, end: int, *, parts: bool = False) -> None:
        self._ranges.add((begin, end, parts))

    async def read(
        self, session: ReadSession, *, visitors: bool = True, tops: bool = False
    ) -> None:
        """Load the rows of all ranges in one query.

        One more query is needed where clicks came late to a day, until they are folded and its
        cumulatives are recomputed. With `tops`, days with very many values come with their top
        values alone, instead of their breakdowns.
        """
        await self._load_rows(session, visitors=visitors, tops=tops)
        self._find_late_days()
        self._unfinalized |= {
            (number, row.start)
            for number, group in enumerate(self._groups)
            for row in group.rows[DAY]
            if row.edges is None and row.start in group.partial_days
        }
        if self._unfinalized:
            await self._load_rows(session, visitors=visitors, tops=tops)
        for group in self._groups:
            group.sort()

    def _find_late_days(self) -> None:
        """Let closed days that have open rows be loaded again, with their sketches."""
        today = start_of(DAY, self.state.closed_until)
        for number, group in enumerate(self._groups):
            if not group.is_single:  # has all sketches
                continue
            days = {start_of(DAY, row.start) for row in group.rows[_OPEN]}
            group.late_days = {day for day in days if day < today}
            self._unfinalized |= {(number, day) for day in group.late_days}
            self._requested -= {(number, DAY, day) for day in group.late_days}
            group.rows[DAY] = [row for row in group.rows[DAY] if row.start not in group.late_days]

    @property
    def row_count(self) -> int:
        """Return the number of loaded rows."""
        return sum(len(rows) for group in self._groups for rows in group.rows.values())

    def select_rows(self, begin: int, end: int, *, parts: bool = False) -> list[StatsRow]:
        """Return the rows that cover a range which was added with the same arguments."""
        found: list[StatsRow] = []
        for number, group in enumerate(self._groups):
            ends, stretches = self._split_range(number, begin, end, parts)
            found += [row for edge in ends for row in group.select_partial_day(edge)]
            found += [row for stretch in stretches for row in group.select_range(stretch)]
            rounded = self._round_range(begin, end)
            for grain in (_OPEN, _PACKED):
                found += group.select_range(GrainRange(grain, *rounded))
        return found

    async def _load_rows(self, session: ReadSession, *, visitors: bool, tops: bool) -> None:
        today = start_of(DAY, self.state.closed_until)
        branches = [
            _build_branch(number, group, today, needed, visitors=visitors, tops=tops)
            for number, group in enumerate(self._groups)
            for needed in self._iter_starts(number)
        ]
        branches += self._build_open_branches(visitors=visitors)
        if not branches:
            return
        question: Any = union_all(*branches) if len(branches) > 1 else branches[0]
        for found in await session.execute(question):
            values: tuple[Any, ...] = tuple(found)
            row = StatsRow._make((*values[1:3], to_seconds(values[3]), *values[4:]))
            self._groups[values[0]].add_row(row)

    def _build_open_branches(self, *, visitors: bool) -> list[Any]:
        """Return queries of the open roll-ups and packs of all ranges; none the second time."""
        if self._is_open_loaded or not self._ranges:
            return []
        self._is_open_loaded = True
        rounded = [self._round_range(begin, end) for begin, end, _ in self._ranges]
        begin, end = min(begin for begin, _ in rounded), max(end for _, end in rounded)
        parts = any(parts for _, _, parts in self._ranges)
        months = list(_iter_month_starts(GrainRange(MONTH, start_of(MONTH, begin), end)))
        branches = []
        for number, group in enumerate(self._groups):
            branches.append(
                _build_open_branch(number, group, begin, end, visitors=visitors, parts=parts)
            )
            branches.append(_build_pack_branch(number, group, months))
        return branches

    def _round_range(self, begin: int, end: int) -> tuple[int, int]:
        return round_range(self.state, max(begin, MIN_CLICK_TIME), min(end, self._until))

    def _split_range(
        self, number: int, begin: int, end: int, parts: bool
    ) -> tuple[list[PartialDay], list[GrainRange]]:
        """Split a range into ends of finalized days and, where that is impossible, ranges of rows.

        Ends of days are possible only for a single target, and not for breakdowns.
        """
        group = self._groups[number]
        begin, end = max(begin, MIN_CLICK_TIME), min(end, self._until)
        ends: list[PartialDay] = []
        if group.is_single and not parts:
            first, last = start_of(DAY, begin), start_of(DAY, end)
            if first < begin and first + _DAY_SECONDS <= end and self._is_finalized(number, first):
                ends.append(
                    PartialDay(first, (begin - first) // GRAIN_SECONDS[QUARTER], is_end=True)
                )
                begin = first + _DAY_SECONDS
            if begin <= last < end and self._is_finalized(number, last):
                ends.append(PartialDay(last, (end - last) // GRAIN_SECONDS[QUARTER], is_end=False))
                end = last
        return ends, plan_ranges(self.state, begin, end) if begin < end else []

    def _is_finalized(self, number: int, day: int) -> bool:
        return (
            self.state.quarters_from <= day < self.state.settled_until
            and (number, day) not in self._unfinalized
        )

    def _iter_starts(self, number: int) -> Iterator["_NeededStarts"]:
        """Yield the starts of the needed rows by grain and by need of breakdowns; no row twice."""
        needed: dict[tuple[int, bool], set[int]] = defaultdict(set)
        for begin, end, parts in self._ranges:
            ends, stretches = self._split_range(number, begin, end, parts)
            for stretch in stretches:
                needed[stretch.grain, parts].update(_iter_grain_starts(stretch))
            for edge in ends:
                needed[DAY, False].add(edge.day)
                self._groups[number].partial_days.add(edge.day)
        for grain, parts in sorted(needed, key=lambda key: (key[0], not key[1])):
            starts = {
                start
                for start in needed[grain, parts]
                if (number, grain, start) not in self._requested
            }
            self._requested |= {(number, grain, start) for start in starts}
            if starts:
                yield _NeededStarts(grain, sorted(starts), parts)


def group_target(target: int, kind: int) -> list[TargetGroup]:
    """Return the group of one target of any kind: a link, a list's page, an entry."""
    return [
        TargetGroup(
            lambda table: and_(table.target_id == target, table.kind == kind), is_single=True
        )
    ]


async def group_user_links(session: ReadSession, user_id: int) -> list[TargetGroup]:
    """Return the group of all links that a user owns or co-owns: one target if it has roll-ups."""
    group = await load_group(session, USER_LINKS, user_id)
    if group is not None and group.is_complete:
        return group_target(user_id, USER_LINKS)
    mine = select(LinkOwner.link_id).where(LinkOwner.user_id == user_id)
    return [
        TargetGroup(
            lambda table: and_(table.target_id.in_(mine), table.kind == LINK_CLICK), is_single=False
        )
    ]


_NO_BYTES: Final = cast(null(), LargeBinary)  # PostgreSQL takes a bare NULL for text


class _NeededStarts(NamedTuple):
    """Rows of one grain that a request needs, with or without breakdowns."""

    grain: int
    starts: list[int]
    parts: bool


def _build_branch(
    number: int,
    group: TargetGroup,
    today: int,
    needed: _NeededStarts,
    *,
    visitors: bool,
    tops: bool,
) -> Any:
    grain, starts, parts = needed
    sketch: ColumnElement[Any] = _NO_BYTES
    if visitors and grain != MONTH:
        sketch = ClickRollup.visitors.expression
        if group.is_single and grain == DAY:
            # A closed day has one row, whose `uniques` equals the count of its sketch.
            late = [to_datetime(day) for day in sorted(group.late_days)]
            is_closed = and_(ClickRollup.start < to_datetime(today), ClickRollup.start.not_in(late))
            sketch = case((is_closed, _NO_BYTES), else_=sketch)
    # Values that were computed from fewer clicks are invalid.
    settled = ClickRollup.settled_clicks == ClickRollup.people + ClickRollup.bots
    its_parts: ColumnElement[Any] = ClickRollup.parts.expression if parts else _NO_BYTES
    if parts and tops and grain == DAY:
        its_parts = case(
            (and_(settled, ClickRollup.tops.is_not(None)), ClickRollup.tops.expression),
            else_=its_parts,
        )
    its_edges: ColumnElement[Any] = _NO_BYTES
    if grain == DAY and group.partial_days:
        its_edges = case((settled, ClickRollup.edges.expression), else_=_NO_BYTES)
    chosen = (group.build_condition(ClickRollup), ClickRollup.grain == grain)
    return _select_rows(number, ClickRollup, ClickRollup.grain, sketch, its_parts, its_edges).where(
        *chosen, _build_start_filter(grain, starts)
    )


def _build_open_branch(
    number: int, group: TargetGroup, begin: int, end: int, *, visitors: bool, parts: bool
) -> Any:
    sketch = OpenRollup.visitors.expression if visitors else _NO_BYTES
    its_parts = OpenRollup.parts.expression if parts else _NO_BYTES
    return _select_rows(number, OpenRollup, literal(_OPEN), sketch, its_parts, _NO_BYTES).where(
        group.build_condition(OpenRollup),
        OpenRollup.start >= to_datetime(begin),
        OpenRollup.start < to_datetime(end),
    )


def _build_pack_branch(number: int, group: TargetGroup, months: list[int]) -> Any:
    """Return a query of packs, whose entries are in the column of the breakdowns."""
    return select(
        literal(number).label("number"),
        ClickPack.target_id,
        literal(_PACKED).label("grain"),
        ClickPack.start,
        ClickPack.people,
        ClickPack.bots,
        literal(0).label("private"),
        literal(0).label("uniques"),
        _NO_BYTES.label("visitors"),
        ClickPack.data.label("parts"),
        _NO_BYTES.label("edges"),
    ).where(
        ClickPack.start.in_([to_datetime(month) for month in months]),
        group.build_condition(ClickPack),
    )


def _iter_packed(pack: StatsRow) -> Iterator[StatsRow]:
    """Yield the quarter hours of a pack."""
    assert isinstance(pack.parts, bytes)  # noqa: S101 - see above
    for start, delta in iter_entries(pack.start, pack.parts):
        visitors = set(delta.visitors)
        sketch = encode_visitors(visitors) if visitors else None
        clicks = (delta.people, delta.bots, delta.private, len(visitors))
        yield StatsRow(pack.target, _PACKED, start, *clicks, sketch, delta.parts)


def _select_rows(
    number: int,
    table: type[ClickRollup] | type[OpenRollup],
    grain: Any,
    visitors: ColumnElement[Any],
    parts: ColumnElement[Any],
    edges: ColumnElement[Any],
) -> Any:
    """Return a query of the columns of `StatsRow`, after the number of the group."""
    return select(
        literal(number).label("number"),
        table.target_id,
        grain.label("grain"),
        table.start,
        table.people,
        table.bots,
        table.private,
        table.uniques,
        visitors.label("visitors"),
        parts.label("parts"),
        edges.label("edges"),
    )


def _build_start_filter(grain: int, starts: list[int]) -> ColumnElement[bool]:
    """Filter by a range if the starts are gapless, else by each; both use the primary key."""
    if grain == MONTH:
        gapless = all(end_of(grain, start) == following for start, following in pairwise(starts))
    else:
        gapless = starts[-1] - starts[0] == (len(starts) - 1) * GRAIN_SECONDS[grain]
    if gapless or len(starts) > _MAX_STARTS:
        return and_(
            ClickRollup.start >= to_datetime(starts[0]),
            ClickRollup.start <= to_datetime(starts[-1]),
        )
    return ClickRollup.start.in_([to_datetime(start) for start in starts])


def _iter_grain_starts(stretch: GrainRange) -> Iterable[int]:
    """Return the starts of a range; of thousands of quarter hours while none are closed yet."""
    if stretch.grain == MONTH:
        return _iter_month_starts(stretch)
    return range(stretch.begin, stretch.end, GRAIN_SECONDS[stretch.grain])


def _iter_month_starts(stretch: GrainRange) -> Iterator[int]:
    at = stretch.begin
    while at < stretch.end:
        yield at
        at = end_of(MONTH, at)
