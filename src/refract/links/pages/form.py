"""The form of a link, new or known: a page of its own, and the same form in a drawer. It says beforehand where a go-link will lead."""

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.core.urls import BadUrl
from refract.identity.access import Right
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond, respond_part
from refract.identity.visitors import Actor
from refract.links import queries, service
from refract.links.dependencies import Space, who
from refract.links.golinks import Unfillable, expand, split_extra
from refract.links.models import Visibility
from refract.links.pages.typed import fields_of, make, values_of, wrong_with
from refract.links.safety import check_destination
from refract.links.schemas import LinkOut, LinkPatch
from refract.links.templates import read_template
from refract.web import flash
from refract.web.toolkit import Rt, page_router

router = page_router()
STATUSES = [
    ("302", "302 · changes are seen at once"),
    ("307", "307 · like 302, and keeps POST"),
    ("301", "301 · moved for good"),
    ("308", "308 · like 301, and keeps POST"),
]
AUDIENCES = {
    Visibility.UNLISTED: "Anyone with the address",
    Visibility.PUBLIC: "Anyone with the address; listed for everyone signed in",
    Visibility.SIGNED_IN: "Anyone signed in",
    Visibility.SECURE: "Only owners, people it is shared with and administrators",
}
VISIBILITIES = [(one.value, f"{one.value.capitalize()}: {words[0].lower()}{words[1:]}") for one, words in AUDIENCES.items()]
Typed = Annotated[str, Query(max_length=10_000)]


@router.get("/app/links/new")
async def new_link_page(request: Request, actor: Writer, rt: Rt, destination: Typed = "", name: Typed = "", title: Typed = "") -> Response:
    """An empty form, or one that a bookmarklet or a shared page has begun to fill in."""
    return show_form(request, actor, rt, values={"destination": destination, "name": name.removeprefix("/"), "title": title[:200]})


@router.post("/app/links")
async def create_link(request: Request, actor: Writer, rt: Rt) -> Response:
    """Make a link from the start page, a missing name, or the whole form."""
    values = values_of(await request.form())
    made, errors = await make(rt, actor, values)
    if made is None:
        return show_form(request, actor, rt, status=422, values=values, errors=errors)
    link = made.card.link
    if values.get("then") != "link":
        return RedirectResponse(f"/?created={link.id}", 303)
    response = RedirectResponse(f"/app/links/{link.id}", 303)
    flash.say(response, rt, f"Made /{made.card.names[0] if made.card.names else 'a link'}.")
    return response


@router.get("/app/links/try")
async def try_path(request: Request, actor: Reader, destination: Typed = "", path: Typed = "", name: Typed = "") -> Response:
    """Where a destination would lead with a path behind its name: the dry run, also of a link that does not exist yet."""
    return respond_part(request, actor, "links/_dry_run.html", **dry_run(destination, path, name or "name"))


def dry_run(destination: str, path: str, name: str) -> dict[str, Any]:
    """Where it leads, or why nowhere; and how the link is written when it has gaps."""
    try:
        template = read_template(destination)
    except BadUrl as wrong:
        return {"leads_to": None, "problem": str(wrong) if destination.strip() else "", "usage": None, "path": path, "name": name}
    found = expand(template, split_extra(path.strip().lstrip("/")))
    usage = template.usage(name) if template.placeholders else None
    problem = found.reason if isinstance(found, Unfillable) else None
    return {"leads_to": None if problem else found, "problem": problem, "usage": usage, "path": path, "name": name}


@router.get("/app/links/{link_id}/edit")
async def edit_page(link_id: Id, request: Request, actor: Writer, rt: Rt) -> Response:
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, who(actor), link_id, Right.EDIT)
        card = await queries.card_of(session, link)
    return show_form(request, actor, rt, link=card.shown(rt.settings.public_url, rt.clock.now()))


@router.post("/app/links/{link_id}")
async def change_link(link_id: Id, request: Request, actor: Writer, rt: Rt, space: Space) -> Response:
    """Change what the form holds; a field that is not in it stays as it is."""
    values = values_of(await request.form())
    given = fields_of(values)
    try:
        changes = LinkPatch.model_validate(given)
        vetted = await check_destination(rt, given["destination"]) if "destination" in given else None
        async with rt.db.write() as session:
            held = await service.edit_link(session, space, who(actor), link_id, changes, vetted)
            card = await queries.card_of(session, held.link)
    except ValidationError as wrong:
        return await _edit_again(request, actor, rt, link_id, 422, values, wrong_with(wrong))
    except RefractError as refused:
        if refused.status in (401, 403, 404) or refused.status >= 500:
            raise
        return await _edit_again(request, actor, rt, link_id, refused.status, values, wrong_with(refused))
    response = RedirectResponse(f"/app/links/{link_id}", 303)
    flash.say(response, rt, f"Saved /{card.names[0] if card.names else 'the link'}.", undo=f"/app/links/{link_id}/undo")
    return response


async def _edit_again(
    request: Request, actor: Actor, rt: Runtime, link_id: int, status: int, values: dict[str, str], errors: dict[str, str]
) -> Response:
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, who(actor), link_id, Right.EDIT)
        card = await queries.card_of(session, link)
    link_out = card.shown(rt.settings.public_url, rt.clock.now())
    return show_form(request, actor, rt, status=status, link=link_out, values=values, errors=errors)


def show_form(
    request: Request,
    actor: Actor,
    rt: Runtime,
    *,
    status: int = 200,
    link: LinkOut | None = None,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    """The page with the form, empty or as it was typed."""
    known = _values(link) if link is not None else {"visibility": str(Visibility(rt.settings.default_visibility)), "redirect_status": "302"}
    name = (link.names[0] if link.names else link.code) if link is not None else ""
    return respond(
        request,
        actor,
        "links/form.html",
        status=status,
        page_title=f"Edit /{name}" if link is not None else "New link",
        link=link,
        values=known | (values or {}),
        errors=errors or {},
        statuses=STATUSES,
        visibilities=VISIBILITIES,
    )


def _values(link: LinkOut) -> dict[str, str]:
    return {
        "destination": link.destination,
        "title": link.title or "",
        "notes": link.notes or "",
        "tags": ", ".join(link.tags),
        "redirect_status": str(link.redirect_status),
        "visibility": str(link.visibility),
        "forward_query": "1" if link.forward_query else "0",
        "expires": link.expires_at.strftime("%Y-%m-%dT%H:%M") if link.expires_at else "",
    }
