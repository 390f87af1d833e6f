"""Queries of roll-ups: everything that a request needs in one query."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import union_all

from refract.clicks.rollups.granularity import (
    DAY,
    GRAIN_SECONDS,
    MONTH,
    QUARTER,
    end_of,
    start_of,
    to_seconds,
)
from refract.clicks.rollups.state import GrainRange, RollupProgress, plan_ranges, round_range
from refract.clicks.stats.rollup_selects import (
    NeededStarts,
    select_open_rollups,
    select_packs,
    select_rollups,
)
from refract.clicks.stats.target_groups import (
    OPEN_GRAIN,
    PACKED_GRAIN,
    PartialDay,
    StatsRow,
    TargetGroup,
)
from refract.core.db.session import ReadSession

MIN_CLICK_TIME: Final = 1_704_067_200  # 2024, when ids begin: no click is older
_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]


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
            days = {start_of(DAY, row.start) for row in group.rows[OPEN_GRAIN]}
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
            for grain in (OPEN_GRAIN, PACKED_GRAIN):
                found += group.select_range(GrainRange(grain, *rounded))
        return found

    async def _load_rows(self, session: ReadSession, *, visitors: bool, tops: bool) -> None:
        today = start_of(DAY, self.state.closed_until)
        branches = [
            select_rollups(number, group, today, needed, visitors=visitors, tops=tops)
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
                select_open_rollups(number, group, begin, end, visitors=visitors, parts=parts)
            )
            branches.append(select_packs(number, group, months))
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

    def _iter_starts(self, number: int) -> Iterator[NeededStarts]:
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
                yield NeededStarts(grain, sorted(starts), parts)


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
