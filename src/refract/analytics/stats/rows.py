"""Roll-ups as statistics read them: everything that a question needs in one query."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, LargeBinary, and_, case, cast, literal, null, select, union_all

from refract.analytics import edges
from refract.analytics.cover import State, Stretch, cover
from refract.analytics.frames import LINK_CLICK
from refract.analytics.grains import DAY, MONTH, QUARTER, SECONDS, end_of, moment_of, second_of, start_of
from refract.analytics.models import ClickRollup
from refract.core.db import ReadSession
from refract.links.models import LinkOwner

FIRST_MOMENT: Final = 1_704_067_200  # 2024, when ids begin: no click is older
_MOST_STARTS: Final = 5_000
_DAY: Final = SECONDS[DAY]


class Row(NamedTuple):
    """One roll-up. `visitors` is left out where nobody needs it, since `uniques` says the same."""

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


class Edge(NamedTuple):
    """A part of a UTC day that reaches from one of its ends to a quarter hour in it."""

    day: int
    quarter: int
    late: bool
    """Whether it is the part behind that moment, not the one before it."""


@dataclass(slots=True)
class Group:
    """Targets that are closed up to the same hour, and what was read of them."""

    chosen: ColumnElement[bool]
    closed: int
    alone: bool
    """Whether it is one target: then a closed day's row says all about its visitors."""
    rows: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[int, list[int]] = field(default_factory=dict)
    edged: set[int] = field(default_factory=set)
    """Days whose edges are wanted."""

    def unread(self) -> "Group":
        """The same targets, nothing read yet."""
        return Group(self.chosen, self.closed, self.alone)

    def keep(self, row: Row) -> None:
        self.rows[row.grain].append(row)

    def sort(self) -> None:
        for grain, rows in self.rows.items():
            rows.sort(key=lambda row: row.start)
            self.starts[grain] = [row.start for row in rows]

    def within(self, stretch: Stretch) -> list[Row]:
        starts = self.starts.get(stretch.grain, [])
        return self.rows[stretch.grain][bisect_left(starts, stretch.begin) : bisect_left(starts, stretch.end)] if starts else []

    def at(self, edge: Edge) -> list[Row]:
        """What happened at one end of a day, as a row of its own; none when nothing did on that day."""
        starts = self.starts.get(DAY, [])
        place = bisect_left(starts, edge.day)
        if place == len(starts) or starts[place] != edge.day:
            return []
        row = self.rows[DAY][place]
        assert row.edges is not None  # noqa: S101 - or the day would be among the unsettled
        people, bots, uniques = (edges.after if edge.late else edges.before)(row.edges, edge.quarter)
        return [Row(row.target, QUARTER, edge.day, people, bots, 0, uniques, None, None)]


class Reading:
    """The roll-ups of some targets. Name every span first, then read once, then look at the spans."""

    def __init__(self, state: State, groups: Sequence[Group], now: int) -> None:
        self.state = state
        self._groups = groups
        self._until = now + 3600  # nothing lies further ahead than clocks are wrong
        self._spans: set[tuple[int, int, bool]] = set()
        self._asked: set[tuple[int, int, int]] = set()
        self._unsettled: set[tuple[int, int]] = set()

    def want(self, begin: int, end: int, *, parts: bool = False) -> None:
        self._spans.add((begin, end, parts))

    async def read(self, session: ReadSession, *, visitors: bool = True, tops: bool = False) -> None:
        """One query, however many spans; one more where clicks came late to a day and its edges are yet to be found out anew.

        With `tops`, days with very many values come with the most frequent alone, instead of their breakdowns.
        """
        await self._ask(session, visitors=visitors, tops=tops)
        self._unsettled = {
            (number, row.start)
            for number, group in enumerate(self._groups)
            for row in group.rows[DAY]
            if row.edges is None and row.start in group.edged
        }
        if self._unsettled:
            await self._ask(session, visitors=visitors, tops=tops)
        for group in self._groups:
            group.sort()

    @property
    def size(self) -> int:
        """How many rows were read."""
        return sum(len(rows) for group in self._groups for rows in group.rows.values())

    def within(self, begin: int, end: int, *, parts: bool = False) -> list[Row]:
        """The rows that hold a span which was wanted like this."""
        found: list[Row] = []
        for number, group in enumerate(self._groups):
            ends, stretches = self._cut(number, begin, end, parts)
            found += [row for edge in ends for row in group.at(edge)]
            found += [row for stretch in stretches for row in group.within(stretch)]
        return found

    async def _ask(self, session: ReadSession, *, visitors: bool, tops: bool) -> None:
        branches = [
            _branch(number, group, grain, starts, visitors=visitors, parts=parts, tops=tops)
            for number, group in enumerate(self._groups)
            for grain, starts, parts in self._starts(number)
        ]
        if not branches:
            return
        question: Any = union_all(*branches) if len(branches) > 1 else branches[0]
        for found in await session.execute(question):
            values: tuple[Any, ...] = tuple(found)
            row = Row._make((*values[1:3], second_of(values[3]), *values[4:]))
            self._groups[values[0]].keep(row)

    def _cut(self, number: int, begin: int, end: int, parts: bool) -> tuple[list[Edge], list[Stretch]]:
        """A span as ends of settled days and, where it cannot be had so, rows. Only of one target, and not for breakdowns."""
        group = self._groups[number]
        begin, end = max(begin, FIRST_MOMENT), min(end, self._until)
        ends: list[Edge] = []
        if group.alone and not parts:
            first, last = start_of(DAY, begin), start_of(DAY, end)
            if first < begin and first + _DAY <= end and self._is_settled(number, first):
                ends.append(Edge(first, (begin - first) // SECONDS[QUARTER], late=True))
                begin = first + _DAY
            if begin <= last < end and self._is_settled(number, last):
                ends.append(Edge(last, (end - last) // SECONDS[QUARTER], late=False))
                end = last
        return ends, cover(self.state, begin, end, closed=group.closed) if begin < end else []

    def _is_settled(self, number: int, day: int) -> bool:
        return self.state.quarters_from <= day < self.state.settled_until and (number, day) not in self._unsettled

    def _starts(self, number: int) -> Iterator[tuple[int, list[int], bool]]:
        """For each grain where the wanted rows begin, those with breakdowns apart from the others; no row twice."""
        wanted: dict[tuple[int, bool], set[int]] = defaultdict(set)
        for begin, end, parts in self._spans:
            ends, stretches = self._cut(number, begin, end, parts)
            for stretch in stretches:
                wanted[stretch.grain, parts].update(_moments(stretch))
            for edge in ends:
                wanted[DAY, False].add(edge.day)
                self._groups[number].edged.add(edge.day)
        for grain, parts in sorted(wanted, key=lambda one: (one[0], not one[1])):
            starts = {start for start in wanted[grain, parts] if (number, grain, start) not in self._asked}
            self._asked |= {(number, grain, start) for start in starts}
            if starts:
                yield grain, sorted(starts), parts


def of_target(state: State, target: int, kind: int) -> list[Group]:
    """One target of any kind: a link, a list's page, an entry."""
    chosen = and_(ClickRollup.target_id == target, ClickRollup.kind == kind)
    return [Group(chosen, state.closed_for(target), alone=True)]


def of_owner(state: State, user_id: int) -> list[Group]:
    """All links that somebody owns or co-owns. While an hour is being closed, some of them are an hour ahead of the others."""
    mine = select(LinkOwner.link_id).where(LinkOwner.user_id == user_id)
    owned = (ClickRollup.target_id.in_(mine), ClickRollup.kind == LINK_CLICK)
    if state.closed_target < 0:
        return [Group(and_(*owned), state.closed_until, alone=False)]
    ahead, behind = ClickRollup.target_id <= state.closed_target, ClickRollup.target_id > state.closed_target
    return [
        Group(and_(*owned, ahead), state.closed_for(state.closed_target), alone=False),
        Group(and_(*owned, behind), state.closed_until, alone=False),
    ]


def _branch(number: int, group: Group, grain: int, starts: list[int], *, visitors: bool, parts: bool, tops: bool) -> Any:
    none = cast(null(), LargeBinary)  # PostgreSQL takes a bare NULL for text
    sketch: ColumnElement[Any] = none
    if visitors and grain != MONTH:
        sketch = ClickRollup.visitors.expression
        if group.alone and grain == DAY:
            # Of a day that is closed there is one row, whose `uniques` says what its sketch would.
            sketch = case((ClickRollup.start < moment_of(start_of(DAY, group.closed)), none), else_=sketch)
    settled = ClickRollup.settled_clicks == ClickRollup.people + ClickRollup.bots  # what was found out of fewer clicks says nothing
    its_parts: ColumnElement[Any] = ClickRollup.parts.expression if parts else none
    if parts and tops and grain == DAY:
        its_parts = case((and_(settled, ClickRollup.tops.is_not(None)), ClickRollup.tops.expression), else_=its_parts)
    its_edges = case((settled, ClickRollup.edges.expression), else_=none) if grain == DAY and group.edged else none
    return select(
        literal(number).label("number"),
        ClickRollup.target_id, ClickRollup.grain, ClickRollup.start, ClickRollup.people, ClickRollup.bots, ClickRollup.private,
        ClickRollup.uniques, sketch.label("visitors"), its_parts.label("parts"), its_edges.label("edges"),
    ).where(group.chosen, ClickRollup.grain == grain, _begins_in(grain, starts))  # fmt: skip


def _begins_in(grain: int, starts: list[int]) -> ColumnElement[bool]:
    """A range where it is one, else the single moments: both are looked up in the primary key."""
    gapless = all(end_of(grain, one) == other for one, other in pairwise(starts))
    if gapless or len(starts) > _MOST_STARTS:
        return and_(ClickRollup.start >= moment_of(starts[0]), ClickRollup.start <= moment_of(starts[-1]))
    return ClickRollup.start.in_([moment_of(start) for start in starts])


def _moments(stretch: Stretch) -> Iterator[int]:
    at = stretch.begin
    while at < stretch.end:
        yield at
        at = end_of(stretch.grain, at)
