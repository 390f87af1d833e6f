"""Statistics on other pages: sparklines of many links, rules of one, today against yesterday."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    LargeBinary,
    Select,
    bindparam,
    cast,
    func,
    null,
    select,
    type_coerce,
    union_all,
)
from starlette.requests import Request

from refract.clicks.models import ClickEvent, ClickPack, ClickRollup
from refract.clicks.rollups.granularity import DAY, QUARTER, start_of, to_datetime, to_seconds
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import Granularity, StatsQuery
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.overview import load_scope_breakdown, load_scope_stats
from refract.clicks.stats.period import to_moment
from refract.clicks.stats.scope import AccountScope, LinkScope, StatsScope, match_targets
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.responses import get_zone_name
from refract.identity.time_zones import parse_zone
from refract.web.formats import (
    format_time,
)

SPARKLINE_DAYS: Final = 14
MAX_RULES: Final = 1000
"""Rules of a link whose clicks are known one by one, with those that were removed."""


async def load_sparklines(
    session: ReadSession, rt: Runtime, links: Sequence[int]
) -> dict[int, list[int]]:
    """Return the clicks of people on each of the latest days, of many links in one query."""
    today = rt.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=SPARKLINE_DAYS)  # today is not over and would look like a drop
    found: dict[int, list[int]] = {}
    months = [to_seconds(moment.replace(day=1)) for moment in (first, today)]
    rows = await session.fetch(
        _DAYS, targets=list(links), first=first, today=today, months=months, packed=list(links)
    )
    for target, start, people, pack in rows:
        quarters = [(start, people)] if pack is None else _iter_people(start, pack)
        for at, clicks in quarters:
            if first <= at < today:
                found.setdefault(target, [0] * SPARKLINE_DAYS)[(at - first).days] += clicks
    return found


def _iter_people(month: datetime, pack: bytes) -> Iterator[tuple[datetime, int]]:
    """Yield time and clicks of people of the quarter hours in a pack."""
    for start, delta in iter_entries(to_seconds(month), pack):
        yield to_datetime(start), delta.people


def _build_days() -> Select[*tuple[Any, ...]]:
    days = union_all(
        select(
            ClickRollup.target_id,
            ClickRollup.start,
            ClickRollup.people,
            cast(null(), LargeBinary).label("pack"),
        ).where(
            ClickRollup.target_id.in_(bindparam("targets", expanding=True)),
            ClickRollup.kind == LINK_CLICK,
            ClickRollup.grain == DAY,
            ClickRollup.start >= bindparam("first"),
            ClickRollup.start < bindparam("today"),
        ),
        select(ClickPack.target_id, ClickPack.start, ClickPack.people, ClickPack.data).where(
            type_coerce(ClickPack.start, BigInteger).in_(bindparam("months", expanding=True)),
            ClickPack.target_id.in_(bindparam("packed", expanding=True)),
            ClickPack.kind == LINK_CLICK,
        ),
    ).subquery()
    return select(days)


_DAYS: Final = PreparedSelect(_build_days)


async def count_rules(rt: Runtime, link_id: int) -> dict[str, int]:
    """Return the clicks of the last 30 days by the number of the rule that decided, or `none`."""
    found = await load_scope_breakdown(
        rt,
        LinkScope(link_id),
        ClickFilter(),
        "rules",
        StatsQuery(),
        rt.clock.now(),
        limit=MAX_RULES,
        links=0,
    )
    return {item.value: item.clicks for item in found.items}


async def build_today(request: Request, rt: Runtime, actor: Caller) -> dict[str, Any]:
    """Return today's clicks on all own links by hour, and those until the same moment yesterday.

    Four queries.
    """
    now = rt.clock.now()
    zone_name = get_zone_name(request, actor)
    zone = parse_zone(zone_name)
    scope, local = AccountScope(actor.user.id), now.astimezone(zone)
    question = StatsQuery(local.date(), now, Granularity.HOUR, zone_name)
    moment = (local - timedelta(days=1)).astimezone(UTC)
    quarter = to_datetime(start_of(QUARTER, to_seconds(moment)))
    midnight = local.date() - timedelta(days=1)
    before = None
    if to_moment(midnight, zone) < quarter:
        before = StatsQuery(midnight, quarter, Granularity.DAY, zone_name)
    found = await load_scope_stats(rt, scope, ClickFilter(), question, now, links=0, before=before)
    hours = [0] * 24
    for point in found.series:
        hours[point.at.astimezone(zone).hour] += point.clicks
    yesterday = found.before.totals.clicks if found.before else 0
    return {
        "clicks": sum(hours),
        "yesterday": yesterday + await _count_people(rt, scope, quarter, moment),
        "hours": hours,
        "hours_table": [(format_time(time(hour)), clicks) for hour, clicks in enumerate(hours)],
        "now_hour": local.hour,
        "marks": [(hour, format_time(time(hour))) for hour in (0, 6, 12, 18)],
        "zone": zone_name,
    }


async def _count_people(rt: Runtime, scope: StatsScope, begin: datetime, end: datetime) -> int:
    """Count the clicks of a part of a quarter hour one by one: roll-ups know only whole ones."""
    event = ClickEvent
    clicks = select(func.count()).where(
        match_targets(scope, is_brief=True),
        event.kind == scope.kind,
        event.bot.is_(False),
        event.at >= begin,
        event.at < end,
    )
    async with rt.db.read() as session:
        return await session.scalar(clicks) or 0
