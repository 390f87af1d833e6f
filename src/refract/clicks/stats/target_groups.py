"""Targets whose roll-ups are summed up, and their loaded rows."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, select

from refract.clicks.models import ClickPack, ClickRollup, OpenRollup
from refract.clicks.rollups import day_cumulatives
from refract.clicks.rollups.breakdowns import BreakdownCounts
from refract.clicks.rollups.granularity import DAY, QUARTER
from refract.clicks.rollups.groups import load_group
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.rollups.sketches import encode_visitors
from refract.clicks.rollups.state import GrainRange
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.session import ReadSession
from refract.links.models import USER_LINKS, LinkOwner

OPEN_GRAIN: Final = 0
"""The grain of open roll-ups in results: quarter hours that are in no other row."""
PACKED_GRAIN: Final = -1
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
        if row.grain == PACKED_GRAIN:
            self.rows[PACKED_GRAIN] += _iter_packed(row)
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


def _iter_packed(pack: StatsRow) -> Iterator[StatsRow]:
    """Yield the quarter hours of a pack."""
    assert isinstance(pack.parts, bytes)  # noqa: S101 - see above
    for start, delta in iter_entries(pack.start, pack.parts):
        visitors = set(delta.visitors)
        sketch = encode_visitors(visitors) if visitors else None
        clicks = (delta.people, delta.bots, delta.private, len(visitors))
        yield StatsRow(pack.target, PACKED_GRAIN, start, *clicks, sketch, delta.parts)


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
