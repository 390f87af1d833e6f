"""What clicks are counted by: the value of an event for each dimension, in SQL and in DuckDB."""

from typing import Any, Final

from sqlalchemy import ColumnElement, String, case, func, literal

from refract.clicks.queries import EVENT_COLUMNS

CAMPAIGN_COLUMNS: Final = {
    "sources": "utm_source",
    "mediums": "utm_medium",
    "terms": "utm_term",
    "contents": "utm_content",
}
"""Dimensions that only single events have: roll-ups keep campaigns alone."""
FACT_DIMENSIONS: Final = {
    "agent": ("devices", "browsers", "systems"),
    "place": ("countries", "cities"),
    "referrer": ("referrers",),
    "campaign": ("campaigns", *CAMPAIGN_COLUMNS, "domains", "languages", "rules"),
    "node": ("nodes",),
}
"""The dimensions of an event by what their values depend on."""
COLUMN_DIMENSIONS: Final = tuple(name for names in FACT_DIMENSIONS.values() for name in names)
"""All dimensions of an event, in the order of the rows of a table."""
LINKS: Final = "links"
"""The dimension of the links, beside those of a link's roll-ups."""


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
        "domains": column["domain"],
        "languages": column["language"],
        "rules": column["rule"],
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
    "domains": "domain",
    "languages": "language",
    "rules": "rule",
    **{name: f"nullif({utm}, '')" for name, utm in CAMPAIGN_COLUMNS.items()},
}
"""The same for DuckDB."""
