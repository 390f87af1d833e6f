"""Statistics as the API takes and shows them."""

import re
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from refract.clicks.stats.calendar import Granularity
from refract.core.schemas import Id, OutputSchema, Timestamp

_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_timestamp_adapter: TypeAdapter[datetime] = TypeAdapter(Timestamp)


def parse_when(value: Any) -> datetime | date:
    """A moment, or a date: its first moment in the time zone that was asked for."""
    text = str(value).strip()
    try:
        return (
            date.fromisoformat(text)
            if _DATE_PATTERN.fullmatch(text)
            else _timestamp_adapter.validate_python(text)
        )
    except (ValueError, ValidationError) as exc:
        problem = (
            "Write a date such as 2030-01-31, or a moment with its offset such as"
            " 2030-01-31T12:00:00Z."
        )
        raise ValueError(problem) from exc


DateOrTime = Annotated[
    datetime | date,
    PlainValidator(parse_when),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
            ],
            "examples": ["2026-01-31T12:00:00Z"],
        }
    ),
]


class Dimension(StrEnum):
    """What clicks can be broken down by."""

    REFERRERS = "referrers"
    COUNTRIES = "countries"
    CITIES = "cities"
    DEVICES = "devices"
    BROWSERS = "browsers"
    SYSTEMS = "systems"
    CAMPAIGNS = "campaigns"
    NODES = "nodes"


class LinkDimension(StrEnum):
    """The same for one link, and the parts of a campaign, which are counted click by click."""

    REFERRERS = "referrers"
    COUNTRIES = "countries"
    CITIES = "cities"
    DEVICES = "devices"
    BROWSERS = "browsers"
    SYSTEMS = "systems"
    CAMPAIGNS = "campaigns"
    NODES = "nodes"
    SOURCES = "sources"
    MEDIUMS = "mediums"
    TERMS = "terms"
    CONTENTS = "contents"


class _WithRange(OutputSchema):
    begin: datetime = Field(
        validation_alias="begin",
        serialization_alias="from",
        description=(
            "Where the figures begin: what was asked for, down to the quarter hour or whatever is"
            " still known of that time."
        ),
    )
    end: datetime = Field(
        validation_alias="end",
        serialization_alias="to",
        description="Where they end; this moment is not included.",
    )


class CountsOut(OutputSchema):
    """Clicks are people; bots are beside them, never inside."""

    clicks: int
    uniques: int = Field(description="Different visitors of each UTC day, the days added up.")
    bots: int


class PreviousOut(_WithRange, CountsOut):
    """The time just as long before."""


class PointOut(OutputSchema):
    """One stretch of time; it ends where the next begins."""

    at: datetime
    clicks: int
    uniques: int
    bots: int
    utc_day: bool = Field(
        description=(
            "Only whole UTC days (or months) are known of this time, whatever time zone was asked"
            " for."
        )
    )
    no_data: bool = Field(
        description="Before the horizon: not zero clicks, but nothing known any more."
    )


class LinkClicksOut(OutputSchema):
    id: Id
    clicks: int


class StatsOut(_WithRange):
    """Figures of a time."""

    granularity: Granularity
    time_zone: str = Field(examples=["Europe/Berlin"])
    totals: CountsOut
    previous: PreviousOut | None
    series: list[PointOut]


class OverviewOut(StatsOut):
    """Figures of a time over all my links."""

    links: list[LinkClicksOut] = Field(description="The most clicked first.")


class ShareOut(OutputSchema):
    value: str = Field(examples=["DE"])
    label: str = Field(examples=["Germany"])
    clicks: int
    share: float = Field(description="Its part of `total`, between 0 and 1.", examples=[0.25])


class BreakdownOut(_WithRange):
    """Clicks of people by value, the most frequent first."""

    items: list[ShareOut]
    other: int = Field(description="Clicks of all values that are not among the items.")
    total: int = Field(description="Items and other together.")
    without: int = Field(
        description="Clicks of people without such a value, or who asked not to be tracked."
    )


class OverviewBreakdownOut(BreakdownOut):
    """Clicks on all my links by value."""

    links: list[LinkClicksOut] = Field(description="The most clicked first.")


class DashboardOut(OutputSchema):
    """Everything about one link at once."""

    stats: StatsOut
    breakdowns: dict[str, BreakdownOut]
