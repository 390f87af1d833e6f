"""Queries of roll-ups: everything that a request needs in one query."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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

from refract.clicks.models import ClickRollup
from refract.clicks.rollups import day_cumulatives
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
from refract.clicks.rollups.state import GrainRange, RollupProgress, plan_ranges
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.session import ReadSession
from refract.links.models import LinkOwner

MIN_CLICK_TIME: Final = 1_704_067_200  # 2024, when ids begin: no click is older
_MAX_STARTS: Final = 5_000
_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]


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
    parts: bytes | None
    edges: bytes | None = None


class PartialDay(NamedTuple):
    """The part of a UTC day between one of its ends and a quarter hour."""

    day: int
    quarter: int
    is_end: bool
    """Whether it is the part after that moment, not the one before it."""


@dataclass(slots=True)
class TargetGroup:
    """Targets that are closed up to the same hour, and their loaded rows."""

    condition: ColumnElement[bool]
    closed_until: int
    is_single: bool
    """Whether it is one target: then the row of a closed day is sufficient for its visitors."""
    rows: dict[int, list[StatsRow]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[int, list[int]] = field(default_factory=dict)
    partial_days: set[int] = field(default_factory=set)
    """Days whose cumulatives are needed."""

    def copy_empty(self) -> "TargetGroup":
        """Return the same targets without rows."""
        return TargetGroup(self.condition, self.closed_until, self.is_single)

    def add_row(self, row: StatsRow) -> None:
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

    def add_range(self, begin: int, end: int, *, parts: bool = False) -> None:
        self._ranges.add((begin, end, parts))

    async def read(
        self, session: ReadSession, *, visitors: bool = True, tops: bool = False
    ) -> None:
        """Load the rows of all ranges in one query.

        One more query is needed where clicks came late to a day and its cumulatives are not
        recomputed yet. With `tops`, days with very many values come with their top values alone,
        instead of their breakdowns.
        """
        await self._load_rows(session, visitors=visitors, tops=tops)
        self._unfinalized = {
            (number, row.start)
            for number, group in enumerate(self._groups)
            for row in group.rows[DAY]
            if row.edges is None and row.start in group.partial_days
        }
        if self._unfinalized:
            await self._load_rows(session, visitors=visitors, tops=tops)
        for group in self._groups:
            group.sort()

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
        return found

    async def _load_rows(self, session: ReadSession, *, visitors: bool, tops: bool) -> None:
        branches = [
            _build_branch(number, group, grain, starts, visitors=visitors, parts=parts, tops=tops)
            for number, group in enumerate(self._groups)
            for grain, starts, parts in self._iter_starts(number)
        ]
        if not branches:
            return
        question: Any = union_all(*branches) if len(branches) > 1 else branches[0]
        for found in await session.execute(question):
            values: tuple[Any, ...] = tuple(found)
            row = StatsRow._make((*values[1:3], to_seconds(values[3]), *values[4:]))
            self._groups[values[0]].add_row(row)

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
        return ends, (
            plan_ranges(self.state, begin, end, closed=group.closed_until) if begin < end else []
        )

    def _is_finalized(self, number: int, day: int) -> bool:
        return (
            self.state.quarters_from <= day < self.state.settled_until
            and (number, day) not in self._unfinalized
        )

    def _iter_starts(self, number: int) -> Iterator[tuple[int, list[int], bool]]:
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
                yield grain, sorted(starts), parts


def group_target(state: RollupProgress, target: int, kind: int) -> list[TargetGroup]:
    """Return the group of one target of any kind: a link, a list's page, an entry."""
    chosen = and_(ClickRollup.target_id == target, ClickRollup.kind == kind)
    return [TargetGroup(chosen, state.get_closed_until(target), is_single=True)]


def group_owned_links(state: RollupProgress, user_id: int) -> list[TargetGroup]:
    """Return the groups of all links that a user owns or co-owns.

    While an hour is being closed, some of them are an hour ahead of the others.
    """
    mine = select(LinkOwner.link_id).where(LinkOwner.user_id == user_id)
    owned = (ClickRollup.target_id.in_(mine), ClickRollup.kind == LINK_CLICK)
    if state.closed_target < 0:
        return [TargetGroup(and_(*owned), state.closed_until, is_single=False)]
    ahead, behind = (
        ClickRollup.target_id <= state.closed_target,
        ClickRollup.target_id > state.closed_target,
    )
    return [
        TargetGroup(
            and_(*owned, ahead), state.get_closed_until(state.closed_target), is_single=False
        ),
        TargetGroup(and_(*owned, behind), state.closed_until, is_single=False),
    ]


def _build_branch(
    number: int,
    group: TargetGroup,
    grain: int,
    starts: list[int],
    *,
    visitors: bool,
    parts: bool,
    tops: bool,
) -> Any:
    none = cast(null(), LargeBinary)  # PostgreSQL takes a bare NULL for text
    sketch: ColumnElement[Any] = none
    if visitors and grain != MONTH:
        sketch = ClickRollup.visitors.expression
        if group.is_single and grain == DAY:
            # A closed day has one row, whose `uniques` equals the count of its sketch.
            sketch = case(
                (ClickRollup.start < to_datetime(start_of(DAY, group.closed_until)), none),
                else_=sketch,
            )
    # Values that were computed from fewer clicks are invalid.
    settled = ClickRollup.settled_clicks == ClickRollup.people + ClickRollup.bots
    its_parts: ColumnElement[Any] = ClickRollup.parts.expression if parts else none
    if parts and tops and grain == DAY:
        its_parts = case(
            (and_(settled, ClickRollup.tops.is_not(None)), ClickRollup.tops.expression),
            else_=its_parts,
        )
    its_edges = (
        case((settled, ClickRollup.edges.expression), else_=none)
        if grain == DAY and group.partial_days
        else none
    )
    columns = (
        literal(number).label("number"),
        ClickRollup.target_id,
        ClickRollup.grain,
        ClickRollup.start,
        ClickRollup.people,
        ClickRollup.bots,
        ClickRollup.private,
        ClickRollup.uniques,
        sketch.label("visitors"),
        its_parts.label("parts"),
        its_edges.label("edges"),
    )
    return select(*columns).where(
        group.condition, ClickRollup.grain == grain, _build_start_filter(grain, starts)
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
