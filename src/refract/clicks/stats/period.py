"""The period of an analytics page: presets, chosen dates, and what it is compared with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from refract.clicks.stats.calendar import Granularity, StatsQuery
from refract.identity.time_zones import parse_zone
from refract.web.i18n import gettext, lazy_gettext

PRESETS: Final = {
    "today": lazy_gettext("Today"),
    "yesterday": lazy_gettext("Yesterday"),
    "7d": lazy_gettext("7 days"),
    "30d": lazy_gettext("30 days"),
    "month": lazy_gettext("This month"),
    "12m": lazy_gettext("12 months"),
    "all": lazy_gettext("All time"),
}
COMPARISONS: Final = {
    "previous": lazy_gettext("Previous period"),
    "year": lazy_gettext("Previous year"),
    "none": lazy_gettext("No comparison"),
}
GRANULARITIES: Final = {
    Granularity.HOUR: lazy_gettext("Hourly"),
    Granularity.DAY: lazy_gettext("Daily"),
    Granularity.WEEK: lazy_gettext("Weekly"),
    Granularity.MONTH: lazy_gettext("Monthly"),
}
DEFAULT_PRESET: Final = "30d"
_MAX_HOUR_DAYS: Final = 3
_MAX_DAY_DAYS: Final = 92
_MAX_WEEK_DAYS: Final = 370
_MIN_YEAR: Final = 2000


@dataclass(frozen=True, slots=True)
class AnalyticsPeriod:
    """A period, and the one that it is compared with."""

    preset: str
    """The key of the preset, or nothing if dates were chosen."""
    query: StatsQuery
    compare: str
    previous: StatsQuery | None
    begin: str
    end: str
    """The first and the last day, or what was typed."""
    granularity: str = ""
    """As requested; nothing if it follows from the period."""
    error: str | None = None


def parse_period(
    given: Mapping[str, str], zone_name: str, now: datetime, oldest: datetime
) -> AnalyticsPeriod:
    """Return the period of a query string. `oldest`: when the first of the links was created.

    What cannot be counted is reported in `error`, with the default period in its place.
    """
    zone = parse_zone(zone_name)
    today = now.astimezone(zone).date()
    preset = given.get("range", DEFAULT_PRESET)
    preset = preset if preset in PRESETS else DEFAULT_PRESET
    begin, end, error = _parse_dates(given)
    if begin is not None and end is not None:
        preset, last = "", end
    else:
        first, last = _resolve_preset(preset, today, oldest.astimezone(zone).date())
        begin = first
    granularity = _choose_granularity(given.get("by", ""), preset, begin, last)
    until = last + timedelta(days=1)
    query = StatsQuery(begin, min(until, now, key=lambda at: to_moment(at, zone)), granularity)
    query = replace(query, tz=zone_name)
    compare = given.get("compare", "previous")
    compare = compare if compare in COMPARISONS and preset != "all" else "none"
    typed = error is not None
    return AnalyticsPeriod(
        preset,
        query,
        compare,
        _shift(query, compare, preset, last, zone),
        given.get("from", "")[:20] if typed else begin.isoformat(),
        given.get("to", "")[:20] if typed else last.isoformat(),
        given.get("by", "") if given.get("by") == granularity else "",
        error,
    )


def _parse_dates(given: Mapping[str, str]) -> tuple[date | None, date | None, str | None]:
    texts = [given.get(name, "").strip() for name in ("from", "to")]
    if not any(texts):
        return None, None, None
    try:
        begin, end = (date.fromisoformat(text) for text in texts)
    except ValueError:
        return None, None, gettext("Enter both dates, like 2026-01-31.")
    if begin > end:
        return None, None, gettext("The start date must not be after the end date.")
    if begin.year < _MIN_YEAR or end.year > date.max.year - 1000:
        return None, None, gettext("There are no clicks at that time.")
    return begin, end, None


def _resolve_preset(preset: str, today: date, oldest: date) -> tuple[date, date]:
    """Return the first and the last day."""
    if preset == "yesterday":
        return today - timedelta(days=1), today - timedelta(days=1)
    if preset == "12m":
        following = today.replace(year=today.year - 1, day=1) + timedelta(days=32)
        return following.replace(day=1), today
    first = {
        "today": today,
        "7d": today - timedelta(days=6),
        "month": today.replace(day=1),
        "all": min(oldest, today),
    }.get(preset, today - timedelta(days=29))
    return first, today


def _choose_granularity(given: str, preset: str, begin: date, last: date) -> Granularity:
    if given in list(Granularity):
        return Granularity(given)
    days = (last - begin).days + 1
    if preset == "12m":
        return Granularity.MONTH
    if days <= _MAX_HOUR_DAYS:
        return Granularity.HOUR
    if days <= _MAX_DAY_DAYS:
        return Granularity.DAY
    return Granularity.WEEK if days <= _MAX_WEEK_DAYS else Granularity.MONTH


def _shift(
    query: StatsQuery, compare: str, preset: str, last: date, zone: ZoneInfo
) -> StatsQuery | None:
    """Return the period to compare with; one that is not over, up to the same moment of it."""
    assert isinstance(query.begin, date)  # noqa: S101 - see above
    if compare == "none":
        return None
    if compare == "year" or preset == "12m":
        begin = _move_year(query.begin)
    elif preset == "month":
        begin = (query.begin - timedelta(days=1)).replace(day=1)
    else:
        begin = query.begin - timedelta(days=(last - query.begin).days + 1)
    if isinstance(query.end, datetime):
        end: datetime | date = query.end.astimezone(zone) - (query.begin - begin)
    else:
        assert query.end is not None  # noqa: S101 - see above
        end = query.end - (query.begin - begin)
    limit = query.begin if compare == "previous" else None
    if limit is not None and to_moment(end, zone) > to_moment(limit, zone):
        end = limit  # a shorter month
    return replace(query, begin=begin, end=end)


def _move_year(day: date) -> date:
    try:
        return day.replace(year=day.year - 1)
    except ValueError:  # 29 February
        return day.replace(year=day.year - 1, day=28)


def to_moment(at: datetime | date, zone: ZoneInfo) -> datetime:
    """Return a moment, or the first one of a day."""
    return at if isinstance(at, datetime) else datetime(at.year, at.month, at.day, tzinfo=zone)
