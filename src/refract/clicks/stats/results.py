"""What statistics answer, without a word about how it is shown."""

from dataclasses import dataclass, field
from datetime import datetime

from refract.clicks.stats.calendar import Granularity


@dataclass(frozen=True, slots=True)
class ClickCounts:
    """Clicks are people; bots are beside them, never inside. Uniques are different visitors of each UTC day, days added up."""

    clicks: int = 0
    uniques: int = 0
    bots: int = 0


@dataclass(frozen=True, slots=True)
class PreviousPeriod(ClickCounts):
    """The time just as long before."""

    begin: datetime = datetime.min  # noqa: DTZ901 - always given
    end: datetime = datetime.min  # noqa: DTZ901


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One stretch of a series, which ends where the next begins."""

    at: datetime
    clicks: int
    uniques: int
    bots: int
    utc_day: bool
    """Only whole UTC days (or months) are known of this time, whatever zone was asked for."""
    no_data: bool
    """Before the horizon: not zero clicks, but nothing known."""


@dataclass(frozen=True, slots=True)
class LinkClicks:
    id: int
    clicks: int


@dataclass(frozen=True, slots=True)
class StatsResult:
    """Figures of a time, and how they came about."""

    begin: datetime
    end: datetime
    granularity: Granularity
    time_zone: str
    totals: ClickCounts
    previous: PreviousPeriod | None
    series: list[SeriesPoint]
    links: list[LinkClicks] = field(default_factory=list)
    """The most clicked first; only where several links were asked about."""


@dataclass(frozen=True, slots=True)
class ValueShare:
    """One value of a breakdown. `share` is its part of `total`, between 0 and 1."""

    value: str
    label: str
    clicks: int
    share: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Clicks of people by value, the most frequent first. `other` are those of all values not shown; items and other make `total`."""

    begin: datetime
    end: datetime
    dimension: str
    items: list[ValueShare]
    other: int
    total: int
    without: int
    """Clicks of people that have no such value, or whose browsers asked not to be tracked: total and these are all clicks."""
    links: list[LinkClicks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LinkDashboard:
    """Everything about one link at once."""

    stats: StatsResult
    breakdowns: dict[str, Breakdown]
