"""What pages with rows share: URLs of their filters, and the density of rows."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, get_args
from urllib.parse import urlencode

from refract.web.i18n import lazy_gettext

QueryParameters = Mapping[str, str | Sequence[str] | None]
Density = Literal["compact", "comfortable"]
DENSITY_LABELS: Final = {
    "compact": lazy_gettext("Compact"),
    "comfortable": lazy_gettext("Comfortable"),
}


def build_filter_url(path: str, query: QueryParameters, changes: QueryParameters) -> str:
    """Return the URL of a page with other filters. Those without a value are left out."""
    given = {name: value for name, value in {**query, **changes}.items() if value}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def toggle_value(values: Sequence[str], value: str) -> list[str]:
    """Return the values of a filter with one more, or without it."""
    return [known for known in values if known != value] if value in values else [*values, value]


def read_density(kept: object) -> Density:
    """Return a density that was kept as a preference, or the default."""
    return next((density for density in get_args(Density) if density == kept), "compact")
