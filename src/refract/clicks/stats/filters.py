"""Filters of statistics by the values of dimensions, and the events that they match."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, String, and_, case, func, literal

from refract.clicks.queries import EVENT_COLUMNS
from refract.clicks.stats.events import CAMPAIGN_COLUMNS

FILTER_DIMENSIONS: Final = {
    "country": "countries",
    "city": "cities",
    "device": "devices",
    "browser": "browsers",
    "system": "systems",
    "referrer": "referrers",
    "campaign": "campaigns",
    "node": "nodes",
}
"""The dimensions by the name of the parameter that filters by them."""
FILTER_PARAMETERS: Final = {dimension: name for name, dimension in FILTER_DIMENSIONS.items()}
MAX_FILTER_LENGTH: Final = 300
LINKS: Final = "links"
"""The dimension of the links, beside those of a link's roll-ups."""


@dataclass(frozen=True, slots=True)
class ClickFilter:
    """Values that clicks must have, by dimension: all of them."""

    values: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.values)

    @classmethod
    def from_parameters(cls, given: Iterable[tuple[str, str | None]]) -> "ClickFilter":
        """Return the filter of a query string; other parameters and empty values are ignored."""
        return cls(
            {
                FILTER_DIMENSIONS[name]: value[:MAX_FILTER_LENGTH]
                for name, value in given
                if value and name in FILTER_DIMENSIONS
            }
        )

    def iter_parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the parameters of a query string."""
        for dimension, value in self.values.items():
            yield FILTER_PARAMETERS[dimension], value


def _build_expressions() -> dict[str, ColumnElement[Any]]:
    """Return the value of an event by dimension, as roll-ups count it; NULL if there is none."""
    column = EVENT_COLUMNS
    country = func.coalesce(column["country_code"], "XX")
    city = func.nullif(column["city"], "", type_=String())
    return {
        "devices": column["device"],
        "referrers": func.coalesce(column["referrer_host"], "direct"),
        "countries": country,
        "cities": case((city.is_not(None), city + literal(", ") + country)),
        "campaigns": func.nullif(column["utm_campaign"], "", type_=String()),
        "browsers": column["browser"],
        "systems": column["system"],
        "nodes": column["node"],
        LINKS: column["target_id"],
        **{
            name: func.nullif(column[utm], "", type_=String())
            for name, utm in CAMPAIGN_COLUMNS.items()
        },
    }


VALUE_EXPRESSIONS: Final = _build_expressions()
FILE_EXPRESSIONS: Final = {
    "devices": "device",
    "referrers": "coalesce(referrer_host, 'direct')",
    "countries": "coalesce(country_code, 'XX')",
    "cities": "nullif(city, '') || ', ' || coalesce(country_code, 'XX')",
    "campaigns": "nullif(utm_campaign, '')",
    "browsers": "browser",
    "systems": "system",
    "nodes": "node",
    LINKS: "target_id",
    **{name: f"nullif({utm}, '')" for name, utm in CAMPAIGN_COLUMNS.items()},
}
"""The same for DuckDB."""


def match_events(chosen: ClickFilter) -> ColumnElement[bool]:
    """Return the condition of events that the filter matches. Private ones have no values."""
    return and_(
        EVENT_COLUMNS["private"].is_(False),
        *(VALUE_EXPRESSIONS[dimension] == value for dimension, value in chosen.values.items()),
    )


def match_archived(chosen: ClickFilter) -> tuple[str, list[str]]:
    """Return the same condition for DuckDB, and its parameters."""
    conditions = ["NOT private", *(f"{FILE_EXPRESSIONS[name]} = ?" for name in chosen.values)]
    return " AND ".join(conditions), list(chosen.values.values())
