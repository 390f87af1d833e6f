"""Filters of statistics by the values of dimensions, and the events that they match."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import ColumnElement, and_

from refract.clicks.columns.dimensions import VALUE_EXPRESSIONS
from refract.clicks.queries import EVENT_COLUMNS
from refract.clicks.rollups.breakdowns import ABSENT_VALUES
from refract.domains.hosts import get_default_host, to_other_host

FILTER_DIMENSIONS: Final = {
    "country": "countries",
    "city": "cities",
    "device": "devices",
    "browser": "browsers",
    "system": "systems",
    "referrer": "referrers",
    "campaign": "campaigns",
    "node": "nodes",
    "domain": "domains",
    "language": "languages",
    "rule": "rules",
}
"""The dimensions by the name of the parameter that filters by them."""
FILTER_PARAMETERS: Final = {dimension: name for name, dimension in FILTER_DIMENSIONS.items()}
MAX_FILTER_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class ClickFilter:
    """Values that clicks must have, by dimension: all of them."""

    values: Mapping[str, str] = field(default_factory=dict)
    default_domain: str = ""
    """The host that stored clicks leave out."""

    def __bool__(self) -> bool:
        return bool(self.values)

    @classmethod
    def from_parameters(
        cls, given: Iterable[tuple[str, str | None]], public_url: str
    ) -> "ClickFilter":
        """Return the filter of a query string; other parameters and empty values are ignored."""
        values = {
            FILTER_DIMENSIONS[name]: value[:MAX_FILTER_LENGTH]
            for name, value in given
            if value and name in FILTER_DIMENSIONS
        }
        default = get_default_host(public_url)
        if "domains" in values:
            values["domains"] = to_other_host(public_url, values["domains"]) or default
        if "languages" in values:
            values["languages"] = values["languages"].lower()
        return cls(values, default)

    @property
    def stored_values(self) -> dict[str, str | None]:
        """Return the values as clicks have them."""
        absent = ABSENT_VALUES | {"domains": self.default_domain}
        return {
            dimension: None if value == absent.get(dimension) else value
            for dimension, value in self.values.items()
        }

    def iter_parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the parameters of a query string."""
        for dimension, value in self.values.items():
            yield FILTER_PARAMETERS[dimension], value


def match_events(chosen: ClickFilter) -> ColumnElement[bool]:
    """Return the condition of events that the filter matches. Private ones have no values."""
    return and_(
        EVENT_COLUMNS["private"].is_(False),
        *(
            VALUE_EXPRESSIONS[dimension] == value
            for dimension, value in chosen.stored_values.items()
        ),
    )
