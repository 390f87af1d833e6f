"""One item: the reader, editing, and similar items."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.core.threads import WorkThreadPool
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.library import service
from refract.library.dependencies import lock_own_item
from refract.library.models import Item, SavedPage
from refract.library.pages.messages import translate_validation_error
from refract.library.queries import items as queries_items
from refract.library.queries.serializers import serialize_item
from refract.library.reader_view import ReaderView, build_reader_view, strip_title
from refract.library.schemas import ItemPatch
from refract.library.search.similar import find_similar_items
from refract.links.queries import load_cards
from refract.links.service.new_links import find_links_to
from refract.names.grammar import split_name
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error
from refract.web.return_path import get_referring_path

router = page_router()
MAX_SIMILAR_ITEMS = 5
_FIELDS_BY_NAME = {
    "title": "title",
    "summary": "summary",
    "notes": "notes",
    "new_tags": "tags",
}
"""Fields of the form by the names that `ItemPatch` gives them."""


@router.get("/app/library/{item_id}")
async def item_page(item_id: Id, request: Request, actor: ReadCaller, rt: Rt) -> Response:
    return await _render_item(request, actor, rt, item_id)


@router.post("/app/library/{item_id}")
async def change_item(  # noqa: PLR0913, PLR0917 - one per field
    item_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    title: Annotated[str, Form()] = "",
    summary: Annotated[str, Form()] = "",
    notes: Annotated[str, Form()] = "",
    tags: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    """Change title, summary, notes and tags. Tags that are not in the field are removed."""
    texts = {"title": title, "summary": summary, "notes": notes}
    typed = {**texts, "tags": tags}
    names = [name.strip() for name in tags.split(",") if name.strip()]
    try:
        changes = ItemPatch.model_validate({**texts, "tag_ids": [], "new_tags": names})
        async with lock_own_item(rt, actor, item_id) as locked:
            await service.edit_item(locked, changes)
    except ValidationError as exc:
        errors = {
            _FIELDS_BY_NAME[str(error["loc"][0])]: translate_validation_error(error)
            for error in exc.errors()
        }
        return await _render_item(
            request, actor, rt, item_id, status=422, values=typed, errors=errors
        )
    except (Conflict, Invalid) as exc:
        return await _render_item(
            request,
            actor,
            rt,
            item_id,
            status=exc.status,
            values=typed,
            errors={"tags": translate_error(exc)},
        )
    # the form is also in the drawer of the list
    back = get_referring_path(request, rt, f"/app/library/{item_id}")
    response = RedirectResponse(back, 303)
    flash.add(response, rt, gettext("Saved changes"), undo=f"/app/items/{item_id}/undo")
    return response


@router.post("/app/library/{item_id}/discard")
async def discard_item(item_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Discard an item; undo restores it."""
    async with lock_own_item(rt, actor, item_id) as locked:
        await service.discard_item(locked)
        title = locked.item.title or locked.item.text
    response = RedirectResponse("/app/library", 303)
    message = gettext("Discarded “{title}”", title=title[:80])
    flash.add(response, rt, message, undo=f"/app/items/{item_id}/undo")
    return response


@router.post("/app/library/{item_id}/restore")
async def restore_item(item_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Bring a discarded item back."""
    async with lock_own_item(rt, actor, item_id) as locked:
        await service.restore_item(locked)
        title, is_pending = locked.item.title or locked.item.text, locked.item.pending
    response = RedirectResponse(
        f"/app/review?item={item_id}" if is_pending else f"/app/library/{item_id}", 303
    )
    flash.add(response, rt, gettext("Restored “{title}”", title=title[:80]))
    return response


@router.post("/app/library/{item_id}/erase")
async def erase_item(item_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Erase a discarded item permanently."""
    async with lock_own_item(rt, actor, item_id) as locked:
        title = locked.item.title or locked.item.text
        await service.erase_item(locked)
    response = RedirectResponse("/app/library?discarded=true", 303)
    flash.add(response, rt, gettext("Erased “{title}”", title=title[:80]))
    return response


def _build_reading(item: Item, page: SavedPage | None) -> ReaderView:
    """Return the item for the reader, below a heading with its title."""
    reading = build_reader_view(item, page)
    return replace(reading, html=strip_title(reading.html, reading.title))


async def _render_item(
    request: Request, actor: Caller, rt: Runtime, item_id: int, *, status: int = 200, **context: Any
) -> Response:
    async with rt.db.read() as session:
        item = await queries_items.get_own_item(session, actor.user.id, item_id)
        card = await serialize_item(session, item)
        page = await session.get(SavedPage, item_id)
        similar = await find_similar_items(session, item, MAX_SIMILAR_ITEMS)
        links = await find_links_to(session, actor.user.id, item.url, rt.clock.now())
        names = await load_cards(session, links)
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    # a saved page may have a megabyte, which is sanitised and compressed
    threads = rt.singleton(WorkThreadPool)
    return await threads.run(
        render_response,
        request,
        actor,
        "library/item.html",
        status=status,
        page_title=card.title or gettext("Item"),
        item=card,
        reading=await threads.run(_build_reading, item, page),
        similar=[
            {
                "id": str(neighbour.id),
                "title": neighbour.title or neighbour.text[:80],
                "site": neighbour.site,
            }
            for neighbour, _ in similar
        ],
        links=[
            {
                "id": str(card.link.id),
                "name": split_name(card.text)[1],
                "short_url": card.to_schema(rt.settings.public_url, rt.clock.now()).short_url,
            }
            for card in names
        ],
        review_waiting=waiting,
        **context,
    )
