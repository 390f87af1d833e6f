"""My lists, or those of this browser; starting another, claiming what was made before signing in, and whether a name is free."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Writer
from refract.limits.service import MissLimit
from refract.links.dependencies import Space
from refract.lists import addresses, queries, service
from refract.lists.creators import Reading, Visitor, Writing, remember, titles
from refract.lists.edge import add_many, start_list
from refract.lists.pages.frame import Text, back, errors_of, show_list, show_page, status_of
from refract.lists.pages.typed import few_enough, left_over, typed_addresses
from refract.lists.schemas import ListCreate
from refract.lists.shown import summary
from refract.names import service as names
from refract.names.models import Kind
from refract.web.networks import client_network
from refract.web.render import Pages
from refract.web.routes import large_body
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
PER_PAGE = 25


@router.get("/app/lists")
async def lists_page(
    request: Request, visitor: Reading, rt: Rt, cursor: Cursor = None, q: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """My lists, or those of this browser; and the box that starts another."""
    return await _lists(request, visitor, rt, cursor, q)


async def _lists(
    request: Request, visitor: Visitor, rt: Runtime, cursor: str | None = None, q: str | None = None, **context: Any
) -> Response:
    async with rt.db.read() as session:
        page = await queries.page_of_lists(session, Cursors(rt.secret), visitor.who, limit=PER_PAGE, cursor=cursor, q=q or None)
        waiting = [] if visitor.anonymous else await queries.claimable(session, visitor.who.creator)
        deleted = [] if cursor or q else await queries.lately_deleted(session, visitor.who, rt.clock.now() - service.UNDO_TIME)
    kept = {"q": q} if q else {}
    return await show_page(
        request,
        rt,
        visitor,
        "lists/index.html",
        page_title="Lists",
        lists=[summary(found, count, views, rt.settings.public_url) for found, count, views in page.items],
        claimable=titles(waiting),
        deleted=[{"id": str(one.id), "title": one.title, "slug": one.slug, "held": held} for one, held in deleted],
        may_publish=not visitor.anonymous or rt.settings.effective_anonymous_lists == "publish",
        q=q or "",
        next_url=f"/app/lists?{urlencode({**kept, 'cursor': page.next_cursor})}" if page.next_cursor else None,
        first_url=f"/app/lists?{urlencode(kept)}" if cursor else None,
        **context,
    )


@router.post("/app/lists")
@large_body
async def start(request: Request, visitor: Writing, rt: Rt, space: Space, title: Text = "", urls: Text = "") -> Response:
    """Start a list, with a title and addresses or without."""
    typed = typed_addresses(urls)
    try:
        new = ListCreate(title=title)
        few_enough(typed)
        found = await addresses.look_at(rt, typed)
        async with rt.db.write() as session:
            made = await start_list(session, rt, space, visitor, new)
            result = await add_many(session, rt, space, visitor, made.id, found)
    except (ValidationError, RefractError) as wrong:
        values = {"title": title, "urls": urls}
        return await _lists(request, visitor, rt, status=status_of(wrong), errors=errors_of(wrong, "urls"), values=values)
    if result.failed:
        return await show_list(request, visitor, rt, made.id, status=422, **left_over(typed, result))
    response = RedirectResponse(f"/app/lists/{made.id}", 303)
    remember(response, rt, visitor)
    return response


@router.post("/app/lists/claim")
async def claim(actor: Writer, visitor: Writing, rt: Rt, list_id: Annotated[Id | None, Form()] = None) -> Response:
    """Make the lists of this browser mine, and go back to the one that was looked at."""
    creator = visitor.who.creator
    if creator is not None:
        async with rt.db.write() as session:
            await service.claim_lists(session, actor.user.id, creator)
    return RedirectResponse("/app/lists", 303) if list_id is None else back(list_id)


@router.get("/app/lists/availability")
async def availability(request: Request, rt: Rt, space: Space, slug: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Whether a name is free, as a few words for the page."""
    await rt.part(MissLimit).charge_network(client_network(request, rt))
    found = None
    if slug:
        async with rt.db.read() as session:
            found = await names.availability(session, space, slug, Kind.LIST)
    pages: Pages = request.app.state.pages
    return Response(pages.render("lists/_slug_state.html", found=found, slug=slug), media_type="text/html")
