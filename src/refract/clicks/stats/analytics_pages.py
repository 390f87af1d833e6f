"""The analytics page of an account, domain, team, tag or link: on screen, in detail, as a file."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from refract.clicks.columns.dimensions import LINKS
from refract.clicks.stats import require_stats_access
from refract.clicks.stats.analytics import (
    build_analytics,
    build_recent,
    list_scopes,
    load_dashboard,
    load_link_names,
    load_rules,
)
from refract.clicks.stats.analytics_request import AnalyticsRequest
from refract.clicks.stats.calendar import StatsQuery
from refract.clicks.stats.charts import build_chart, build_rows, draw_chart
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.overview import (
    find_tag_scope,
    find_team_scope,
    load_scope_breakdown,
    load_scope_stats,
)
from refract.clicks.stats.panels import (
    PANEL_TITLES,
    build_links_panel,
    build_panel,
    list_dimensions,
)
from refract.clicks.stats.period import AnalyticsPeriod
from refract.clicks.stats.results import LinkDashboard
from refract.clicks.stats.scope import (
    AccountScope,
    AllLinksScope,
    LinkScope,
    StatsOwner,
    StatsScope,
)
from refract.core.clock import format_utc
from refract.core.runtime import Runtime
from refract.core.text import escape_formula
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller
from refract.identity.responses import get_zone_name, render_response
from refract.links.dependencies import to_link_caller
from refract.links.errors import LinkNotFound
from refract.links.schemas import LinkOut
from refract.names.grammar import format_name
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext

router = page_router()
ROUTERS = (router,)
PATH: Final = "/app/analytics"
MAX_DETAILS: Final = 200


@router.get(PATH)
async def analytics_page(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Show the clicks on all own links, on those of a team or with a tag, or on one.

    Administrators see those on the links of everyone, with a filter such as a domain.
    """
    asked = await parse_request(request, rt, actor)
    return render_response(
        request,
        actor,
        "clicks/analytics.html",
        page_title=gettext("Analytics"),
        shown=await build_analytics(rt, asked),
        scopes=await list_scopes(rt, asked, actor.user.id),
    )


@router.get(PATH + "/live")
async def live_clicks(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Show the clicks of the last half hour: the part of the page that is loaded again."""
    asked = await parse_request(request, rt, actor)
    return render_response(
        request,
        actor,
        "clicks/live.html",
        page_title=gettext("Live"),
        recent=await build_recent(rt, asked),
        back=asked.build_url(PATH),
    )


@router.get(PATH + "/export.csv")
async def export_shown(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Download what the page shows: the series and every panel."""
    asked = await parse_request(request, rt, actor)
    period = await asked.parse_period(rt)
    found = await load_dashboard(rt, asked, replace(period, previous=None))
    names = await load_link_names(rt, [link.id for link in found.stats.links])
    text = io.StringIO()
    csv.writer(text).writerows(_iter_csv(found, names, list_dimensions(asked)))
    return _build_download(text.getvalue(), "text/csv; charset=utf-8", period, "csv")


@router.get(PATH + "/chart.svg")
async def export_chart(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Download the chart as a picture that can be scaled and edited."""
    asked = await parse_request(request, rt, actor)
    period = await asked.parse_period(rt)
    found = await load_scope_stats(
        rt,
        asked.scope,
        asked.chosen,
        period.query,
        asked.now,
        links=0,
        before=period.previous,
    )
    chart = build_chart(found, found.before, asked.now)
    picture = draw_chart(chart, [row[0] for row in build_rows(found)])
    return _build_download(picture, "image/svg+xml", period, "svg")


def _build_download(text: str, media_type: str, period: AnalyticsPeriod, ending: str) -> Response:
    name = f"analytics-{period.begin}-{period.end}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=media_type, headers=headers)


@router.get(PATH + "/details/{dimension}")
async def details_page(dimension: str, request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Show more values of a dimension than fit into its panel."""
    asked = await parse_request(request, rt, actor)
    if dimension not in {LINKS, *list_dimensions(asked)}:
        return RedirectResponse(PATH, 303)
    back = f"/app/links/{asked.given['link']}" if asked.path != PATH else PATH
    found = await _load_details(rt, asked, dimension)
    return render_response(
        request,
        actor,
        "clicks/details.html",
        page_title=PANEL_TITLES[dimension],
        panel=found,
        back=asked.build_url(back),
    )


async def build_link_analytics(
    request: Request, rt: Runtime, actor: Caller, link: LinkOut
) -> dict[str, Any]:
    """Return the context of the component on a link's own page."""
    asked = await parse_request(request, rt, actor, link.id)
    shown = await build_analytics(rt, asked)
    exported = urlencode({"from": format_utc(shown["from"]), "to": format_utc(shown["to"])})
    return shown | {
        "template": "clicks/_analytics.html",
        "live": f"/api/v1/links/{link.id}/stats/live",
        "all_time": link.total_clicks or 0,
        "clicks_export": f"/api/v1/links/{link.id}/stats/export?{exported}",
    }


async def parse_request(
    request: Request, rt: Runtime, actor: Caller, link_id: int | None = None
) -> AnalyticsRequest:
    """Return what a query string asks for. `link_id`: of the link whose own page it is."""
    given = dict(request.query_params)
    chosen = ClickFilter.from_parameters(given.items(), rt.settings.public_url)
    scope: StatsScope = AccountScope(actor.user.id)
    labels: dict[str, str] = {}
    if link_id is not None:
        scope = LinkScope(link_id)
    elif text := given.get("link"):
        scope = LinkScope(await _require_link(rt, actor, text))
        labels["link"] = format_name((await load_link_names(rt, [scope.link_id]))[scope.link_id])
    elif given.get("owner") == StatsOwner.ALL and actor.is_admin and chosen:
        scope, labels["owner"] = AllLinksScope(), gettext("All (admin)")
    elif team := given.get("team"):
        scope, labels["team"] = await find_team_scope(rt, actor.user.id, team)
    elif tag := given.get("tag"):
        scope, labels["tag"] = await find_tag_scope(rt, actor.user.id, tag)
    return AnalyticsRequest(
        scope,
        chosen,
        get_zone_name(request, actor),
        rt.clock.now(),
        PATH if link_id is None else f"/app/links/{link_id}",
        given,
        labels,
    )


async def _require_link(rt: Runtime, actor: Caller, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise LinkNotFound
    async with rt.db.read() as session:
        return (await require_stats_access(session, to_link_caller(actor), int(text))).id


async def _load_details(rt: Runtime, asked: AnalyticsRequest, dimension: str) -> dict[str, Any]:
    query = (await asked.parse_period(rt)).query
    if dimension == LINKS:
        return await _load_link_details(rt, asked, query)
    found = await load_scope_breakdown(
        rt,
        asked.scope,
        asked.chosen,
        dimension,
        query,
        asked.now,
        limit=MAX_DETAILS,
        links=0,
    )
    return build_panel(asked, found, rules=await load_rules(rt, asked))


async def _load_link_details(
    rt: Runtime, asked: AnalyticsRequest, query: StatsQuery
) -> dict[str, Any]:
    found = await load_scope_stats(
        rt, asked.scope, asked.chosen, query, asked.now, links=MAX_DETAILS
    )
    names = await load_link_names(rt, [link.id for link in found.links])
    return build_links_panel(asked, found, names)


def _iter_csv(
    found: LinkDashboard, names: Mapping[int, str], dimensions: Sequence[str]
) -> Iterator[Sequence[str | int]]:
    yield "section", "value", "label", "clicks", "unique_visitors", "bots"
    totals = found.stats.totals
    period = f"{format_utc(found.stats.begin)}/{format_utc(found.stats.end)}"
    yield "total", period, "", totals.clicks, totals.uniques, totals.bots
    for point in found.stats.series:
        yield "series", format_utc(point.at), "", point.clicks, point.uniques, point.bots
    for link in found.stats.links:
        yield LINKS, str(link.id), escape_formula(format_name(names[link.id])), link.clicks, "", ""
    for dimension in dimensions:
        for item in found.breakdowns[dimension].items:
            value, label = escape_formula(item.value), escape_formula(item.label)
            yield dimension, value, label, item.clicks, "", ""
