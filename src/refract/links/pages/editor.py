"""The form of a new or existing link, as a page and in a drawer, with a dry run of go links."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.core.urls import BadUrl, complete_url
from refract.domains.hosts import show_host
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_fragment, render_response
from refract.links import queries, service
from refract.links.campaigns.errors import UtmTemplateNotFound
from refract.links.campaigns.parameters import read_campaign
from refract.links.campaigns.queries import OwnedTemplate, list_templates
from refract.links.campaigns.service import apply_template_to_change
from refract.links.dependencies import Space, to_link_caller
from refract.links.enums import Visibility
from refract.links.golinks.expansion import ExpansionFailure, expand_template, split_extra_path
from refract.links.golinks.template import parse_template
from refract.links.pages.forms import (
    CAMPAIGN_FIELDS,
    CARD_FIELDS,
    create_from_form,
    map_errors,
    parse_fields,
    read_values,
)
from refract.links.schemas import LinkOut, LinkPatch, LinkTeamOut
from refract.names.grammar import build_short_url
from refract.teams.models import Team
from refract.teams.queries import list_own_teams
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, translate

router = page_router()
REDIRECT_LABELS = {
    302: lazy_gettext("302 Temporary"),
    307: lazy_gettext("307 Temporary, keeps method"),
    301: lazy_gettext("301 Permanent"),
    308: lazy_gettext("308 Permanent, keeps method"),
}
RECOMMENDED_REDIRECT = {302: lazy_gettext("302 Temporary (recommended)")}
REDIRECT_STATUS_CHOICES = [
    (str(status), label) for status, label in (REDIRECT_LABELS | RECOMMENDED_REDIRECT).items()
]
DOMAIN_STATUS_CHOICES = [("", lazy_gettext("Default of the domain")), *REDIRECT_STATUS_CHOICES]
VISIBILITY_LABELS = {
    Visibility.UNLISTED: lazy_gettext("Unlisted: anyone with the link"),
    Visibility.PUBLIC: lazy_gettext(
        "Public: anyone with the link, and listed for everyone signed in"
    ),
    Visibility.SIGNED_IN: lazy_gettext("Signed-in: anyone signed in"),
    Visibility.TEAM: lazy_gettext("Team: members of the teams that own it"),
    Visibility.PASSWORD: lazy_gettext("Password: anyone who knows the password"),
    Visibility.SECURE: lazy_gettext(
        "Secure: only owners, people it’s shared with and administrators"
    ),
}
LinkQueryText = Annotated[str, Query(max_length=10_000)]


@router.get("/app/links/new")
async def new_link_page(  # noqa: PLR0913, PLR0917 - one per field to fill in
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    destination: LinkQueryText = "",
    name: LinkQueryText = "",
    title: LinkQueryText = "",
    domain: LinkQueryText = "",
    team: LinkQueryText = "",
) -> Response:
    """Show an empty form, or one prefilled by a bookmarklet, a shared page or a team's page."""
    values = {"destination": destination, "name": name.removeprefix("/"), "title": title[:200]}
    return await render_form(
        request, actor, rt, values=values | {"domain": domain, "team": team}, is_new=True
    )


@router.post("/app/links")
async def create_link(request: Request, actor: WriteCaller, rt: Rt) -> Response:
    """Create a link from the start page, the page of an unknown name, or the full form."""
    values = read_values(await request.form())
    made, errors = await create_from_form(rt, actor, values)
    if made is None:
        return await render_form(request, actor, rt, status=422, values=values, errors=errors)
    link = made.card.link
    if values.get("then") != "link":
        return RedirectResponse(f"/?created={link.id}", 303)
    name = made.card.name
    message = gettext("Created /{name}", name=name)
    if "hx-request" in request.headers:
        return _report_saved(
            link.id,
            message,
            copy=build_short_url(rt.settings.public_url, made.card.text),
            copied=gettext("Created /{name} and copied its short URL", name=name),
        )
    response = RedirectResponse(f"/app/links/{link.id}", 303)
    flash.add(response, rt, message)
    return response


def _report_saved(link_id: int, message: str, **details: str) -> Response:
    """Return an empty response whose event `link_form.js` handles: it copies, and shows a toast."""
    saved = {"href": f"/app/links/{link_id}", "message": message, **details}
    return Response(
        status_code=204, headers={"HX-Trigger": json.dumps({"refract:link-saved": saved})}
    )


@router.get("/app/links/try")
async def try_path(
    request: Request,
    actor: ReadCaller,
    destination: LinkQueryText = "",
    path: LinkQueryText = "",
    name: LinkQueryText = "",
) -> Response:
    """Expand a destination with a path after its name: a dry run that needs no saved link."""
    return render_fragment(
        request,
        actor,
        "links/_dry_run.html",
        **preview_expansion(destination, path, name or "name"),
    )


def preview_expansion(destination: str, path: str, name: str) -> dict[str, Any]:
    """Return where a destination leads or why it does not, and the usage of its placeholders."""
    try:
        template = parse_template(complete_url(destination))
    except BadUrl as exc:
        return {
            "leads_to": None,
            "problem": translate(str(exc)) if destination.strip() else "",
            "usage": None,
            "path": path,
            "name": name,
        }
    found = expand_template(template, split_extra_path(path.strip().lstrip("/")))
    usage = template.format_usage(name) if template.placeholders else None
    problem = translate(found.reason) if isinstance(found, ExpansionFailure) else None
    return {
        "leads_to": None if problem else found,
        "problem": problem,
        "usage": usage,
        "path": path,
        "name": name,
    }


@router.get("/app/links/{link_id}/edit")
async def edit_link_page(link_id: Id, request: Request, actor: WriteCaller, rt: Rt) -> Response:
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
        card = await queries.load_card(session, link)
    return await render_form(
        request, actor, rt, link=card.to_schema(rt.settings.public_url, rt.clock.now())
    )


@router.post("/app/links/{link_id}")
async def change_link(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    """Change the fields of the form; a field that is missing from it stays as it is."""
    values = read_values(await request.form())
    given = parse_fields(values)
    try:
        changes, versions = await apply_template_to_change(
            rt, to_link_caller(actor), link_id, LinkPatch.model_validate(given)
        )
        checked = await service.check_changes(rt, changes)
        async with rt.db.write() as session:
            locked = await service.edit_link(
                session, space, to_link_caller(actor), link_id, changes, checked, version=versions
            )
            card = await queries.load_card(session, locked.link)
    except ValidationError as exc:
        return await _rerender_form(request, actor, rt, link_id, 422, values, map_errors(exc))
    except RefractError as exc:
        is_absent = exc.status == 404 and not isinstance(exc, UtmTemplateNotFound)
        if exc.status in (401, 403) or is_absent or exc.status >= 500:
            raise
        return await _rerender_form(
            request, actor, rt, link_id, exc.status, values, map_errors(exc)
        )
    name = card.name
    message, undo = gettext("Saved changes to /{name}", name=name), f"/app/links/{link_id}/undo"
    if "hx-request" in request.headers:
        return _report_saved(link_id, message, undo=undo)
    response = RedirectResponse(f"/app/links/{link_id}", 303)
    flash.add(response, rt, message, undo=undo)
    return response


async def _rerender_form(
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    status: int,
    values: dict[str, str],
    errors: dict[str, str],
) -> Response:
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
        card = await queries.load_card(session, link)
    link_out = card.to_schema(rt.settings.public_url, rt.clock.now())
    return await render_form(
        request, actor, rt, status=status, link=link_out, values=values, errors=errors
    )


async def render_form(  # noqa: PLR0913 - what was typed, and what is wrong
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    status: int = 200,
    link: LinkOut | None = None,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    is_new: bool = False,
) -> Response:
    """Render the form of a link, as it was typed, or if `is_new` with the defaults of a team."""
    teams, hosts, templates = await _load_choices(rt, actor, link)
    defaults = _list_team_defaults(teams)
    known = {
        "visibility": str(Visibility(rt.settings.default_visibility)),
        "redirect_status": "" if hosts else "302",
    }
    if link is not None:
        known = _form_values(link)
    elif is_new and values and (chosen := defaults.get(values.get("team", ""))):
        values = values | {"tags": chosen["tags"], "domain": values["domain"] or chosen["domain"]}
    name = (*link.names, link.code)[0] if link is not None else ""
    shown = known | (values or {})
    campaign = read_campaign(shown.get("destination", ""))
    return render_response(
        request,
        actor,
        "links/form.html",
        status=status,
        page_title=gettext("Edit /{name}", name=name) if link is not None else gettext("New link"),
        domains=[(host, show_host(rt.settings.public_url, host)) for host in hosts],
        short_host=show_host(
            rt.settings.public_url, link.domain if link is not None else shown.get("domain", "")
        ),
        link=link,
        values=campaign | shown,
        errors=errors or {},
        campaign_shown=urlencode(campaign),
        **_describe_templates(templates),
        destination_host=_find_host(shown.get("destination", "")),
        name=name,
        statuses=DOMAIN_STATUS_CHOICES if hosts else REDIRECT_STATUS_CHOICES,
        visibilities=[
            (visibility.value, label)
            for visibility, label in VISIBILITY_LABELS.items()
            if teams or visibility != Visibility.TEAM or shown["visibility"] == visibility
        ],
        owners=[("", gettext("You")), *((team.slug, team.name) for team in teams)],
        team_defaults=defaults,
    )


def _describe_templates(templates: Sequence[OwnedTemplate]) -> dict[str, Any]:
    """Return the campaign fields, and the templates that fill them: id, name, team and values."""
    return {
        "campaign_fields": CAMPAIGN_FIELDS,
        "utm_templates": [(str(owned.template.id), owned.label) for owned in templates],
        "utm_values": {str(owned.template.id): owned.values for owned in templates},
    }


def _list_team_defaults(teams: Sequence[Team | LinkTeamOut]) -> dict[str, dict[str, str]]:
    """Return tags and domain of new links by the handle of a team, for the form."""
    return {
        team.slug: {
            "tags": ", ".join(team.default_tags or []),
            "domain": team.default_domain or "",
        }
        for team in teams
        if isinstance(team, Team)
    }


async def _load_choices(
    rt: Runtime, actor: Caller, link: LinkOut | None
) -> tuple[Sequence[Team | LinkTeamOut], Sequence[str], Sequence[OwnedTemplate]]:
    """Return the teams that may own a new link, its possible domains, and UTM templates.

    The default domain is empty. Of an existing link, the teams are those that own it, and there
    are no domains.
    """
    async with rt.db.read() as session:
        templates = await list_templates(session, actor.user.id)
        if link is not None:
            return link.teams, (), templates
        teams = await list_own_teams(session, actor.user.id)
        domains = await list_usable_domains(session, DomainCaller(actor.user.id, actor.is_admin))
    hosts = ["", *(domain.host for domain in domains)] if domains else ()
    return teams, hosts, templates


def _find_host(destination: str) -> str:
    try:
        return parse_template(complete_url(destination)).host
    except BadUrl:
        return ""


def _form_values(link: LinkOut) -> dict[str, str]:
    return {
        "destination": link.destination,
        "title": link.title or "",
        "notes": link.notes or "",
        "tags": ", ".join(link.tags),
        "redirect_status": str(link.redirect_status),
        "visibility": str(link.visibility),
        "forward_query": "1" if link.forward_query else "0",
        "noindex": "1" if link.noindex else "0",
        "expires": _format_local(link.expires_at),
        "expired_destination": link.expired_destination or "",
        "starts": _format_local(link.starts_at),
        "before_destination": link.before_destination or "",
        "click_limit": str(link.click_limit or ""),
        "limit_destination": link.limit_destination or "",
    } | {name: getattr(link.preview_card, part, None) or "" for name, part in CARD_FIELDS.items()}


def _format_local(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M") if moment else ""
