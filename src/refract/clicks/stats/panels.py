"""The panels of the analytics component: their rows, each with the address that filters by it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from refract.clicks.columns.dimensions import LINKS
from refract.clicks.languages import load_language_names
from refract.clicks.rollups.breakdowns import ABSENT_VALUES, NO_RULE
from refract.clicks.stats.analytics_request import AnalyticsRequest
from refract.clicks.stats.filters import FILTER_PARAMETERS
from refract.clicks.stats.labels import get_label
from refract.clicks.stats.results import Breakdown, LinkDashboard, StatsResult
from refract.clicks.stats.scope import LinkScope
from refract.links.rules.document import LinkRule
from refract.names.grammar import format_name
from refract.web.formats import get_territory_name
from refract.web.i18n import current_locale, gettext, lazy_gettext

MAX_ROWS_BELOW_MAP: Final = 5
RULES: Final = "rules"
"""The dimension that only a single link has: numbers of rules are those of a link."""
_PLACES: Final = ("countries", "cities")
PANEL_TITLES: Final = {
    LINKS: lazy_gettext("Links"),
    "referrers": lazy_gettext("Sources"),
    "campaigns": lazy_gettext("Campaigns"),
    "countries": lazy_gettext("Countries"),
    "cities": lazy_gettext("Cities"),
    "devices": lazy_gettext("Devices"),
    "browsers": lazy_gettext("Browsers"),
    "systems": lazy_gettext("Systems"),
    "languages": lazy_gettext("Languages"),
    "domains": lazy_gettext("Domains"),
    RULES: lazy_gettext("Rules"),
}
_VALUE_LABELS: Final = {
    ("devices", "desktop"): lazy_gettext("Desktop"),
    ("devices", "mobile"): lazy_gettext("Mobile"),
    ("devices", "tablet"): lazy_gettext("Tablet"),
    ("devices", "bot"): lazy_gettext("Bot"),
    ("referrers", "direct"): lazy_gettext("Direct"),
}


def translate_value(dimension: str, value: str) -> str:
    """Return the name of a value in the language of the page."""
    if dimension == "countries":
        return get_territory_name(value) or gettext("Unknown")
    if dimension == "languages":
        return load_language_names(current_locale().folder).get(value) or gettext("Unknown")
    return str(_VALUE_LABELS.get((dimension, value)) or get_label(dimension, value))


def describe_rule(value: str, rules: Sequence[LinkRule]) -> tuple[str, str]:
    """Return how the page names a rule, by its place, and where it leads."""
    if value == NO_RULE:
        return gettext("No rule"), ""
    for place, rule in enumerate(rules, 1):
        if str(rule.number) == value:
            return gettext("Rule {n}", n=place), rule.destination
    return gettext("Removed rule {n}", n=value), ""


def list_dimensions(asked: AnalyticsRequest) -> list[str]:
    """Return the dimensions that have a panel, without that of the links."""
    is_link = isinstance(asked.scope, LinkScope)
    return [name for name in PANEL_TITLES if name != LINKS and (name != RULES or is_link)]


def build_panels(
    asked: AnalyticsRequest,
    found: LinkDashboard,
    names: Mapping[int, str],
    rules: Sequence[LinkRule] = (),
) -> dict[str, dict[str, Any]]:
    """Return the rows of each panel, with the addresses that add them as filters."""
    panels = {
        dimension: build_panel(
            asked,
            found.breakdowns[dimension],
            MAX_ROWS_BELOW_MAP if dimension in _PLACES else None,
            rules,
        )
        for dimension in list_dimensions(asked)
    }
    panels.setdefault(RULES, {"rows": []})
    for dimension, absent in (ABSENT_VALUES | {"domains": asked.chosen.default_domain}).items():
        if [row["value"] for row in panels[dimension]["rows"]] == [absent]:
            panels[dimension]["rows"] = []  # of no use while it is the value of all clicks
    if not isinstance(asked.scope, LinkScope):
        panels[LINKS] = build_links_panel(asked, found.stats, names)
    return panels


def build_panel(
    asked: AnalyticsRequest,
    breakdown: Breakdown,
    most: int | None = None,
    rules: Sequence[LinkRule] = (),
) -> dict[str, Any]:
    """Return the rows of a breakdown. `most`: how many; the map gets all of them as `places`."""
    dimension = breakdown.dimension
    parameter = FILTER_PARAMETERS[dimension]
    rows = []
    for item in breakdown.items:
        label, note = translate_value(dimension, item.value), ""
        if dimension == RULES:
            label, note = describe_rule(item.value, rules)
        elif dimension == "referrers" and "." in item.value and label != item.value:
            note = item.value
        rows.append(
            {
                "value": item.value,
                "label": label,
                "note": note,
                "clicks": item.clicks,
                "share": item.share,
                "href": asked.build_url(**{parameter: item.value}),
            }
        )
    shown = rows[:most]
    other = breakdown.total - sum(item.clicks for item in breakdown.items[:most])
    return {
        "title": PANEL_TITLES[dimension],
        "rows": shown,
        "places": rows if dimension == "countries" else None,
        "has_all_places": not breakdown.other,
        "other": other,
        "other_share": other / breakdown.total if breakdown.total else 0,
        "details": asked.build_part_url(f"/app/analytics/details/{dimension}") if other else None,
    }


def build_links_panel(
    asked: AnalyticsRequest, found: StatsResult, names: Mapping[int, str]
) -> dict[str, Any]:
    total = found.totals.clicks
    shown = sum(link.clicks for link in found.links)
    return {
        "title": PANEL_TITLES[LINKS],
        "rows": [
            {
                "value": str(link.id),
                "label": format_name(names[link.id]),
                "note": "",
                "clicks": link.clicks,
                "share": link.clicks / total if total else 0,
                "href": asked.build_url(link=str(link.id), owner=None, team=None, tag=None),
            }
            for link in found.links
        ],
        "other": max(0, total - shown),
        "other_share": (total - shown) / total if total else 0,
        "details": asked.build_url("/app/analytics/details/links") if total > shown else None,
    }
