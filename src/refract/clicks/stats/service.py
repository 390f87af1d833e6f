"""Statistics of one link or of all links of a user. Sessions come from the caller.

`require_stats_access` checks access; the other functions do not. They need a session that has not
been used yet, so that everything they read belongs to one snapshot.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final, TypeVar

from refract.clicks.rollups.breakdowns import DIMENSIONS
from refract.clicks.rollups.granularity import to_datetime, to_seconds
from refract.clicks.rollups.state import RollupProgress, load_progress
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import aggregation
from refract.clicks.stats.calendar import (
    Granularity,
    SeriesBucket,
    TimeRange,
    build_buckets,
    parse_range,
    parse_zone,
    round_to_rollups,
)
from refract.clicks.stats.events import count_campaign_values
from refract.clicks.stats.queries import (
    RollupQuery,
    StatsRow,
    TargetGroup,
    group_target,
    group_user_links,
)
from refract.clicks.stats.results import (
    Breakdown,
    LinkClicks,
    LinkDashboard,
    PreviousPeriod,
    StatsResult,
)
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.identity.access import AccessRight
from refract.links.access import LinkCaller
from refract.links.models import Link
from refract.links.queries import view_link

MAX_LINKS: Final = 50
MAX_ROWS: Final = 300
"""Roll-ups of single links that are read for a sum over all of them; more are costly."""
_THREAD_THRESHOLD: Final = 300
"""Number of roll-ups beyond which they are counted in a thread, to keep the event loop free."""
ComputedResult = TypeVar("ComputedResult")


@dataclass(frozen=True, slots=True)
class StatsQuery:
    """A requested period and its granularity.

    Dates mean their first moment in the zone; the default are the last 30 days.
    """

    begin: datetime | date | None = None
    end: datetime | date | None = None
    granularity: Granularity = Granularity.DAY
    tz: str = "UTC"
    compare: bool = False

    def get_range(self, now: datetime) -> TimeRange:
        return parse_range(self.begin, self.end, parse_zone(self.tz), now)


async def require_stats_access(session: ReadSession, who: LinkCaller, link_id: int) -> Link:
    """Return the link if the caller may see its statistics; else raise LinkNotFound or NotYours."""
    link, _ = await view_link(session, who, link_id, AccessRight.STATS)
    return link


async def get_link_stats(
    session: ReadSession,
    link_id: int,
    stats_query: StatsQuery,
    now: datetime,
    *,
    kind: int = LINK_CLICK,
) -> StatsResult:
    """Return totals and a series of one link or, by `kind`, of a list's page or an entry.

    Two queries.
    """
    state = await load_progress(session)
    plan = _StatsPlan(state, group_target(link_id, kind), stats_query, now)
    await plan.query.read(session)
    return await _compute(plan, plan.build_stats)


async def get_link_breakdown(
    session: ReadSession,
    link_id: int,
    dimension: str,
    stats_query: StatsQuery,
    now: datetime,
    *,
    limit: int | None = None,
    kind: int = LINK_CLICK,
) -> Breakdown:
    """Return the clicks of one link by the values of a dimension. Two queries."""
    state = await load_progress(session)
    plan = _StatsPlan(
        state, group_target(link_id, kind), stats_query, now, series=False, parts=True
    )
    await plan.query.read(session, visitors=False)
    return await _compute(plan, lambda: plan.build_breakdown(dimension, limit))


async def get_campaign_breakdown(
    rt: Runtime,
    link_id: int,
    dimension: str,
    begin: datetime,
    end: datetime,
    *,
    limit: int | None = None,
) -> Breakdown:
    """Return the clicks of one link by a campaign parameter (`CAMPAIGN_COLUMNS`).

    Counted click by click, since roll-ups do not have them.
    """
    values, people = await count_campaign_values(rt, link_id, dimension, begin, end)
    return aggregation.rank_values(
        dimension, values, people, to_seconds(begin), to_seconds(end), limit
    )


async def get_dashboard(
    session: ReadSession,
    link_id: int,
    stats_query: StatsQuery,
    now: datetime,
    *,
    kind: int = LINK_CLICK,
) -> LinkDashboard:
    """Return totals, series and every breakdown of one link.

    Two queries; up to four after late clicks, or if top values are not sufficient.
    """
    state = await load_progress(session)
    plan = _StatsPlan(state, group_target(link_id, kind), stats_query, now, parts=True)
    await plan.query.read(session, tops=True)
    found, breakdowns = await _compute(
        plan, lambda: (plan.build_stats(), plan.build_certain_breakdowns())
    )
    if breakdowns is None:
        await plan.read_in_full(session)
        breakdowns = await _compute(plan, plan.build_breakdowns)
    return LinkDashboard(found, breakdowns)


async def get_overview(
    session: ReadSession,
    user_id: int,
    stats_query: StatsQuery,
    now: datetime,
    *,
    links: int = MAX_LINKS,
) -> StatsResult:
    """Return totals, a series and the most clicked of all links that a user owns or co-owns.

    Three queries; up to five after late clicks, or if top values are not sufficient.
    """
    state = await load_progress(session)
    groups = await group_user_links(session, user_id)
    is_grouped = groups[0].is_single
    plan = _StatsPlan(state, groups, stats_query, now, parts=is_grouped and links > 0)
    await plan.query.read(session, tops=True)
    found, ranked = await _compute(plan, lambda: (plan.build_stats(), plan.rank_links(links)))
    if ranked is None:
        await plan.read_in_full(session)
        ranked = await _compute(plan, lambda: plan.rank_links(links))
    return replace(found, links=ranked or [], is_costly=plan.size > MAX_ROWS and not is_grouped)


async def get_overview_breakdown(
    session: ReadSession,
    user_id: int,
    dimension: str,
    stats_query: StatsQuery,
    now: datetime,
    *,
    limit: int | None = None,
    links: int = MAX_LINKS,
) -> Breakdown:
    """Return the clicks on all links that a user owns or co-owns by the values of a dimension.

    Three queries.
    """
    state = await load_progress(session)
    groups = await group_user_links(session, user_id)
    plan = _StatsPlan(state, groups, stats_query, now, series=False, parts=True)
    await plan.query.read(session, visitors=False)
    found, ranked = await _compute(
        plan, lambda: (plan.build_breakdown(dimension, limit), plan.rank_links(links))
    )
    is_costly = plan.size > MAX_ROWS and not groups[0].is_single
    return replace(found, links=ranked or [], is_costly=is_costly)


class _StatsPlan:
    """The ranges that a request needs, and its results once they are loaded."""

    def __init__(
        self,
        state: RollupProgress,
        groups: Sequence[TargetGroup],
        stats_query: StatsQuery,
        now: datetime,
        *,
        series: bool = True,
        parts: bool = False,
    ) -> None:
        self._stats_query = stats_query
        self._parts = parts
        span = stats_query.get_range(now)
        self._zone = span.zone
        self._groups, self._now = groups, to_seconds(now)
        self.query = RollupQuery(state, groups, self._now)
        self._buckets: list[SeriesBucket] = (
            build_buckets(span, stats_query.granularity, state) if series else []
        )
        if series:
            known = [bucket for bucket in self._buckets if not bucket.no_data]
            self._begin, self._end = self._buckets[0].begin, self._buckets[-1].end
            self._known = (known[0].begin, known[-1].end) if known else (self._end, self._end)
        else:
            self._begin, self._end = self._known = round_to_rollups(state, span)
        self._before = (
            TimeRange(self._begin, self._end, span.zone).previous if stats_query.compare else None
        )
        self.query.add_range(*self._known, parts=parts)
        for bucket in self._buckets:
            if not bucket.no_data:
                self.query.add_range(bucket.begin, bucket.end)
        if self._before is not None:
            self.query.add_range(self._before.begin, self._before.end)

    @property
    def size(self) -> int:
        return self.query.row_count

    @property
    def rows(self) -> Sequence[StatsRow]:
        """Return the rows of the whole period."""
        return self.query.select_rows(*self._known, parts=self._parts)

    def build_stats(self) -> StatsResult:
        series = [
            aggregation.build_point(
                bucket, [] if bucket.no_data else self.query.select_rows(bucket.begin, bucket.end)
            )
            for bucket in self._buckets
        ]
        previous = None
        if self._before is not None:
            before = aggregation.sum_counts(
                self.query.select_rows(self._before.begin, self._before.end)
            )
            previous = PreviousPeriod(
                before.clicks,
                before.uniques,
                before.bots,
                to_datetime(self._before.begin),
                to_datetime(self._before.end),
            )
        totals = aggregation.sum_counts(self.rows)
        begin, end = to_datetime(self._begin), to_datetime(self._end)
        return StatsResult(
            begin, end, self._stats_query.granularity, self._zone.key, totals, previous, series
        )

    def build_breakdown(self, dimension: str, limit: int | None) -> Breakdown:
        return aggregation.build_breakdown(dimension, self.rows, self._begin, self._end, limit)

    def rank_links(self, limit: int) -> list[LinkClicks] | None:
        """Return the most clicked links, or None if the rows are not sufficient."""
        if self._groups[0].is_single:
            return aggregation.rank_grouped_links(self.rows, limit)
        return aggregation.rank_links(self.rows, limit)

    def build_certain_breakdowns(self) -> dict[str, Breakdown] | None:
        return aggregation.build_certain_breakdowns(self.rows, self._begin, self._end)

    async def read_in_full(self, session: ReadSession) -> None:
        """Load the breakdowns with every value, replacing the rows loaded before."""
        self.query = RollupQuery(
            self.query.state, [group.copy_empty() for group in self._groups], self._now
        )
        self.query.add_range(*self._known, parts=True)
        await self.query.read(session, visitors=False)

    def build_breakdowns(self) -> dict[str, Breakdown]:
        return aggregation.build_breakdowns(DIMENSIONS, self.rows, self._begin, self._end)


async def _compute(plan: _StatsPlan, compute: Callable[[], ComputedResult]) -> ComputedResult:
    return await asyncio.to_thread(compute) if plan.size > _THREAD_THRESHOLD else compute()
