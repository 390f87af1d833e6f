"""The page of a link: details, analytics, people and history; and its state changes."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import ReadSession
from refract.core.errors import Conflict
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.domains.hosts import get_default_host
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.access import AccessRelation, AccessRight
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.identity.users import get_users_by_id
from refract.links import queries
from refract.links.access import LinkAccess
from refract.links.dependencies import Space, to_link_caller
from refract.links.pages.editor import REDIRECT_LABELS, VISIBILITY_LABELS, preview_expansion
from refract.links.pages.history import build_version
from refract.links.pages.link_rows import find_saved_items, get_stats_source
from refract.links.pages.rule_tab import (
    build_editor,
    describe_clicks,
    list_visitor_fields,
    load_explanation,
)
from refract.links.pages.steps import STEPS, UNDOABLE_STEPS
from refract.links.qr_styles import parse_style
from refract.links.queries import LinkCard
from refract.links.queries.cards import choose_text
from refract.links.schemas import LinkOut
from refract.names.grammar import build_short_url, is_kept, join_name, split_name
from refract.teams.queries import list_own_teams
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, mark, translate_error
from refract.web.return_path import get_referring_path

router = page_router()
MAX_VERSIONS = 20
FORM_TABS = {
    "name": "settings",
    "transfer": "settings",
    "team_transfer": "settings",
    "owner": "people",
    "team": "people",
    "share": "people",
}
"""The tab of each form, by the field that its errors belong to."""
TEAM_TABS = ("settings", "people")
"""Tabs with a choice of the caller's teams."""


@router.get("/app/links/{link_id}")
async def link_page(
    link_id: Id,
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    path: Annotated[str, Query(max_length=2048)] = "",
) -> Response:
    """Show a link, and where it redirects with a path after its name."""
    response = await render_link(request, actor, rt, link_id, path=path)
    if "destination" in request.query_params:  # a rule that is tried while it is typed
        kept = {"tab": "rules"} | list_visitor_fields(request.query_params)
        response.headers["HX-Replace-Url"] = f"/app/links/{link_id}?{urlencode(kept)}"
    return response


STEP_MESSAGES = {
    "disable": mark("Disabled /{name}"),
    "enable": mark("Enabled /{name}"),
    "renew": mark("Removed the expiry of /{name}"),
    "delete": mark("Deleted /{name}. You can restore it for 24 hours."),
    "undo": mark("Restored /{name}"),
}


@router.post("/app/links/{link_id}/{step}")
async def take_step(
    link_id: Id, step: str, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    """Disable, enable, renew, delete or undo; then return to the page it was done on."""
    response = RedirectResponse(get_referring_path(request, rt, f"/app/links/{link_id}"), 303)
    if step not in STEPS:
        return response
    try:
        async with rt.db.write() as session:
            locked = await STEPS[step](session, rt, space, actor, link_id)
            name = split_name(choose_text(locked.link, locked.names))[1]
    except Conflict as exc:
        return await render_link(
            request, actor, rt, link_id, status=409, errors={"step": translate_error(exc)}
        )
    undo = f"/app/links/{link_id}/undo" if step in UNDOABLE_STEPS else None
    flash.add(response, rt, gettext(STEP_MESSAGES[step], name=split_name(name)[1]), undo=undo)
    return response


async def render_link(
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    *,
    status: int = 200,
    path: str = "",
    tab: str = "",
    **context: Any,
) -> Response:
    """Render the page, also after a failed action: with its `errors`, and `values` as typed."""
    async with rt.db.read() as session:
        link, access = await queries.view_link(session, to_link_caller(actor), link_id)
        card = await queries.load_card(session, link)
        colors = await queries.load_tag_colors(session, card.tags)
        saved_items = await find_saved_items(request, session, actor, link)
        dry_run = preview_expansion(link.destination, path, card.name)
        tabs, errors = _list_tabs(access), context.get("errors", {})
        tab = tab or _choose_tab(request, tabs, errors, is_template=bool(dry_run["usage"]))
        tab_context = await _load_tab(request, session, rt, tab, card, access)
        tab_context |= await _load_choices(session, actor, tab)
    out = card.to_schema(
        rt.settings.public_url,
        rt.clock.now(),
        stats=access.allows(AccessRight.STATS),
        managing=access.allows(AccessRight.MANAGE),
    )
    if tab == "rules":
        tab_context |= await _load_rules(request, rt, card, access)
    figures = (
        await get_stats_source(request).load_link_stats(request, rt, actor, out)
        if tab == "analytics"
        else None
    )
    return render_response(
        request,
        actor,
        "links/detail.html",
        status=status,
        colors=colors,
        saved_items=saved_items,
        dry_run=dry_run,
        tabs=tabs,
        tab=tab,
        shown=figures,
        **_describe_address(rt, out, card),
        **_describe_link(out, card.name, access),
        is_scheduled=out.starts_at is not None and out.starts_at > rt.clock.now(),
        **tab_context | context,
    )


def _describe_link(out: LinkOut, name: str, access: LinkAccess) -> dict[str, Any]:
    """Return what every tab shows of a link, and what the caller may do with it."""
    return {
        "page_title": f"/{name}",
        "link": out,
        "name": name,
        "visibility_label": VISIBILITY_LABELS[out.visibility],
        "redirect_label": REDIRECT_LABELS[out.redirect_status],
        "rights": {right.name.lower(): access.allows(right) for right in AccessRight},
        "leaves": access.relation == AccessRelation.RECIPIENT,
    }


def _describe_address(rt: Runtime, out: LinkOut, card: LinkCard) -> dict[str, Any]:
    """Return the URLs of preview and QR code. Pages show pictures of their own host only."""
    name, domain = card.name, card.link.domain
    code_url = build_short_url(rt.settings.public_url, join_name(domain, out.code))
    if domain is None and not is_kept(card.text):
        # Browsers keep an image for some minutes; a version of its own is looked up again.
        qr_url = f"/{name}.qr?v={out.version}"
        urls = {"preview_url": f"/{name}+", "qr_png_url": f"{qr_url}&format=png&size=1024"}
    else:
        exact = {"exact": "true"} if is_kept(card.text) else {}
        looks = asdict(style) if (style := parse_style(card.link.qr_style)) else {}
        query = {"name": name, "domain": domain or ""} | exact | looks
        qr_url = f"/app/qr?{urlencode(query)}"
        preview_url = code_url if is_kept(card.text) else out.short_url
        urls = {"preview_url": f"{preview_url}+", "qr_png_url": f"{qr_url}&format=png&size=1024"}
    return urls | {
        "qr_url": qr_url,
        "code_url": code_url,
        "short_host": out.short_url.split("/")[2],
        "default_host": get_default_host(rt.settings.public_url),
    }


async def _load_choices(session: ReadSession, actor: Caller, tab: str) -> dict[str, Any]:
    """Return the caller's teams and the domains on which they may add names, where a tab asks."""
    caller = DomainCaller(actor.user.id, actor.is_admin)
    teams = await list_own_teams(session, actor.user.id) if tab in TEAM_TABS else []
    domains = await list_usable_domains(session, caller) if tab == "settings" else []
    return {
        "team_choices": [(team.slug, team.name) for team in teams],
        "domains": [domain.host for domain in domains],
    }


def _list_tabs(access: LinkAccess) -> list[tuple[str, str]]:
    """Return the tabs that the caller may open, by key."""
    tabs = [("settings", gettext("Settings")), ("people", gettext("People"))]
    if access.allows(AccessRight.STATS):
        tabs.insert(0, ("analytics", gettext("Analytics")))
    if access.allows(AccessRight.EDIT):
        tabs.insert(-1, ("rules", gettext("Rules")))
        tabs.append(("history", gettext("History")))
    return tabs


def _choose_tab(
    request: Request, tabs: list[tuple[str, str]], errors: Mapping[str, str], *, is_template: bool
) -> str:
    """Return the tab to open: where the error is, the requested one, or the first.

    A go link opens on its template.
    """
    keys = [key for key, _ in tabs]
    if wrong := [FORM_TABS[field] for field in errors if field in FORM_TABS]:
        return wrong[0]
    asked = request.query_params.get("tab", "")
    if asked in keys:
        return asked
    return "settings" if is_template and not request.query_params else keys[0]


async def _load_tab(
    request: Request,
    session: ReadSession,
    rt: Runtime,
    tab: str,
    card: LinkCard,
    access: LinkAccess,
) -> dict[str, Any]:
    """Return what only this tab shows. Analytics are loaded without this session."""
    if tab == "people":
        return await _load_people(session, rt, card.link.id, access)
    if tab == "history":
        return {"versions": await _load_versions(session, card)}
    if tab == "rules":
        return build_editor(request, card.link)
    return {}


async def _load_rules(
    request: Request, rt: Runtime, card: LinkCard, access: LinkAccess
) -> dict[str, Any]:
    """Return which rule decides for the chosen visitor, and the clicks of each."""
    shown = await load_explanation(request, rt, card)
    if not card.link.rules or not access.allows(AccessRight.STATS):
        return shown
    counted = await get_stats_source(request).count_rules(rt, card.link.id)
    return shown | describe_clicks(card.link, counted)


async def _load_people(
    session: ReadSession, rt: Runtime, link_id: int, access: LinkAccess
) -> dict[str, Any]:
    """Return viewers and invited people, for those who manage the link."""
    if not access.allows(AccessRight.MANAGE):
        return {"shares": [], "invitations": []}
    shares = await queries.list_shares(session, link_id)
    invitations = await queries.list_link_invitations(session, link_id, rt.clock.now())
    return {
        "shares": [
            {"id": str(user.id), "name": user.public_name, "email": user.email}
            for _, user in shares
        ],
        "invitations": [
            invitation.to_schema(rt.settings.public_url, managing=True)
            for invitation in invitations
        ],
    }


async def _load_versions(session: ReadSession, card: LinkCard) -> list[dict[str, Any]]:
    """Return the latest versions."""
    versions = await queries.list_versions(session, card.link.id, MAX_VERSIONS, card=card)
    people = await get_users_by_id(
        session, {change.actor_id for change in versions if change.actor_id is not None}
    )
    return [build_version(change, people, card.link.version) for change in versions]
