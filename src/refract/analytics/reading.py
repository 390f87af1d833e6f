"""Roll-ups as readers want them: whichever rows hold a range of time, in one query."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Table, and_, or_, select

from refract.analytics import sketches
from refract.analytics.cover import State, Stretch, cover
from refract.analytics.grains import DAY, HOUR, MONTH, SECONDS, moment_of, second_of, start_of
from refract.analytics.models import ClickRollup
from refract.core.db import ReadSession

_TABLE: Table = ClickRollup.__table__  # type: ignore[assignment]


class RollupRow(NamedTuple):
    """One row of roll-ups. `start` in seconds; what was not asked for is None."""

    target_id: int
    kind: int
    grain: int
    start: int
    people: int
    bots: int
    private: int
    uniques: int
    visitors: bytes | None
    parts: bytes | None


class Counts(NamedTuple):
    """Clicks of people, of bots beside them, of the people those who wish to be private, and different visitors."""

    people: int = 0
    bots: int = 0
    private: int = 0
    uniques: int = 0


async def rows_of(
    session: ReadSession,
    state: State,
    kind: int,
    targets: Sequence[int],
    ranges: Iterable[tuple[int, int]],
    *,
    visitors: bool = True,
    parts: bool = True,
) -> list[RollupRow]:
    """The rows that hold these ranges of time, each [begin, end) on quarter hours, of these targets, in order of time.

    Every row lies in exactly one of the ranges, by its `start`, unless a range had to be rounded outwards (see `cover`).
    `state` comes from `state.state_of` in the same session.
    """
    spans = list(ranges)
    wanted = [_these(kind, some, _together(state, spans, closed)) for closed, some in _by_progress(state, targets)]
    conditions = [condition for condition in wanted if condition is not None]
    if not conditions:
        return []
    left_out = {name for name, wanted in (("visitors", visitors), ("parts", parts)) if not wanted}
    columns = [_TABLE.c[name] for name in RollupRow._fields if name not in left_out]
    found = await session.execute(select(*columns).where(or_(*conditions)).order_by(_TABLE.c.start, _TABLE.c.target_id))
    absent = {"visitors": None, "parts": None}
    return [RollupRow(**(absent | dict(row) | {"start": second_of(row["start"])})) for row in found.mappings()]


def counts(rows: Iterable[RollupRow]) -> Counts:
    """Rows added up: visitors are merged within a UTC day, whatever target they came to, and added over days."""
    people = bots = private = uniques = 0
    days: dict[int, list[RollupRow]] = defaultdict(list)
    for row in rows:
        people += row.people
        bots += row.bots
        private += row.private
        if row.grain == MONTH:
            uniques += row.uniques
        elif row.uniques:
            days[start_of(DAY, row.start)].append(row)
    for some in days.values():
        uniques += some[0].uniques if len(some) == 1 else sketches.count(row.visitors for row in some if row.visitors)
    return Counts(people, bots, private, uniques)


def _by_progress(state: State, targets: Sequence[int]) -> list[tuple[int, list[int]]]:
    """While an hour is being closed, some targets are an hour ahead of the others."""
    ahead = [target for target in targets if target <= state.closed_target]
    behind = [target for target in targets if target > state.closed_target]
    return [(state.closed_until + SECONDS[HOUR], ahead), (state.closed_until, behind)]


def _together(state: State, ranges: Iterable[tuple[int, int]], closed: int) -> list[Stretch]:
    """Few stretches for many ranges: those of one grain that touch become one."""
    by_grain: dict[int, list[Stretch]] = defaultdict(list)
    for begin, end in sorted(ranges):
        for stretch in cover(state, begin, end, closed=closed):
            known = by_grain[stretch.grain]
            if known and stretch.begin <= known[-1].end:
                known[-1] = Stretch(stretch.grain, known[-1].begin, max(known[-1].end, stretch.end))
            else:
                known.append(stretch)
    return [stretch for known in by_grain.values() for stretch in known]


def _these(kind: int, targets: Sequence[int], stretches: Sequence[Stretch]) -> ColumnElement[bool] | None:
    if not targets or not stretches:
        return None
    columns = _TABLE.c
    when = [
        and_(columns.grain == grain, columns.start >= moment_of(begin), columns.start < moment_of(end)) for grain, begin, end in stretches
    ]
    return and_(columns.target_id.in_(targets), columns.kind == kind, or_(*when))
