"""The analytics component: its controls and its numbers.

One component on two pages: all links of an account (or those with a tag), and one link.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qsl

from sqlalchemy import select

from refract.clicks.stats.analytics_request import AnalyticsRequest
from refract.clicks.stats.charts import build_chart, build_rows
from refract.clicks.stats.filtered import load_recent_clicks
from refract.clicks.stats.filters import FILTER_PARAMETERS
from refract.clicks.stats.overview import load_scope_dashboard
from refract.clicks.stats.panels import RULES, build_panels, describe_rule, translate_value
from refract.clicks.stats.period import (
    COMPARISONS,
    GRANULARITIES,
    PRESETS,
    AnalyticsPeriod,
)
from refract.clicks.stats.results import LinkDashboard
from refract.clicks.stats.scope import LinkScope
from refract.core.errors import Invalid
from refract.core.runtime import Runtime
from refract.domains.hosts import get_default_host
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.time_zones import parse_zone
from refract.links.models import Link
from refract.links.queries.cards import choose_text
from refract.links.queries.facets import count_tags
from refract.links.rules.document import LinkRule, parse_rules
from refract.names.enums import NameTarget
from refract.names.grammar import format_name
from refract.names.queries import list_names
from refract.teams.queries import list_own_teams
from refract.web.formats import format_time
from refract.web.i18n import lazy_gettext, translate_error

MAX_ROWS: Final = 10
ScopeMenu = list[tuple[str, list[tuple[str, str, bool]]]]
"""Groups of choices: a name, an address, and whether it is the one that is shown."""
_FILTER_LABELS: Final = {
    "owner": lazy_gettext("Links"),
    "team": lazy_gettext("Team"),
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
    "domains": lazy_gettext("Domain"),
    "languages": lazy_gettext("Language"),
    "rules": lazy_gettext("Rule"),
}


async def build_analytics(rt: Runtime, asked: AnalyticsRequest) -> dict[str, Any]:
    """Return the context of the component, in a fixed number of queries."""
    period = await asked.parse_period(rt)
    try:
        found = await load_dashboard(rt, asked, period)
    except Invalid as exc:  # too many points
        error = translate_error(exc)
        given = {
            name: value
            for name, value in asked.given.items()
            if name not in ("from", "to", "by", "range")
        }
        period = await replace(asked, given=given).parse_period(rt)
        period = replace(period, error=error)
        found = await load_dashboard(rt, asked, period)
    before = found.stats.before
    names = await load_link_names(rt, [link.id for link in found.stats.links])
    rules = await load_rules(rt, asked)
    return {
        **_build_controls(asked, period, rules),
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
        "panels": build_panels(asked, found, names, rules),
        "export": asked.build_part_url("/app/analytics/export.csv"),
        "chart_export": asked.build_part_url("/app/analytics/chart.svg"),
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
        "refresh": asked.build_part_url("/app/analytics/live"),
        "rows": [
            {
                "at": format_time(click.at.astimezone(zone).time()),
                "name": format_name(names[click.link_id]),
                "country": translate_value("countries", click.country),
                "device": translate_value("devices", click.device),
                "source": translate_value("referrers", click.source),
            }
            for click in clicks
        ],
    }


async def load_dashboard(
    rt: Runtime, asked: AnalyticsRequest, period: AnalyticsPeriod
) -> LinkDashboard:
    """Return all statistics of a period and of the one that it is compared with."""
    return await load_scope_dashboard(
        rt,
        asked.scope,
        asked.chosen,
        period.query,
        asked.now,
        links=0 if isinstance(asked.scope, LinkScope) else MAX_ROWS,
        before=period.previous,
    )


async def list_scopes(rt: Runtime, asked: AnalyticsRequest, user_id: int) -> ScopeMenu:
    """Return the user's teams, domains and most used tags, each with its address."""
    async with rt.db.read() as session:
        teams = await list_own_teams(session, user_id)
        tags = await count_tags(session, user_id)
        domains = await list_usable_domains(session, DomainCaller(user_id))
    none: dict[str, str | None] = dict.fromkeys(("link", "owner", "team", "tag", "domain"))
    given = {**asked.given, **dict(asked.chosen.iter_parameters())}
    hosts = [domain.host for domain in domains]
    if hosts:
        hosts.insert(0, get_default_host(rt.settings.public_url))
    groups = [
        (lazy_gettext("Teams"), "team", [(team.slug, team.name) for team in teams]),
        (lazy_gettext("Domains"), "domain", [(host, host) for host in hosts]),
        (lazy_gettext("Tags"), "tag", [(tag.slug, tag.name) for tag in tags]),
    ]
    return [
        (
            str(label),
            [
                (name, asked.build_url(**{**none, parameter: value}), given.get(parameter) == value)
                for value, name in choices
            ],
        )
        for label, parameter, choices in groups
        if choices
    ]


async def load_link_names(rt: Runtime, links: Sequence[int]) -> dict[int, str]:
    """Return the first name of each link, or its code, with the host of another domain."""
    if not links:
        return {}
    async with rt.db.read() as session:
        names = await list_names(session, NameTarget.LINK, links)
        found = await session.scalars(select(Link).where(Link.id.in_(links)))
        texts = {link.id: choose_text(link, names.get(link.id, ())) for link in found}
    return {link: texts.get(link) or (names.get(link) or [str(link)])[0] for link in links}


async def load_rules(rt: Runtime, asked: AnalyticsRequest) -> tuple[LinkRule, ...]:
    """Return the rules of the link whose analytics these are; none for several links."""
    if not isinstance(asked.scope, LinkScope):
        return ()
    async with rt.db.read() as session:
        text = await session.scalar(select(Link.rules).where(Link.id == asked.scope.link_id))
    return parse_rules(text)


def _build_controls(
    asked: AnalyticsRequest, period: AnalyticsPeriod, rules: Sequence[LinkRule]
) -> dict[str, Any]:
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
        "chips": list(_iter_chips(asked, rules)),
        "clear": asked.build_url(
            **dict.fromkeys(("owner", "team", "tag", "link")),
            **dict.fromkeys(dict(asked.chosen.iter_parameters())),
        ),
    }


def _iter_chips(asked: AnalyticsRequest, rules: Sequence[LinkRule]) -> Iterable[dict[str, str]]:
    for name, value in asked.scope_labels.items():
        yield {
            "name": str(_FILTER_LABELS[name]),
            "value": value,
            "href": asked.build_url(**{name: None}),
        }
    for dimension, value in asked.chosen.values.items():
        yield {
            "name": str(_FILTER_LABELS[dimension]),
            "value": describe_rule(value, rules)[0]
            if dimension == RULES
            else translate_value(dimension, value),
            "href": asked.build_url(**{FILTER_PARAMETERS[dimension]: None}),
        }
