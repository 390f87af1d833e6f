"""Statistics of one link or of all links of a user. Sessions come from the caller.

`require_stats_access` checks access; the other functions do not. They need a session that has not
been used yet, so that everything they read belongs to one snapshot.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar

from refract.clicks.rollups.granularity import to_seconds
from refract.clicks.rollups.state import load_progress
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import aggregation
from refract.clicks.stats.calendar import StatsQuery
from refract.clicks.stats.events import count_campaign_values
from refract.clicks.stats.plan import StatsPlan
from refract.clicks.stats.results import Breakdown, LinkDashboard, StatsResult
from refract.clicks.stats.scope import AccountScope, LinkScope, StatsScope
from refract.clicks.stats.target_groups import TargetGroup
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
    return await get_stats(session, LinkScope(link_id, kind), stats_query, now, links=0)


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
    scope = LinkScope(link_id, kind)
    return await get_breakdown(session, scope, dimension, stats_query, now, limit=limit, links=0)


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
    return await get_scope_dashboard(session, LinkScope(link_id, kind), stats_query, now, links=0)


async def get_scope_dashboard(
    session: ReadSession,
    scope: StatsScope,
    stats_query: StatsQuery,
    now: datetime,
    *,
    links: int,
    before: StatsQuery | None = None,
) -> LinkDashboard:
    """Return totals, series, every breakdown and the most clicked links of a scope.

    With `before` also the totals and series of that period. Three queries at most; up to five
    after late clicks, or if top values are not sufficient.
    """
    state = await load_progress(session)
    groups = await scope.load_groups(session)
    plan = StatsPlan(state, groups, stats_query, now, parts=True)
    earlier = StatsPlan(state, groups, before, now, query=plan.query) if before else None
    await plan.query.read(session, tops=True)
    found, breakdowns, ranked = await _compute(
        plan,
        lambda: (
            plan.build_stats(earlier),
            plan.build_certain_breakdowns(),
            plan.rank_links(links),
        ),
    )
    if breakdowns is None:
        await plan.read_in_full(session)
        breakdowns = await _compute(plan, plan.build_breakdowns)
    found = replace(found, links=ranked, is_costly=_is_costly(plan, groups))
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

    Three queries; four after late clicks.
    """
    return await get_stats(session, AccountScope(user_id), stats_query, now, links=links)


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
    scope = AccountScope(user_id)
    return await get_breakdown(
        session, scope, dimension, stats_query, now, limit=limit, links=links
    )


async def get_stats(
    session: ReadSession,
    scope: StatsScope,
    stats_query: StatsQuery,
    now: datetime,
    *,
    links: int,
    before: StatsQuery | None = None,
) -> StatsResult:
    """Return totals, a series and the most clicked links of a scope.

    With `before` also the totals and series of that period.
    """
    state = await load_progress(session)
    groups = await scope.load_groups(session)
    parts = groups[0].is_single and links > 0
    plan = StatsPlan(state, groups, stats_query, now, parts=parts)
    earlier = StatsPlan(state, groups, before, now, query=plan.query) if before else None
    await plan.query.read(session, tops=True)
    found, ranked = await _compute(
        plan, lambda: (plan.build_stats(earlier), plan.rank_links(links))
    )
    return replace(found, links=ranked, is_costly=_is_costly(plan, groups))


async def get_breakdown(
    session: ReadSession,
    scope: StatsScope,
    dimension: str,
    stats_query: StatsQuery,
    now: datetime,
    *,
    limit: int | None,
    links: int,
) -> Breakdown:
    """Return the clicks of a scope by the values of a dimension, and the most clicked links."""
    state = await load_progress(session)
    groups = await scope.load_groups(session)
    plan = StatsPlan(state, groups, stats_query, now, series=False, parts=True)
    await plan.query.read(session, visitors=False)
    found, ranked = await _compute(
        plan, lambda: (plan.build_breakdown(dimension, limit), plan.rank_links(links))
    )
    return replace(found, links=ranked, is_costly=_is_costly(plan, groups))


def _is_costly(plan: StatsPlan, groups: Sequence[TargetGroup]) -> bool:
    return plan.size > MAX_ROWS and not groups[0].is_single


async def _compute(plan: StatsPlan, compute: Callable[[], ComputedResult]) -> ComputedResult:
    return await asyncio.to_thread(compute) if plan.size > _THREAD_THRESHOLD else compute()
