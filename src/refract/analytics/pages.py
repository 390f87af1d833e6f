"""Figures for people: the clicks of one link with everything about them, the latest days of many, and today against yesterday."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote, urlencode

from sqlalchemy import select
from starlette.requests import Request

from refract.analytics import stats
from refract.analytics.frames import LINK_CLICK
from refract.analytics.grains import DAY
from refract.analytics.models import ClickRollup
from refract.analytics.stats import Granularity, Question, Stats
from refract.analytics.stats.calendar import zone_of
from refract.core.db import ReadSession
from refract.core.errors import Invalid
from refract.core.runtime import Runtime
from refract.identity.errors import UnknownTimeZone
from refract.identity.visitors import Actor
from refract.links.schemas import LinkOut

SPARK_DAYS: Final = 14
ZONE_COOKIE: Final = "refract_zone"
RANGES: Final = {
    "1d": ("24 hours", timedelta(days=1), Granularity.HOUR),
    "7d": ("7 days", timedelta(days=7), Granularity.DAY),
    "30d": ("30 days", timedelta(days=30), Granularity.DAY),
    "90d": ("90 days", timedelta(days=90), Granularity.DAY),
    "12m": ("12 months", timedelta(days=365), Granularity.MONTH),
}
STEPS: Final = [(Granularity.HOUR, "by hour"), (Granularity.DAY, "by day"), (Granularity.WEEK, "by week"), (Granularity.MONTH, "by month")]
_USUAL: Final = "30d"


def zone_for(request: Request, actor: Actor) -> str:
    """Whose days are meant: what the person has set, else what their browser says, else UTC."""
    wished = actor.user.preferences.get("time_zone") or unquote(request.cookies.get(ZONE_COOKIE, ""))[:64]
    try:
        return str(zone_of(wished)) if wished else "UTC"
    except UnknownTimeZone:
        return "UTC"


async def of_link(request: Request, rt: Runtime, actor: Actor, link: LinkOut) -> dict[str, Any]:
    """The clicks of one link in the time that the address names. Four queries, whatever there is to count."""
    now = rt.clock.now()
    chosen, question = _asked(request, zone_for(request, actor), now)
    try:
        async with rt.db.read() as session:
            found = await stats.dashboard(session, link.id, question, now)
    except Invalid:  # a range that cannot be counted: the usual one is shown instead
        chosen, question = _USUAL, _preset(_USUAL, question.tz, now)
        async with rt.db.read() as session:
            found = await stats.dashboard(session, link.id, question, now)
    length = found.stats.end - found.stats.begin
    earlier = Question(found.stats.begin - length, found.stats.begin, question.granularity, question.tz)
    async with rt.db.read() as session:
        before = await stats.link_stats(session, link.id, earlier, now)
    zone = zone_of(question.tz)
    first, last = found.stats.begin.astimezone(zone).date(), (found.stats.end - timedelta(seconds=1)).astimezone(zone).date()
    return {
        "base": f"/app/links/{link.id}",
        "ranges": [(key, words) for key, (words, _, _) in RANGES.items()],
        "range": chosen,
        "steps": [(key.value, words) for key, words in STEPS],
        "step": question.granularity.value,
        "begin": first.isoformat(),
        "end": last.isoformat(),
        "totals": found.stats.totals,
        "previous": before.totals,
        "open": found.stats.end >= now,
        "all_time": link.total_clicks or 0,
        "chart": _chart(found.stats, before),
        "rows": _rows(found.stats),
        "parts": found.breakdowns,
        "live": f"/api/v1/links/{link.id}/stats/live",
        "export": f"/api/v1/links/{link.id}/stats/export?{urlencode({'from': _text(found.stats.begin), 'to': _text(found.stats.end)})}",
    }


def _asked(request: Request, zone: str, now: datetime) -> tuple[str, Question]:
    """The preset, or the two dates that were chosen; both ends are meant."""
    asked = request.query_params
    try:
        begin, end = date.fromisoformat(asked.get("from", "")), date.fromisoformat(asked.get("to", ""))
        step = Granularity(asked.get("by", "day"))
        return "", Question(begin, end + timedelta(days=1), step, zone)
    except (ValueError, OverflowError):
        chosen = asked.get("range", _USUAL)
        chosen = chosen if chosen in RANGES else _USUAL
        return chosen, _preset(chosen, zone, now)


def _preset(chosen: str, zone: str, now: datetime) -> Question:
    _, length, step = RANGES[chosen]
    if step == Granularity.HOUR:
        return Question(now - length, now, step, zone)
    today = now.astimezone(zone_of(zone)).date()
    return Question(today - length + timedelta(days=1), today + timedelta(days=1), step, zone)


def _chart(found: Stats, before: Stats) -> dict[str, Any]:
    clicks = [point.clicks for point in found.series]
    earlier = [point.clicks for point in before.series][: len(clicks)]
    return {
        "at": [int(point.at.timestamp()) for point in found.series],
        "clicks": clicks,
        "previous": earlier + [0] * (len(clicks) - len(earlier)) if before.totals.clicks else None,
        "zone": found.time_zone,
    }


def _rows(found: Stats) -> list[tuple[str, int, int, int]]:
    zone = zone_of(found.time_zone)
    form = {Granularity.HOUR: "%-d %b, %H:%M", Granularity.MONTH: "%b %Y"}.get(found.granularity, "%-d %b %Y")
    return [(point.at.astimezone(zone).strftime(form), point.clicks, point.uniques, point.bots) for point in found.series]


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


async def sparks(session: ReadSession, rt: Runtime, links: Sequence[int]) -> dict[int, list[int]]:
    """Clicks of people on each of the latest days, for a page of links in one query."""
    today = rt.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=SPARK_DAYS)  # today is not over, and would look like a fall
    question = select(ClickRollup.target_id, ClickRollup.start, ClickRollup.people).where(
        ClickRollup.target_id.in_(links),
        ClickRollup.kind == LINK_CLICK,
        ClickRollup.grain == DAY,
        ClickRollup.start >= first,
        ClickRollup.start < today,
    )
    found: dict[int, list[int]] = {}
    for target, start, people in await session.execute(question):
        found.setdefault(target, [0] * SPARK_DAYS)[(start - first).days] += people
    return found


async def today(request: Request, rt: Runtime, actor: Actor) -> dict[str, Any]:
    """Clicks on all my links today by hour, and how many there were by this time yesterday. Two queries."""
    now = rt.clock.now()
    zone = zone_for(request, actor)
    midnight = now.astimezone(zone_of(zone)).date()
    question = Question(midnight - timedelta(days=1), now, Granularity.HOUR, zone)
    async with rt.db.read() as session:
        found = await stats.overview(session, actor.user.id, question, now, links=1)
    local = [(point.at.astimezone(zone_of(zone)), point.clicks) for point in found.series]
    now_hour = now.astimezone(zone_of(zone)).hour
    hours = [sum(clicks for at, clicks in local if at.date() == midnight and at.hour == hour) for hour in range(24)]
    yesterday = sum(clicks for at, clicks in local if at.date() < midnight and at.hour <= now_hour)
    table = [(f"{hour:02}:00", clicks) for hour, clicks in enumerate(hours)]
    return {"clicks": sum(hours), "yesterday": yesterday, "hours": hours, "hours_table": table}
