"""Statistics of a scope, for pages and endpoints: from roll-ups, or with a filter click by click.

Links are summed up one by one while there are few. A user with many gets roll-ups of all links
together, built after the first request.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import structlog

from refract.clicks import stats
from refract.clicks.jobs import enqueue_group_build
from refract.clicks.rollups.breakdowns import DEFAULT_DOMAIN
from refract.clicks.stats import Breakdown, LinkDashboard, StatsQuery, StatsResult
from refract.clicks.stats.filtered import FilteredStats
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.scope import StatsScope, TaggedLinksScope, TeamLinksScope
from refract.core.db.session import ReadSession
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.domains.hosts import get_default_host
from refract.tags.grammar import slugify
from refract.tags.queries import find_shared_tags
from refract.teams.queries import list_own_teams

_log = structlog.get_logger("refract.stats")
_NO_TAG = 0
_NO_TEAM = 0
SummedT = TypeVar("SummedT", LinkDashboard, StatsResult, Breakdown)


async def find_tag_scope(rt: Runtime, user_id: int, tag: str) -> tuple[TaggedLinksScope, str]:
    """Return the own links with a tag, and its name. An unknown tag has no links."""
    key = slugify(tag)
    async with rt.db.read() as session:
        found = (await find_shared_tags(session, {key})).get(key)
    if found is None or found.deleted_at is not None:
        return TaggedLinksScope(user_id, _NO_TAG), tag
    return TaggedLinksScope(user_id, found.id), found.name


async def find_team_scope(rt: Runtime, user_id: int, slug: str) -> tuple[TeamLinksScope, str]:
    """Return the links of one of the user's teams, and its name. Other teams have no links."""
    async with rt.db.read() as session:
        teams = await list_own_teams(session, user_id)
    found = next((team for team in teams if team.slug == slug), None)
    return (TeamLinksScope(found.id), found.name) if found else (TeamLinksScope(_NO_TEAM), slug)


async def load_scope_dashboard(
    rt: Runtime,
    scope: StatsScope,
    chosen: ClickFilter,
    stats_query: StatsQuery,
    now: datetime,
    *,
    links: int,
    before: StatsQuery | None = None,
) -> LinkDashboard:
    """Return totals, a series, every breakdown and the most clicked links.

    With `before` also the totals and series of that period.
    """
    if chosen:
        filtered = FilteredStats(rt, scope, chosen)
        found = await filtered.load_dashboard(stats_query, now, links=links)
        if before is not None:
            stats_before = await filtered.load_stats(before, now)
            found = replace(found, stats=replace(found.stats, before=stats_before))
    else:
        found = await _sum_rollups(
            rt,
            scope,
            lambda session: stats.get_scope_dashboard(
                session, scope, stats_query, now, links=links, before=before
            ),
        )
    domains = _name_default_domain(rt, found.breakdowns["domains"])
    return replace(found, breakdowns={**found.breakdowns, "domains": domains})


async def load_scope_stats(
    rt: Runtime,
    scope: StatsScope,
    chosen: ClickFilter,
    stats_query: StatsQuery,
    now: datetime,
    *,
    links: int,
    before: StatsQuery | None = None,
) -> StatsResult:
    """Return totals, a series and the most clicked links.

    With `before` also the totals and series of that period.
    """
    if chosen:
        filtered = FilteredStats(rt, scope, chosen)
        found = await filtered.load_stats(stats_query, now, links=links)
        return replace(found, before=await filtered.load_stats(before, now)) if before else found
    return await _sum_rollups(
        rt,
        scope,
        lambda session: stats.get_stats(
            session, scope, stats_query, now, links=links, before=before
        ),
    )


async def load_scope_breakdown(  # noqa: PLR0913 - what is counted, by what, and how many
    rt: Runtime,
    scope: StatsScope,
    chosen: ClickFilter,
    dimension: str,
    stats_query: StatsQuery,
    now: datetime,
    *,
    limit: int | None,
    links: int,
) -> Breakdown:
    """Return the clicks by the values of a dimension, and the most clicked links."""
    if chosen:
        filtered = FilteredStats(rt, scope, chosen)
        found = await filtered.load_breakdown(dimension, stats_query, now, limit=limit, links=links)
    else:
        found = await _sum_rollups(
            rt,
            scope,
            lambda session: stats.get_breakdown(
                session, scope, dimension, stats_query, now, limit=limit, links=links
            ),
        )
    return _name_default_domain(rt, found) if dimension == "domains" else found


def _name_default_domain(rt: Runtime, domains: Breakdown) -> Breakdown:
    """Return a breakdown by domain with the host of the default one."""
    host = get_default_host(rt.settings.public_url)
    return replace(
        domains,
        items=[
            replace(item, value=host, label=host) if item.value == DEFAULT_DOMAIN else item
            for item in domains.items
        ],
    )


async def _sum_rollups(
    rt: Runtime, scope: StatsScope, load: Callable[[ReadSession], Awaitable[SummedT]]
) -> SummedT:
    """Return what is summed up from roll-ups; if that was costly, let the scope have its own."""
    async with rt.db.read() as session:
        found = await load(session)
    if found.is_costly:
        await _request_rollups(rt, scope)
    return found


async def _request_rollups(rt: Runtime, scope: StatsScope) -> None:
    """Start a job that sums up all links of the scope, if it can and none is open."""
    if scope.group is None:
        return
    try:
        async with rt.db.write() as session:
            await enqueue_group_build(session, rt, *scope.group)
    except Unavailable as exc:  # the next request tries again
        _log.info("group_build_delayed", group=scope.group, error=str(exc))
