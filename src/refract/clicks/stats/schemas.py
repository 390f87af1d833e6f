"""API schemas of statistics."""

import re
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from refract.clicks.stats.calendar import Granularity
from refract.core.phrases import Phrase
from refract.core.schemas import Id, OutputSchema, Timestamp

_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_timestamp_adapter: TypeAdapter[datetime] = TypeAdapter(Timestamp)


def parse_when(value: Any) -> datetime | date:
    """Parse a moment, or a date, which means its first moment in the requested time zone."""
    text = str(value).strip()
    try:
        return (
            date.fromisoformat(text)
            if _DATE_PATTERN.fullmatch(text)
            else _timestamp_adapter.validate_python(text)
        )
    except (ValueError, ValidationError) as exc:
        raise ValueError(
            Phrase(
                "Enter a date, like 2030-01-31, or a time with its offset, like"
                " 2030-01-31T12:00:00Z."
            )
        ) from exc


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
    """A dimension of a breakdown."""

    REFERRERS = "referrers"
    COUNTRIES = "countries"
    CITIES = "cities"
    DEVICES = "devices"
    BROWSERS = "browsers"
    SYSTEMS = "systems"
    CAMPAIGNS = "campaigns"
    NODES = "nodes"
    DOMAINS = "domains"
    LANGUAGES = "languages"


class LinkDimension(StrEnum):
    """A dimension of a breakdown of one link.

    Includes its rules, and the campaign parameters, which are counted click by click.
    """

    REFERRERS = "referrers"
    COUNTRIES = "countries"
    CITIES = "cities"
    DEVICES = "devices"
    BROWSERS = "browsers"
    SYSTEMS = "systems"
    CAMPAIGNS = "campaigns"
    NODES = "nodes"
    DOMAINS = "domains"
    LANGUAGES = "languages"
    RULES = "rules"
    SOURCES = "sources"
    MEDIUMS = "mediums"
    TERMS = "terms"
    CONTENTS = "contents"


class _WithRange(OutputSchema):
    begin: datetime = Field(
        validation_alias="begin",
        serialization_alias="from",
        description=(
            "Start of the period: the requested one, rounded down to the quarter hour, or to what"
            " is still kept of that time."
        ),
    )
    end: datetime = Field(
        validation_alias="end",
        serialization_alias="to",
        description="End of the period, not included.",
    )


class CountsOut(OutputSchema):
    """Clicks of people, unique visitors, and bots. Bots are not among the clicks."""

    clicks: int
    uniques: int = Field(description="Unique visitors of each UTC day, added up.")
    bots: int


class PreviousOut(_WithRange, CountsOut):
    """The counts of the previous period of the same length."""


class PointOut(OutputSchema):
    """A point of a series, which ends where the next one begins."""

    at: datetime
    clicks: int
    uniques: int
    bots: int
    utc_day: bool = Field(
        description=(
            "Only whole UTC days (or months) are known of this time, regardless of the requested"
            " time zone."
        )
    )
    no_data: bool = Field(description="Before the horizon: not zero clicks, but no longer known.")


class LinkClicksOut(OutputSchema):
    id: Id
    clicks: int


class StatsOut(_WithRange):
    """The counts of a period."""

    granularity: Granularity
    time_zone: str = Field(examples=["Europe/Berlin"])
    totals: CountsOut
    previous: PreviousOut | None
    series: list[PointOut]


class OverviewOut(StatsOut):
    """The counts of a period over all my links."""

    links: list[LinkClicksOut] = Field(description="Most clicked first.")


class ShareOut(OutputSchema):
    value: str = Field(examples=["DE"])
    label: str = Field(examples=["Germany"])
    clicks: int
    share: float = Field(description="Share of `total`, between 0 and 1.", examples=[0.25])


class BreakdownOut(_WithRange):
    """Clicks of people by value, in descending order."""

    items: list[ShareOut]
    other: int = Field(description="Clicks of all values that are not in `items`.")
    total: int = Field(description="Sum of `items` and `other`.")
    without: int = Field(
        description="Clicks of people without such a value, or who asked not to be tracked."
    )


class OverviewBreakdownOut(BreakdownOut):
    """Clicks on all my links by value."""

    links: list[LinkClicksOut] = Field(description="Most clicked first.")


class DashboardOut(OutputSchema):
    """Statistics and all breakdowns of one link."""

    stats: StatsOut
    breakdowns: dict[str, BreakdownOut]
