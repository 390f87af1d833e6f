"""Statistics of all links of a user, for pages and endpoints.

Links are summed up one by one while there are few. A user with many gets roll-ups of all links
together, built after the first request.
"""

from datetime import datetime

import structlog

from refract.clicks import stats
from refract.clicks.jobs import enqueue_group_build
from refract.clicks.stats import Breakdown, StatsQuery, StatsResult
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.links.models import USER_LINKS

_log = structlog.get_logger("refract.stats")


async def load_overview(
    rt: Runtime, user_id: int, stats_query: StatsQuery, now: datetime, *, links: int
) -> StatsResult:
    """Return totals, a series and the most clicked of all links that a user owns or co-owns."""
    async with rt.db.read() as session:
        found = await stats.get_overview(session, user_id, stats_query, now, links=links)
    if found.is_costly:
        await request_rollups(rt, USER_LINKS, user_id)
    return found


async def load_overview_breakdown(
    rt: Runtime,
    user_id: int,
    dimension: str,
    stats_query: StatsQuery,
    now: datetime,
    *,
    limit: int | None,
    links: int,
) -> Breakdown:
    """Return the clicks on all links that a user owns or co-owns by the values of a dimension."""
    async with rt.db.read() as session:
        found = await stats.get_overview_breakdown(
            session, user_id, dimension, stats_query, now, limit=limit, links=links
        )
    if found.is_costly:
        await request_rollups(rt, USER_LINKS, user_id)
    return found


async def request_rollups(rt: Runtime, group_kind: int, group_id: int) -> None:
    """Start a job that sums up all links of a group, if none is open."""
    try:
        async with rt.db.write() as session:
            await enqueue_group_build(session, rt, group_kind, group_id)
    except Unavailable as exc:  # the next request tries again
        _log.info("group_build_delayed", group_id=group_id, error=str(exc))
