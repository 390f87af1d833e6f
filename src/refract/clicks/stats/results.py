"""Results of statistics, independent of their presentation."""

from dataclasses import dataclass, field
from datetime import datetime

from refract.clicks.stats.calendar import Granularity


@dataclass(frozen=True, slots=True)
class ClickCounts:
    """Clicks of people, unique visitors, and bots.

    Bots are not among the clicks. Uniques are the unique visitors of each UTC day, added up.
    """

    clicks: int = 0
    uniques: int = 0
    bots: int = 0


@dataclass(frozen=True, slots=True)
class PreviousPeriod(ClickCounts):
    """The counts of the previous period of the same length."""

    begin: datetime = datetime.min  # noqa: DTZ901 - always given
    end: datetime = datetime.min  # noqa: DTZ901


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A point of a series, which ends where the next one begins."""

    at: datetime
    clicks: int
    uniques: int
    bots: int
    utc_day: bool
    """Only whole UTC days (or months) are known of this time, in any requested zone."""
    no_data: bool
    """Before the horizon: not zero clicks, but unknown."""


@dataclass(frozen=True, slots=True)
class LinkClicks:
    id: int
    clicks: int


@dataclass(frozen=True, slots=True)
class StatsResult:
    """The counts of a period, in total and as a series."""

    begin: datetime
    end: datetime
    granularity: Granularity
    time_zone: str
    totals: ClickCounts
    previous: PreviousPeriod | None
    series: list[SeriesPoint]
    links: list[LinkClicks] = field(default_factory=list)
    """The most clicked links; only for results of several links."""
    kept_from: datetime | None = None
    """Set if a filter cannot count a part of the period: single clicks are kept from then on."""
    before: "StatsResult | None" = None
    """The period that this one is compared with, if it was asked for."""
    is_costly: bool = field(default=False, compare=False)
    """Whether many roll-ups of single links were summed up: the group should have its own."""


@dataclass(frozen=True, slots=True)
class ValueShare:
    """A value of a breakdown. `share` is its part of `total`, between 0 and 1."""

    value: str
    label: str
    clicks: int
    share: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Clicks of people by value, in descending order.

    `other` is the sum of the values not shown; items and other add up to `total`.
    """

    begin: datetime
    end: datetime
    dimension: str
    items: list[ValueShare]
    other: int
    total: int
    without: int
    """Clicks of people without such a value, or who asked not to be tracked.

    `total` and these add up to all clicks.
    """
    links: list[LinkClicks] = field(default_factory=list)
    is_costly: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class LinkDashboard:
    """Statistics and all breakdowns of one link."""

    stats: StatsResult
    breakdowns: dict[str, Breakdown]

    @property
    def is_costly(self) -> bool:
        return self.stats.is_costly
