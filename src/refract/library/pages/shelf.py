"""The library as a list: search, filters with counts, and the box that takes anything worth keeping."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Invalid
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.library import queries, service
from refract.library.capturing import split
from refract.library.cards import cards_of
from refract.library.models import ItemStatus, ItemType
from refract.library.schemas import ItemCreate
from refract.library.shelf import Shelf, facets_of, page_of_items
from refract.web import flash
from refract.web.routes import large_body
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
PER_PAGE = 25
Words = Annotated[str | None, Query(max_length=200)]


@router.get("/app/library")
async def library_page(  # noqa: PLR0913, PLR0917 - each filter is one
    request: Request,
    actor: Reader,
    rt: Rt,
    cursor: Cursor = None,
    q: Words = None,
    tag: Words = None,
    type: Annotated[str, Query(max_length=20)] = "",  # noqa: A002 - what the filter is called
    untagged: bool = False,
    discarded: bool = False,
) -> Response:
    """What I keep, the newest first, or what matches; or what I have put away."""
    kind = ItemType(type) if type in list(ItemType) else None
    state = ItemStatus.DISCARDED if discarded else ItemStatus.ARCHIVED
    shelf = Shelf(actor.user.id, state, type=kind, tags=(tag,) if tag else (), untagged=untagged, q=q or None)
    return await _page(request, actor, rt, shelf, cursor)


@router.post("/app/items")
@large_body
async def capture(
    request: Request, actor: Writer, rt: Rt, text: Annotated[str, Form(max_length=100_000)] = "", plain: Annotated[str, Form()] = ""
) -> Response:
    """Keep a thought, an address, or as many addresses as there are lines."""
    try:
        texts = split(text) or [text]
        async with rt.db.write() as session:
            for one in texts:
                await service.capture(session, rt, actor.user, ItemCreate(text=one, enrich=not plain))
    except (ValidationError, Invalid) as wrong:
        message = wrong.message if isinstance(wrong, Invalid) else str(wrong.errors()[0]["msg"]).removeprefix("Value error, ")
        return await _page(request, actor, rt, Shelf(actor.user.id), None, status=422, values={"text": text}, errors={"text": message})
    response = RedirectResponse("/app/library" if plain else "/app/review", 303)
    flash.say(response, rt, "Saved." if len(texts) == 1 else f"Saved {len(texts)} things.")
    return response


async def _page(
    request: Request, actor: Actor, rt: Runtime, shelf: Shelf, cursor: str | None, *, status: int = 200, **more: Any
) -> Response:
    async with rt.db.read() as session:
        page = await page_of_items(session, Cursors(rt.secret), shelf, limit=PER_PAGE, cursor=cursor)
        items = await cards_of(session, page.items)
        facets = await facets_of(session, shelf)
        waiting = await queries.count_pending(session, actor.user.id)
    tag = shelf.tags[0] if shelf.tags else None
    discarded = shelf.state is ItemStatus.DISCARDED
    kept = {
        "q": shelf.q, "tag": tag, "type": shelf.type.value if shelf.type else None, "untagged": "true" if shelf.untagged else None,
        "discarded": "true" if discarded else None,
    }  # fmt: skip
    return respond(
        request,
        actor,
        "library/index.html",
        status=status,
        page_title="Library",
        items=items,
        facets=facets,
        tag=tag,
        kind=shelf.type.value if shelf.type else "",
        untagged=shelf.untagged,
        discarded=discarded,
        q=shelf.q or "",
        filtered=any(kept.values()),
        approximate=page.approximate,
        waiting=waiting,
        review_waiting=waiting,
        address=lambda **changes: _address(kept, changes),
        next_url=_address(kept, {"cursor": page.next_cursor}) if page.next_cursor else None,
        first_url=_address(kept, {}) if cursor else None,
        **more,
    )


def _address(kept: dict[str, str | None], changes: dict[str, str | None]) -> str:
    query = {name: value for name, value in {**kept, **changes}.items() if value}
    return f"/app/library?{urlencode(query)}" if query else "/app/library"
