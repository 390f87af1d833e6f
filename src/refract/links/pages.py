"""Links in the browser: the list, a link's own page, and forms that work without script."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db import WriteSession
from refract.core.errors import Conflict, RefractError
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.access import Right
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.links import queries, service
from refract.links.edge import Space, audited, create_one, look_at, who, wish_of
from refract.links.queries import Card, LinkQuestion
from refract.links.schemas import LinkCreate, LinkPatch
from refract.names.service import Namespace
from refract.web.problems import field_errors
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
PER_PAGE = 25


def row(card: Card, rt: Runtime) -> dict[str, Any]:
    """A link as a row of a table wants it."""
    out = card.shown(rt.settings.public_url, rt.clock.now())
    return {
        "id": str(out.id),
        "name": out.names[0] if out.names else out.code,
        "href": f"/app/links/{out.id}",
        "short_url": out.short_url,
        "destination": out.destination,
        "title": out.title,
        "tags": [{"name": tag, "color": None} for tag in out.tags],
        "clicks": out.total_clicks or 0,
        "spark": [],
        "state": str(out.status),
        "created_at": out.created_at,
    }


async def newest(rt: Runtime, actor: Actor, count: int) -> list[dict[str, Any]]:
    """My latest links, as rows."""
    async with rt.db.read() as session:
        page = await queries.page_of_links(
            session, Cursors(rt.secret), who(actor), LinkQuestion(), rt.clock.now(), limit=count, cursor=None
        )
        return [row(card, rt) for card in await queries.cards_of(session, page.items)]


async def shorten(rt: Runtime, space: Namespace, actor: Actor, destination: str, name: str = "") -> tuple[int | None, dict[str, str]]:
    """Make a link from what was typed into a form: its id, or what was wrong with which field."""
    try:
        new = LinkCreate(destination=destination.strip(), names=[name.strip()] if name.strip() else [])
        vetted = await look_at(rt, new.destination)
        async with rt.db.write() as session:
            made = await create_one(session, rt, space, actor.user, wish_of(rt, new, vetted))
    except ValidationError as wrong:
        return None, {one.field.split(".")[0].replace("names", "name"): one.message for one in field_errors(wrong.errors())}
    except RefractError as refused:
        if refused.status >= 500:
            raise
        return None, {"name" if "SLUG" in refused.code else "destination": refused.message}
    return made.card.link.id, {}


@router.get("/app/links")
async def links_page(
    request: Request,
    actor: Reader,
    rt: Rt,
    cursor: Cursor = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """My links, newest first, or those that match."""
    asked = LinkQuestion(q=q or None)
    async with rt.db.read() as session:
        page = await queries.page_of_links(session, Cursors(rt.secret), who(actor), asked, rt.clock.now(), limit=PER_PAGE, cursor=cursor)
        rows = [row(card, rt) for card in await queries.cards_of(session, page.items)]
    kept = {"q": q} if q else {}
    following = f"/app/links?{urlencode({**kept, 'cursor': page.next_cursor})}" if page.next_cursor else None
    first = f"/app/links?{urlencode(kept)}" if cursor else None
    return respond(request, actor, "links.html", page_title="Links", links=rows, q=q or "", next_url=following, first_url=first)


@router.post("/app/links")
async def create_link(
    request: Request, actor: Writer, rt: Rt, space: Space, destination: Annotated[str, Form()] = "", name: Annotated[str, Form()] = ""
) -> Response:
    """Make a link from the form of the start page or of a missing name."""
    made, errors = await shorten(rt, space, actor, destination, name)
    if made is not None:
        return RedirectResponse(f"/?created={made}", 303)
    values = {"destination": destination, "name": name}
    return respond(request, actor, "home.html", status=422, page_title="Home", links=[], values=values, errors=errors)


@router.get("/app/links/{link_id}")
async def link_page(link_id: Id, request: Request, actor: Reader, rt: Rt) -> Response:
    return await _link(request, actor, rt, link_id)


@router.post("/app/links/{link_id}")
async def change_link(  # noqa: PLR0913, PLR0917 - each field of the form is one
    link_id: Id,
    request: Request,
    actor: Writer,
    rt: Rt,
    space: Space,
    destination: Annotated[str, Form()] = "",
    title: Annotated[str, Form()] = "",
    notes: Annotated[str, Form()] = "",
) -> Response:
    """Change where a link leads and what it is called."""
    typed = {"destination": destination.strip(), "title": title, "notes": notes}
    try:
        changes = LinkPatch.model_validate(typed)
        vetted = await look_at(rt, typed["destination"])
        async with rt.db.write() as session:
            await service.edit_link(session, space, who(actor), link_id, changes, vetted)
    except ValidationError as wrong:
        errors = {one.field: one.message for one in field_errors(wrong.errors())}
        return await _link(request, actor, rt, link_id, status=422, values=typed, errors=errors)
    except RefractError as refused:
        if refused.status in (401, 403, 404) or refused.status >= 500:
            raise
        return await _link(request, actor, rt, link_id, status=refused.status, values=typed, errors={"destination": refused.message})
    return RedirectResponse(f"/app/links/{link_id}", 303)


Step = Callable[[WriteSession, Namespace, Actor, int, Runtime], Awaitable[service.Held]]
PAST = {"disable": "disabled", "enable": "enabled", "renew": "renewed", "delete": "deleted", "undo": "undone"}
STEPS: dict[str, Step] = {
    "disable": lambda session, _space, actor, link_id, rt: service.disable_link(session, who(actor), link_id, rt.clock.now()),
    "enable": lambda session, _space, actor, link_id, rt: service.enable_link(session, who(actor), link_id, rt.clock.now()),
    "renew": lambda session, _space, actor, link_id, rt: service.renew_link(session, who(actor), link_id, rt.clock.now()),
    "delete": lambda session, _space, actor, link_id, rt: service.delete_link(session, who(actor), link_id, rt.clock.now()),
    "undo": lambda session, space, actor, link_id, _rt: service.undo(session, space, who(actor), link_id),
}


@router.post("/app/links/{link_id}/{step}")
async def take_step(link_id: Id, step: str, request: Request, actor: Writer, rt: Rt, space: Space) -> Response:
    """Disable, enable, renew, delete or undo, and show the link again."""
    if step not in STEPS:
        return RedirectResponse(f"/app/links/{link_id}", 303)
    try:
        async with rt.db.write() as session:
            held = await STEPS[step](session, space, actor, link_id, rt)
            await audited(session, rt, actor, PAST[step], held)
    except Conflict as refused:
        return await _link(request, actor, rt, link_id, status=409, errors={"step": refused.message})
    return RedirectResponse(f"/app/links/{link_id}", 303)


async def _link(request: Request, actor: Actor, rt: Runtime, link_id: int, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        link, standing = await queries.view_link(session, who(actor), link_id)
        card = await queries.card_of(session, link)
        versions = await queries.history_of(session, link_id, 20) if standing.may(Right.EDIT) else []
    shown = card.shown(rt.settings.public_url, rt.clock.now(), stats=standing.may(Right.STATS), managing=standing.may(Right.MANAGE))
    name = shown.names[0] if shown.names else shown.code
    return respond(
        request,
        actor,
        "link.html",
        status=status,
        page_title=f"/{name}",
        link=shown,
        name=name,
        may_edit=standing.may(Right.EDIT),
        may_see_figures=standing.may(Right.STATS),
        versions=versions,
        qr_url=f"/{name}.qr",
        **context,
    )
