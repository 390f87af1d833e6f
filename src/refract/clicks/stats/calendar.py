"""Hours, days, weeks and months of any time zone, made of quarter hours of UTC.

All offsets from UTC in use are multiples of a quarter of an hour, so every hour and day of every
zone consists of whole quarters. Before the oldest quarter that is kept there are only UTC days, and
before the oldest of those only UTC months: a series marks where that is so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from refract.clicks.rollups.granularity import (
    DAY,
    MONTH,
    QUARTER,
    end_of,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.stats.errors import InvalidRange, TooManyPoints
from refract.core.clock import EPOCH
from refract.identity.time_zones import parse_zone

MAX_POINTS: Final = 2_000
DEFAULT_DAYS: Final = 30


class Granularity(StrEnum):
    """The length of a point of a series."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class SeriesBucket(NamedTuple):
    """The period of a point, in seconds.

    `coarse`: consists of whole UTC days (or months). `no_data`: nothing of it is kept any more.
    """

    begin: int
    end: int
    coarse: bool = False
    no_data: bool = False


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A requested period [begin, end) on quarter hours, and the zone of its hours and days."""

    begin: int
    end: int
    zone: ZoneInfo

    @property
    def previous(self) -> "TimeRange":
        """Return the period of the same length that ends where this one begins."""
        return TimeRange(2 * self.begin - self.end, self.begin, self.zone)


def parse_range(
    begin: datetime | date | None, end: datetime | date | None, zone: ZoneInfo, now: datetime
) -> TimeRange:
    """Return the requested period in whole quarter hours.

    A date means its first moment in the zone; the default are the last 30 days.
    """
    until = _parse_instant(end, zone) if end is not None else Fraction(to_seconds(now) + 1)
    if begin is not None:
        since = _parse_instant(begin, zone)
    else:
        last = to_datetime(ceil(until) - 1).astimezone(zone).date()
        since = Fraction(_get_midnight(last - timedelta(days=DEFAULT_DAYS - 1), zone))
    if since >= until:
        raise InvalidRange
    return TimeRange(start_of(QUARTER, floor(since)), _round_up(ceil(until)), zone)


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


def round_to_rollups(state: RollupProgress, period: TimeRange) -> tuple[int, int]:
    """Return what the roll-ups of a period count: outwards to UTC days or months where it is old.

    Otherwise the result would name a shorter time than the one it counts.
    """
    begin, end = period.begin, period.end
    if begin < state.quarters_from:
        begin = start_of(MONTH if begin < state.days_from else DAY, begin)
    if end <= state.quarters_from:
        end = _round_up(end, MONTH if end <= state.days_from else DAY)
    return begin, end


def build_buckets(
    period: TimeRange, granularity: Granularity, state: RollupProgress
) -> list[SeriesBucket]:
    """Return the points of a series, in order and without gaps.

    A period that begins before a horizon is rounded outwards to UTC days or months.
    """
    horizon = state.months_from if granularity == Granularity.MONTH else state.days_from
    fine_from = _round_up(state.quarters_from, DAY)
    begin, end = period.begin, period.end
    if begin < fine_from:
        begin = start_of(
            MONTH if granularity == Granularity.MONTH and begin < state.days_from else DAY, begin
        )
    if end < fine_from:
        end = _round_up(
            end, MONTH if granularity == Granularity.MONTH and end < state.days_from else DAY
        )
    edges = {begin, end} | {edge for edge in (horizon,) if begin < edge < end}
    for edge in _iter_boundaries(begin, end, fine_from, period.zone, granularity):
        edges.add(edge)
        if len(edges) > MAX_POINTS + 1:
            raise TooManyPoints(limit=MAX_POINTS)
    ordered = sorted(edges)
    return [
        SeriesBucket(start, stop, coarse=start < fine_from, no_data=stop <= horizon)
        for start, stop in pairwise(ordered)
    ]


def _iter_boundaries(
    begin: int, end: int, coarse_until: int, zone: ZoneInfo, granularity: Granularity
) -> Iterator[int]:
    """Yield every boundary strictly between begin and end.

    By the calendar of UTC up to `coarse_until`, by that of the zone after it.
    """
    at = begin
    while at < coarse_until:
        at = _get_next_boundary(
            at, _UTC, Granularity.DAY if granularity == Granularity.HOUR else granularity
        )
        if at < coarse_until and at < end:
            yield at
    if begin < coarse_until < end and granularity in (Granularity.HOUR, Granularity.DAY):
        yield coarse_until
    at = max(begin, coarse_until)
    while (at := _get_next_boundary(at, zone, granularity)) < end:
        yield at


def _get_next_boundary(at: int, zone: ZoneInfo, granularity: Granularity) -> int:
    """Return the next boundary after a moment."""
    local = datetime.fromtimestamp(at, zone)
    if granularity == Granularity.HOUR:
        return at + 3600 - (local.minute * 60 + local.second)
    day = local.date()
    if granularity == Granularity.DAY:
        day += timedelta(days=1)
    elif granularity == Granularity.WEEK:
        day += timedelta(days=7 - day.weekday())
    else:
        day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    return _get_midnight(day, zone)


def _get_midnight(day: date, zone: ZoneInfo) -> int:
    """Return the first moment of a day.

    Where clocks skip midnight, that is the moment they do so; where they repeat it, the first of
    both.
    """
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())


def _parse_instant(given: datetime | date, zone: ZoneInfo) -> Fraction:
    try:
        if isinstance(given, datetime):
            found = Fraction((given - EPOCH) // timedelta(microseconds=1), 1_000_000)
        else:
            found = Fraction(_get_midnight(given, zone))
    except (OverflowError, ValueError) as exc:
        raise InvalidRange from exc
    if not _MIN_INSTANT <= found <= _MAX_INSTANT:
        raise InvalidRange
    return found


def _round_up(second: int, grain: int = QUARTER) -> int:
    start = start_of(grain, second)
    return start if start == second else end_of(grain, start)


_UTC: Final = ZoneInfo("UTC")
_MIN_INSTANT: Final = to_seconds(datetime(1970, 3, 1, tzinfo=UTC))
_MAX_INSTANT: Final = to_seconds(datetime(9000, 1, 1, tzinfo=UTC))
