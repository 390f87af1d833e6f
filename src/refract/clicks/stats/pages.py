"""Statistics on other pages: sparklines of many links, today against yesterday."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from urllib.parse import unquote

from sqlalchemy import (
    BigInteger,
    LargeBinary,
    Select,
    bindparam,
    cast,
    null,
    select,
    type_coerce,
    union_all,
)
from starlette.requests import Request

from refract.clicks.models import ClickPack, ClickRollup
from refract.clicks.rollups.granularity import DAY, to_datetime, to_seconds
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import Granularity, StatsQuery
from refract.clicks.stats.calendar import parse_zone
from refract.clicks.stats.overview import load_overview
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.errors import UnknownTimeZone
from refract.web.formats import (
    format_time,
)

SPARKLINE_DAYS: Final = 14
ZONE_COOKIE: Final = "refract_zone"


def get_time_zone(request: Request, actor: Caller) -> str:
    """Return the time zone: the user's preference, else the browser's, else UTC."""
    zone_name = (
        actor.user.preferences.get("time_zone")
        or unquote(request.cookies.get(ZONE_COOKIE, ""))[:64]
    )
    try:
        return str(parse_zone(zone_name)) if zone_name else "UTC"
    except UnknownTimeZone:
        return "UTC"


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


async def build_today(request: Request, rt: Runtime, actor: Caller) -> dict[str, Any]:
    """Return today's clicks on all own links by hour, and those by this time yesterday.

    Three queries.
    """
    now = rt.clock.now()
    zone = get_time_zone(request, actor)
    midnight = now.astimezone(parse_zone(zone)).date()
    question = StatsQuery(midnight - timedelta(days=1), now, Granularity.HOUR, zone)
    found = await load_overview(rt, actor.user.id, question, now, links=0)
    local = [(point.at.astimezone(parse_zone(zone)), point.clicks) for point in found.series]
    now_hour = now.astimezone(parse_zone(zone)).hour
    hours = [
        sum(clicks for at, clicks in local if at.date() == midnight and at.hour == hour)
        for hour in range(24)
    ]
    yesterday = sum(clicks for at, clicks in local if at.date() < midnight and at.hour <= now_hour)
    table = [(format_time(time(hour)), clicks) for hour, clicks in enumerate(hours)]
    return {
        "clicks": sum(hours),
        "yesterday": yesterday,
        "hours": hours,
        "hours_table": table,
        "zone": zone,
    }
