"""The table of links: filters, search, sorting, saved views and export."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from fastapi import Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.domains.hosts import get_default_host
from refract.domains.models import MAX_HOST_LENGTH, Domain
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller
from refract.identity.responses import get_zone_name, render_response
from refract.identity.time_zones import parse_zone
from refract.links import queries
from refract.links.campaigns.queries import list_templates
from refract.links.dependencies import to_link_caller
from refract.links.enums import LinkState, Visibility
from refract.links.export import LinkExportFormat, LinkExportWriter, build_record
from refract.links.pages.link_rows import get_stats_source, load_rows
from refract.links.pages.views import (
    COLUMN_LABELS,
    list_views,
    read_table_options,
)
from refract.links.queries import CLICK_SORTS, LinkFilter, LinkSort, OwnerFilter
from refract.teams.models import Team
from refract.teams.queries import list_own_teams
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, lazy_gettext
from refract.web.tables import DENSITY_LABELS, QueryParameters, build_filter_url, toggle_value

router = page_router()
PER_PAGE = 25
EXPORT_PAGE_SIZE = 200
CLICK_COLUMNS = ("clicks", "last_click")
SORT_LABELS = {
    LinkSort.CREATED: lazy_gettext("Newest"),
    LinkSort.UPDATED: lazy_gettext("Recently updated"),
    LinkSort.CLICKS: lazy_gettext("Most clicks"),
    LinkSort.LAST_CLICK: lazy_gettext("Recently clicked"),
}
OWNER_LABELS = {
    OwnerFilter.ME: lazy_gettext("Mine"),
    OwnerFilter.SHARED: lazy_gettext("Shared with me"),
    OwnerFilter.PUBLIC: lazy_gettext("Public"),
    OwnerFilter.ALL: lazy_gettext("All (admin)"),
}
VISIBILITY_FILTER_CHOICES = [
    ("", lazy_gettext("Any")),
    (Visibility.PUBLIC.value, lazy_gettext("Public")),
    (Visibility.UNLISTED.value, lazy_gettext("Unlisted")),
    (Visibility.SIGNED_IN.value, lazy_gettext("Signed-in")),
    (Visibility.TEAM.value, lazy_gettext("Team")),
    (Visibility.PASSWORD.value, lazy_gettext("Password")),
    (Visibility.SECURE.value, lazy_gettext("Secure")),
]
MAX_TAG_FILTERS = 10
DateText = Annotated[str, Query(max_length=10)]


async def parse_filters(  # noqa: PLR0913, PLR0917 - each filter is one
    request: Request,
    actor: ReadCaller,
    q: Annotated[str | None, Query(max_length=200)] = None,
    status: LinkState | Literal[""] | None = None,
    tag: Annotated[list[str] | None, Query(max_length=MAX_TAG_FILTERS)] = None,
    owner: OwnerFilter = OwnerFilter.ME,
    sort: LinkSort = LinkSort.CREATED,
    visibility: Visibility | Literal[""] | None = None,
    team: Annotated[str, Query(max_length=50)] = "",
    domain: Annotated[str, Query(max_length=MAX_HOST_LENGTH)] = "",
    since: DateText = "",
    until: DateText = "",
) -> LinkFilter:
    """Return the filters of a URL. What the caller may not see is left out."""
    if owner == OwnerFilter.ALL and not actor.is_admin:
        owner = OwnerFilter.ME
    if owner == OwnerFilter.PUBLIC and sort in CLICK_SORTS:
        sort = LinkSort.CREATED
    zone = parse_zone(get_zone_name(request, actor))
    last = _parse_day(until, zone, days=1)
    return LinkFilter(
        owner=owner,
        status=status or None,
        tags=tuple(dict.fromkeys(name.strip()[:200] for name in tag or () if name.strip())),
        q=q or None,
        sort=sort,
        created_after=_parse_day(since, zone),
        created_before=last,
        visibility=visibility or None,
        team=team or None,
    ).on_domain(request.app.state.rt.settings.public_url, domain)


def _parse_day(text: str, zone: ZoneInfo, *, days: int = 0) -> datetime | None:
    """Return when a day begins, or None for text that is not a date."""
    try:
        day = date.fromisoformat(text) + timedelta(days=days)
        return datetime.combine(day, time(), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


Filters = Annotated[LinkFilter, Depends(parse_filters)]


@router.get("/app/links")
async def links_page(
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    filters: Filters,
    cursor: CursorParam = None,
    since: DateText = "",
    until: DateText = "",
) -> Response:
    """List the caller's links, newest first, or those that match, in a fixed number of queries."""
    next_cursor, found = await _load_page(request, rt, actor, filters, cursor)
    params = _query_params(filters, since, until, _get_domain_value(rt, filters))
    query = urlencode(dict(params), doseq=True)
    address = partial(build_filter_url, "/app/links", params)
    density, columns = read_table_options(actor)
    if filters.owner == OwnerFilter.PUBLIC:
        columns = [name for name in columns if name not in CLICK_COLUMNS]
    return render_response(
        request,
        actor,
        "links/index.html",
        page_title=gettext("Links"),
        filters=filters,
        filtered=bool({name for name in params if name != "sort"}),
        q=filters.q or "",
        since=since if filters.created_after else "",
        until=until if filters.created_before else "",
        query=query,
        views=list_views(actor),
        density=density,
        densities=DENSITY_LABELS,
        columns=columns,
        column_choices=COLUMN_LABELS,
        **found,
        **_build_choices(actor, filters.owner),
        filter_url=lambda **changes: address(changes),
        sort_url=lambda key: address({"sort": None if key == "created" else key}),
        tag_url=lambda slug: address({"tag": toggle_value(filters.tags, slug)}),
        may_act=filters.owner not in (OwnerFilter.PUBLIC, OwnerFilter.SHARED),
        next_url=address({"cursor": next_cursor}) if next_cursor else None,
        first_url=address({}) if cursor else None,
    )


async def _load_page(
    request: Request, rt: Runtime, actor: Caller, filters: LinkFilter, cursor: str | None
) -> tuple[str | None, dict[str, Any]]:
    """Return the cursor of the next page, and the rows and counts that the template shows."""
    now, caller = rt.clock.now(), to_link_caller(actor)
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session, CursorCodec(rt.secret), caller, filters, now, limit=PER_PAGE, cursor=cursor
        )
        has_stats = filters.owner != OwnerFilter.PUBLIC
        rows = await load_rows(session, rt, get_stats_source(request), page.items, stats=has_stats)
        counts = await queries.count_links(session, caller, filters, now)
        invited = await queries.count_invitations(session, actor.user.id, now)
        teams = await list_own_teams(session, actor.user.id)
        domains = await list_usable_domains(session, DomainCaller(caller.user_id, caller.is_admin))
        templates = await list_templates(session, caller.user_id)
    return page.next_cursor, {
        "links": rows,
        "states": [
            (state.value, counts.states[state.value])
            for state in LinkState
            if state == filters.status or counts.states[state.value]
        ],
        "counts": counts,
        "total": counts.get_total(filters.status),
        "max_counted": queries.MAX_COUNTED,
        "tags": counts.tags,
        "invitations_waiting": invited,
        "teams": _build_team_choices(teams, filters.team),
        "domains": _build_domain_choices(rt, domains, filters.domain),
        "chosen_domain": _get_domain_value(rt, filters),
        "utm_templates": [(owned.template.id, owned.label) for owned in templates],
    }


def _build_team_choices(teams: Sequence[Team], chosen: str | None) -> list[tuple[str, str]]:
    """Return the choices of the filter by team; none for a user without teams."""
    found = {team.slug: team.name for team in teams}
    if chosen is not None:
        found.setdefault(chosen, chosen)
    return [("", gettext("Any")), *found.items()] if found else []


def _build_domain_choices(
    rt: Runtime, domains: Sequence[Domain], chosen: str | None
) -> list[tuple[str, str]]:
    """Return the choices of the filter by domain; none where there is only the default one."""
    others = dict.fromkeys([*(domain.host for domain in domains), *([chosen] if chosen else [])])
    hosts = [get_default_host(rt.settings.public_url), *others]
    return [("", gettext("Any")), *((host, host) for host in hosts)] if others else []


def _get_domain_value(rt: Runtime, filters: LinkFilter) -> str:
    """Return the host of the domain that is filtered by, empty for all."""
    if filters.domain == "":
        return get_default_host(rt.settings.public_url)
    return filters.domain or ""


def _build_choices(actor: Caller, owner: OwnerFilter) -> dict[str, Any]:
    """Return the choices of the filters: `all` for administrators, no clicks of public links."""
    owners = [
        (key.value, label)
        for key, label in OWNER_LABELS.items()
        if key != OwnerFilter.ALL or actor.is_admin
    ]
    sorts = [
        (key.value, label)
        for key, label in SORT_LABELS.items()
        if owner != OwnerFilter.PUBLIC or key not in CLICK_SORTS
    ]
    return {"sorts": sorts, "owners": owners, "visibilities": VISIBILITY_FILTER_CHOICES}


def _query_params(filters: LinkFilter, since: str, until: str, domain: str) -> QueryParameters:
    """Return the query parameters of a filter, without those that have their default."""
    params = {
        "q": filters.q,
        "status": filters.status,
        "tag": filters.tags,
        "visibility": filters.visibility,
        "team": filters.team,
        "domain": domain,
        "since": since if filters.created_after else None,
        "until": until if filters.created_before else None,
        "owner": filters.owner if filters.owner != OwnerFilter.ME else None,
        "sort": filters.sort if filters.sort != LinkSort.CREATED else None,
    }
    return {name: value for name, value in params.items() if value}


@router.get("/app/links/export", response_class=StreamingResponse)
async def export_links(
    actor: ReadCaller,
    rt: Rt,
    filters: Filters,
    form: Annotated[LinkExportFormat, Query(alias="format")] = LinkExportFormat.CSV,
) -> StreamingResponse:
    """Send the links of a filter as a file, page by page."""
    media_type = "text/csv" if form is LinkExportFormat.CSV else "application/json"
    return StreamingResponse(
        _write_export(rt, actor, replace(filters, sort=LinkSort.CREATED), form),
        media_type=f"{media_type}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="links.{form.value}"'},
    )


async def _write_export(
    rt: Runtime, actor: Caller, filters: LinkFilter, form: LinkExportFormat
) -> AsyncIterator[str]:
    """Yield the file. Emails of owners and clicks are only in files of links one manages."""
    writer = LinkExportWriter(form)
    hidden: dict[str, Any] = {}
    if filters.owner in (OwnerFilter.PUBLIC, OwnerFilter.SHARED):
        hidden["owners"] = []
    if filters.owner == OwnerFilter.PUBLIC:
        hidden |= {"clicks": None, "notes": None}
    yield writer.head()
    cursor: str | None = None
    while True:
        now = rt.clock.now()
        async with rt.db.read() as session:
            page = await queries.load_links_page(
                session,
                CursorCodec(rt.secret),
                to_link_caller(actor),
                filters,
                now,
                limit=EXPORT_PAGE_SIZE,
                cursor=cursor,
            )
            cards = await queries.load_cards(session, page.items)
        yield writer.page([build_record(card, now) | hidden for card in cards])
        cursor = page.next_cursor
        if cursor is None:
            break
    yield writer.tail()
