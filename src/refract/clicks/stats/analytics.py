"""The analytics component: its query string, its numbers, and the links in it.

One component on two pages: all links of an account (or those with a tag), and one link.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from sqlalchemy import func, select

from refract.clicks.stats.calendar import Granularity, StatsQuery, parse_zone
from refract.clicks.stats.filtered import load_recent_clicks
from refract.clicks.stats.filters import FILTER_PARAMETERS, LINKS, ClickFilter
from refract.clicks.stats.labels import get_label
from refract.clicks.stats.overview import load_scope_dashboard, load_scope_stats
from refract.clicks.stats.period import (
    COMPARISONS,
    GRANULARITIES,
    PRESETS,
    AnalyticsPeriod,
    parse_period,
)
from refract.clicks.stats.results import Breakdown, LinkDashboard, StatsResult
from refract.clicks.stats.scope import LinkScope, StatsScope
from refract.core.errors import Invalid
from refract.core.ids import get_creation_time
from refract.core.runtime import Runtime
from refract.links.models import Link
from refract.names.models import NameTarget
from refract.names.queries import list_names
from refract.web.formats import (
    format_date,
    format_datetime,
    format_month,
    format_time,
    get_territory_name,
)
from refract.web.i18n import gettext, lazy_gettext, translate_error

MAX_ROWS: Final = 10
_KEPT_PARAMETERS: Final = ("range", "from", "to", "by", "compare", "tag", "link")
_FILTER_LABELS: Final = {
    "tag": lazy_gettext("Tag"),
    "link": lazy_gettext("Link"),
    "countries": lazy_gettext("Country"),
    "cities": lazy_gettext("City"),
    "devices": lazy_gettext("Device"),
    "browsers": lazy_gettext("Browser"),
    "systems": lazy_gettext("System"),
    "referrers": lazy_gettext("Source"),
    "campaigns": lazy_gettext("Campaign"),
    "nodes": lazy_gettext("Server"),
}
PANEL_TITLES: Final = {
    LINKS: lazy_gettext("Links"),
    "referrers": lazy_gettext("Sources"),
    "campaigns": lazy_gettext("Campaigns"),
    "countries": lazy_gettext("Countries"),
    "cities": lazy_gettext("Cities"),
    "devices": lazy_gettext("Devices"),
    "browsers": lazy_gettext("Browsers"),
    "systems": lazy_gettext("Systems"),
}
_VALUE_LABELS: Final = {
    ("devices", "desktop"): lazy_gettext("Desktop"),
    ("devices", "mobile"): lazy_gettext("Mobile"),
    ("devices", "tablet"): lazy_gettext("Tablet"),
    ("devices", "bot"): lazy_gettext("Bot"),
    ("referrers", "direct"): lazy_gettext("Direct"),
}


@dataclass(frozen=True, slots=True)
class AnalyticsRequest:
    """What a page asks for: a scope, a filter, a period, and the page's address."""

    scope: StatsScope
    chosen: ClickFilter
    zone: str
    now: datetime
    path: str
    given: Mapping[str, str]
    scope_labels: Mapping[str, str]
    """Names of the tag and the link that the query string asks for."""

    def build_url(self, path: str | None = None, **changes: str | None) -> str:
        """Return the address of this page with other parameters; None removes one."""
        current = {name: self.given[name] for name in _KEPT_PARAMETERS if self.given.get(name)}
        current |= dict(self.chosen.iter_parameters())
        merged = {**current, **changes}
        query = urlencode({name: value for name, value in merged.items() if value})
        path = path or self.path
        return f"{path}?{query}" if query else path

    async def parse_period(self, rt: Runtime) -> AnalyticsPeriod:
        return parse_period(self.given, self.zone, self.now, await self._find_oldest(rt))

    async def _find_oldest(self, rt: Runtime) -> datetime:
        """Return when the first link of the scope was created; only for all time."""
        if isinstance(self.scope, LinkScope):
            return get_creation_time(self.scope.link_id)
        if self.given.get("range") != "all":
            return self.now
        links = self.scope.select_links().subquery()
        async with rt.db.read() as session:
            oldest = await session.scalar(select(func.min(links.c[0])))
        return get_creation_time(oldest) if oldest else self.now


async def build_analytics(rt: Runtime, asked: AnalyticsRequest) -> dict[str, Any]:
    """Return the context of the component, in a fixed number of queries."""
    period = await asked.parse_period(rt)
    try:
        found = await load_dashboard(rt, asked, period.query)
    except Invalid as exc:  # too many points
        error = translate_error(exc)
        given = {
            name: value
            for name, value in asked.given.items()
            if name not in ("from", "to", "by", "range")
        }
        period = await replace(asked, given=given).parse_period(rt)
        period = replace(period, error=error)
        found = await load_dashboard(rt, asked, period.query)
    before = (
        await load_scope_stats(rt, asked.scope, asked.chosen, period.previous, asked.now, links=0)
        if period.previous
        else None
    )
    names = await load_link_names(rt, [link.id for link in found.stats.links])
    return {
        **_build_controls(asked, period),
        "from": found.stats.begin,
        "to": found.stats.end,
        "totals": found.stats.totals,
        "previous": before.totals if before else None,
        "compare": period.compare,
        "open": found.stats.end >= asked.now,
        "is_empty": not (found.stats.totals.clicks or found.stats.totals.bots),
        "kept_from": found.stats.kept_from,
        "chart": build_chart(found.stats, before, asked.now),
        "rows": build_rows(found.stats),
        "panels": build_panels(asked, found, names),
        "export": asked.build_url("/app/analytics/export.csv", **_get_scope_parameters(asked)),
        "recent": await build_recent(rt, asked),
    }


async def build_recent(rt: Runtime, asked: AnalyticsRequest) -> dict[str, Any]:
    """Return the clicks of the last half hour, as the live feed shows them."""
    async with rt.db.read() as session:
        clicks, count = await load_recent_clicks(session, asked.scope, asked.chosen, asked.now)
    names = await load_link_names(rt, sorted({click.link_id for click in clicks}))
    zone = parse_zone(asked.zone)
    return {
        "count": count,
        "refresh": asked.build_url("/app/analytics/live", **_get_scope_parameters(asked)),
        "rows": [
            {
                "at": format_time(click.at.astimezone(zone).time()),
                "name": names[click.link_id],
                "country": translate_value("countries", click.country),
                "device": translate_value("devices", click.device),
                "source": translate_value("referrers", click.source),
            }
            for click in clicks
        ],
    }


async def load_dashboard(rt: Runtime, asked: AnalyticsRequest, query: StatsQuery) -> LinkDashboard:
    """Return all statistics of a period."""
    links = 0 if isinstance(asked.scope, LinkScope) else MAX_ROWS
    return await load_scope_dashboard(rt, asked.scope, asked.chosen, query, asked.now, links=links)


async def load_link_names(rt: Runtime, links: Sequence[int]) -> dict[int, str]:
    """Return the first name of each link, or its code."""
    if not links:
        return {}
    async with rt.db.read() as session:
        names = await list_names(session, NameTarget.LINK, links)
        found = await session.scalars(select(Link).where(Link.id.in_(links)))
        codes = {link.id: link.code for link in found}
    return {link: (names.get(link) or [codes.get(link, str(link))])[0] for link in links}


def _get_scope_parameters(asked: AnalyticsRequest) -> dict[str, str]:
    return {"link": str(asked.scope.link_id)} if isinstance(asked.scope, LinkScope) else {}


def _build_controls(asked: AnalyticsRequest, period: AnalyticsPeriod) -> dict[str, Any]:
    """Return presets, comparison, dates and chips, each with its address."""
    cleared = {"from": None, "to": None, "by": None}
    fields = dict.fromkeys(("from", "to", "by", "range"), None)
    parameters = asked.build_url(**fields).partition("?")[2]
    return {
        "base": asked.path,
        "presets": [
            (label, asked.build_url(**{**cleared, "range": key}), key == period.preset)
            for key, label in PRESETS.items()
        ],
        "comparisons": [
            (label, asked.build_url(compare=key), key == period.compare)
            for key, label in COMPARISONS.items()
        ],
        "steps": [(key.value, label) for key, label in GRANULARITIES.items()],
        "step": period.query.granularity.value,
        "begin": period.begin,
        "end": period.end,
        "error": period.error,
        "hidden": parse_qsl(parameters),
        "zone": asked.zone,
        "chips": list(_iter_chips(asked)),
        "clear": asked.build_url(
            tag=None, link=None, **dict.fromkeys(dict(asked.chosen.iter_parameters()))
        ),
    }


def _iter_chips(asked: AnalyticsRequest) -> Iterable[dict[str, str]]:
    for name, value in asked.scope_labels.items():
        yield {
            "name": str(_FILTER_LABELS[name]),
            "value": value,
            "href": asked.build_url(**{name: None}),
        }
    for dimension, value in asked.chosen.values.items():
        yield {
            "name": str(_FILTER_LABELS[dimension]),
            "value": translate_value(dimension, value),
            "href": asked.build_url(**{FILTER_PARAMETERS[dimension]: None}),
        }


def build_chart(found: StatsResult, before: StatsResult | None, now: datetime) -> dict[str, Any]:
    """Return the data of `time_chart` in `components/chart.html`."""
    clicks = [point.clicks for point in found.series]
    series = [{"label": gettext("Clicks"), "values": clicks}]
    if before is not None and before.totals.clicks:
        earlier = [point.clicks for point in before.series][: len(clicks)]
        earlier += [0] * (len(clicks) - len(earlier))
        series.append({"label": gettext("Previous period"), "values": earlier, "look": "dashed"})
    return {
        "at": [int(point.at.timestamp()) for point in found.series],
        "series": series,
        "zone": found.time_zone,
        "by": found.granularity.value,
        "running": found.end + timedelta(minutes=15) > now,
    }


def build_rows(found: StatsResult) -> list[tuple[str, int, int, int]]:
    """Return the series as the rows of a table."""
    zone = parse_zone(found.time_zone)
    return [
        (
            format_point(point.at.astimezone(zone), found.granularity),
            point.clicks,
            point.uniques,
            point.bots,
        )
        for point in found.series
    ]


def format_point(local: datetime, granularity: Granularity) -> str:
    """Format the time of a point of a series."""
    if granularity == Granularity.HOUR:
        return format_datetime(local, parse_zone("UTC") if local.tzinfo is None else local.tzinfo)
    return format_month(local) if granularity == Granularity.MONTH else format_date(local.date())


def translate_value(dimension: str, value: str) -> str:
    """Return the name of a value in the language of the page."""
    if dimension == "countries":
        return get_territory_name(value) or gettext("Unknown")
    return str(_VALUE_LABELS.get((dimension, value)) or get_label(dimension, value))


def build_panels(
    asked: AnalyticsRequest, found: LinkDashboard, names: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """Return the rows of each panel, with the addresses that add them as filters."""
    panels = {
        dimension: build_panel(asked, found.breakdowns[dimension])
        for dimension in PANEL_TITLES
        if dimension != LINKS
    }
    if not isinstance(asked.scope, LinkScope):
        panels[LINKS] = build_links_panel(asked, found.stats, names)
    return panels


def build_panel(asked: AnalyticsRequest, breakdown: Breakdown) -> dict[str, Any]:
    dimension = breakdown.dimension
    parameter = FILTER_PARAMETERS[dimension]
    rows = []
    for item in breakdown.items:
        label = translate_value(dimension, item.value)
        rows.append(
            {
                "value": item.value,
                "label": label,
                "note": item.value
                if dimension == "referrers" and "." in item.value and label != item.value
                else "",
                "clicks": item.clicks,
                "share": item.share,
                "href": asked.build_url(**{parameter: item.value}),
            }
        )
    return {
        "title": PANEL_TITLES[dimension],
        "rows": rows,
        "other": breakdown.other,
        "other_share": breakdown.other / breakdown.total if breakdown.total else 0,
        "details": asked.build_url(
            f"/app/analytics/details/{dimension}", **_get_scope_parameters(asked)
        )
        if breakdown.other
        else None,
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
                "label": f"/{names[link.id]}",
                "note": "",
                "clicks": link.clicks,
                "share": link.clicks / total if total else 0,
                "href": asked.build_url(link=str(link.id), tag=None),
            }
            for link in found.links
        ],
        "other": max(0, total - shown),
        "other_share": (total - shown) / total if total else 0,
        "details": asked.build_url("/app/analytics/details/links") if total > shown else None,
    }
