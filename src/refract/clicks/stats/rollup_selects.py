"""Queries of the roll-ups of a group of targets, with the same columns for every table."""

from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, LargeBinary, and_, case, cast, literal, null, select

from refract.clicks.models import ClickPack, ClickRollup, OpenRollup
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, MONTH, end_of, to_datetime
from refract.clicks.stats.target_groups import OPEN_GRAIN, PACKED_GRAIN, TargetGroup

_MAX_STARTS: Final = 5_000
_NO_BYTES: Final = cast(null(), LargeBinary)  # PostgreSQL takes a bare NULL for text


class NeededStarts(NamedTuple):
    """Rows of one grain that a request needs, with or without breakdowns."""

    grain: int
    starts: list[int]
    parts: bool


def select_rollups(
    number: int,
    group: TargetGroup,
    today: int,
    needed: NeededStarts,
    *,
    visitors: bool,
    tops: bool,
) -> Any:
    """Return a query of rows of one grain. `tops`: top values instead of very long breakdowns."""
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


def select_open_rollups(
    number: int, group: TargetGroup, begin: int, end: int, *, visitors: bool, parts: bool
) -> Any:
    """Return a query of the rows of a period that are in no other row."""
    sketch = OpenRollup.visitors.expression if visitors else _NO_BYTES
    its_parts = OpenRollup.parts.expression if parts else _NO_BYTES
    return _select_rows(
        number, OpenRollup, literal(OPEN_GRAIN), sketch, its_parts, _NO_BYTES
    ).where(
        group.build_condition(OpenRollup),
        OpenRollup.start >= to_datetime(begin),
        OpenRollup.start < to_datetime(end),
    )


def select_packs(number: int, group: TargetGroup, months: list[int]) -> Any:
    """Return a query of packs, whose entries are in the column of the breakdowns."""
    return select(
        literal(number).label("number"),
        ClickPack.target_id,
        literal(PACKED_GRAIN).label("grain"),
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
