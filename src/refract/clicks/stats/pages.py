"""Page contexts of statistics: one link in detail, sparklines of many, today against yesterday."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from urllib.parse import unquote, urlencode

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

from refract.clicks import stats
from refract.clicks.models import ClickPack, ClickRollup
from refract.clicks.rollups.granularity import DAY, to_datetime, to_seconds
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import Granularity, StatsQuery, StatsResult
from refract.clicks.stats.calendar import parse_zone
from refract.clicks.stats.overview import load_overview
from refract.clicks.stats.results import Breakdown, ValueShare
from refract.core.clock import format_utc
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.core.errors import Invalid
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.errors import UnknownTimeZone
from refract.links.schemas import LinkOut
from refract.web.formats import (
    format_date,
    format_datetime,
    format_month,
    format_time,
    get_territory_name,
)
from refract.web.i18n import gettext, lazy_gettext

SPARKLINE_DAYS: Final = 14
ZONE_COOKIE: Final = "refract_zone"
RANGES: Final = {
    "1d": (lazy_gettext("24 hours"), timedelta(days=1), Granularity.HOUR),
    "7d": (lazy_gettext("7 days"), timedelta(days=7), Granularity.DAY),
    "30d": (lazy_gettext("30 days"), timedelta(days=30), Granularity.DAY),
    "90d": (lazy_gettext("90 days"), timedelta(days=90), Granularity.DAY),
    "12m": (lazy_gettext("12 months"), timedelta(days=365), Granularity.MONTH),
}
GRANULARITIES: Final = [
    (Granularity.HOUR, lazy_gettext("Hourly")),
    (Granularity.DAY, lazy_gettext("Daily")),
    (Granularity.WEEK, lazy_gettext("Weekly")),
    (Granularity.MONTH, lazy_gettext("Monthly")),
]
_DEFAULT_RANGE: Final = "30d"
_VALUE_LABELS: Final = {
    ("devices", "desktop"): lazy_gettext("Desktop"),
    ("devices", "mobile"): lazy_gettext("Mobile"),
    ("devices", "tablet"): lazy_gettext("Tablet"),
    ("referrers", "direct"): lazy_gettext("Direct"),
}


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


async def build_link_figures(
    request: Request, rt: Runtime, actor: Caller, link: LinkOut
) -> dict[str, Any]:
    """Return the clicks of one link in the period of the request's query string.

    Four queries, however much there is to count.
    """
    now = rt.clock.now()
    chosen, question = _parse_query(request, get_time_zone(request, actor), now)
    try:
        found = await _load_dashboard(rt, link.id, question, now)
    except Invalid:  # a range that cannot be counted: show the default one
        chosen, question = _DEFAULT_RANGE, _build_preset(_DEFAULT_RANGE, question.tz, now)
        found = await _load_dashboard(rt, link.id, question, now)
    begin, end = found.stats.begin, found.stats.end
    earlier = StatsQuery(begin - (end - begin), begin, question.granularity, question.tz)
    async with rt.db.read() as session:
        before = await stats.get_link_stats(session, link.id, earlier, now)
    zone = parse_zone(question.tz)
    first = begin.astimezone(zone).date()
    last = (end - timedelta(seconds=1)).astimezone(zone).date()
    return {
        "base": f"/app/links/{link.id}",
        "ranges": [(key, label) for key, (label, _, _) in RANGES.items()],
        "range": chosen,
        "steps": [(key.value, label) for key, label in GRANULARITIES],
        "step": question.granularity.value,
        "begin": first.isoformat(),
        "end": last.isoformat(),
        "totals": found.stats.totals,
        "previous": before.totals,
        "open": end >= now,
        "all_time": link.total_clicks or 0,
        "chart": _build_chart(found.stats, before),
        "rows": _build_rows(found.stats),
        "parts": {
            dimension: _translate_labels(breakdown)
            for dimension, breakdown in found.breakdowns.items()
        },
        "live": f"/api/v1/links/{link.id}/stats/live",
        "export": f"/api/v1/links/{link.id}/stats/export?{_format_period(found.stats)}",
    }


async def _load_dashboard(
    rt: Runtime, link_id: int, question: StatsQuery, now: datetime
) -> stats.LinkDashboard:
    async with rt.db.read() as session:
        return await stats.get_dashboard(session, link_id, question, now)


def _parse_query(request: Request, zone: str, now: datetime) -> tuple[str, StatsQuery]:
    """Return the preset, or the two chosen dates, both of them included."""
    params = request.query_params
    try:
        begin, end = sorted(  # in either order, as two ends of a range may be picked
            date.fromisoformat(params.get(name, "")) for name in ("from", "to")
        )
        step = Granularity(params.get("by", "day"))
        return "", StatsQuery(begin, end + timedelta(days=1), step, zone)
    except (ValueError, OverflowError):
        chosen = params.get("range", _DEFAULT_RANGE)
        chosen = chosen if chosen in RANGES else _DEFAULT_RANGE
        return chosen, _build_preset(chosen, zone, now)


def _build_preset(chosen: str, zone: str, now: datetime) -> StatsQuery:
    _, length, step = RANGES[chosen]
    if step == Granularity.HOUR:
        return StatsQuery(now - length, now, step, zone)
    today = now.astimezone(parse_zone(zone)).date()
    return StatsQuery(today - length + timedelta(days=1), today + timedelta(days=1), step, zone)


def _build_chart(found: StatsResult, before: StatsResult) -> dict[str, Any]:
    clicks = [point.clicks for point in found.series]
    earlier = [point.clicks for point in before.series][: len(clicks)]
    return {
        "at": [int(point.at.timestamp()) for point in found.series],
        "clicks": clicks,
        "previous": earlier + [0] * (len(clicks) - len(earlier)) if before.totals.clicks else None,
        "zone": found.time_zone,
    }


def _build_rows(found: StatsResult) -> list[tuple[str, int, int, int]]:
    zone = parse_zone(found.time_zone)
    return [
        (
            _format_point(point.at.astimezone(zone), found.granularity),
            point.clicks,
            point.uniques,
            point.bots,
        )
        for point in found.series
    ]


def _format_point(local: datetime, granularity: Granularity) -> str:
    if granularity == Granularity.HOUR:
        return format_datetime(local, local.tzinfo or UTC)
    return format_month(local) if granularity == Granularity.MONTH else format_date(local.date())


def _translate_labels(breakdown: Breakdown) -> Breakdown:
    """Return a breakdown with labels in the language of the page."""
    items = [replace(item, label=_get_label(breakdown.dimension, item)) for item in breakdown.items]
    return replace(breakdown, items=items)


def _get_label(dimension: str, item: ValueShare) -> str:
    if dimension == "countries":
        return get_territory_name(item.value) or gettext("Unknown")
    return str(_VALUE_LABELS.get((dimension, item.value), item.label))


def _format_period(stats: StatsResult) -> str:
    """Return the query string that asks for the same period."""
    return urlencode({"from": format_utc(stats.begin), "to": format_utc(stats.end)})


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
