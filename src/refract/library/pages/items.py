"""One item: to read with a comfortable measure, to change, and what is like it."""

from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.core.threads import WorkThreads
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.library import queries, service
from refract.library.cards import card_of
from refract.library.edge import holding
from refract.library.models import ItemPage
from refract.library.reader import reading_of
from refract.library.schemas import ItemPatch
from refract.library.search.similar import similar_items
from refract.web import flash
from refract.web.toolkit import Rt, page_router

router = page_router()
SIMILAR = 5


@router.get("/app/library/{item_id}")
async def item_page(item_id: Id, request: Request, actor: Reader, rt: Rt) -> Response:
    return await _item(request, actor, rt, item_id)


@router.post("/app/library/{item_id}")
async def change_item(
    item_id: Id,
    request: Request,
    actor: Writer,
    rt: Rt,
    title: Annotated[str, Form()] = "",
    summary: Annotated[str, Form()] = "",
    tags: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    """Change title, summary and tags. The field holds all tags: what is not in it comes off."""
    typed = {"title": title, "summary": summary, "tags": tags}
    names = [name.strip() for name in tags.split(",") if name.strip()]
    try:
        changes = ItemPatch.model_validate({"title": title, "summary": summary, "tag_ids": [], "new_tags": names})
        async with holding(rt, actor, item_id) as held:
            await service.change(held, changes)
    except ValidationError as wrong:
        errors = {str(one["loc"][0]): str(one["msg"]) for one in wrong.errors()}
        return await _item(request, actor, rt, item_id, status=422, values=typed, errors=errors)
    except (Conflict, Invalid) as refused:
        return await _item(request, actor, rt, item_id, status=refused.status, values=typed, errors={"tags": refused.message})
    response = RedirectResponse(f"/app/library/{item_id}", 303)
    flash.say(response, rt, "Saved.", undo=f"/app/items/{item_id}/undo")
    return response


@router.post("/app/library/{item_id}/discard")
async def discard_item(item_id: Id, actor: Writer, rt: Rt) -> Response:
    """Put an item away, with a way back."""
    async with holding(rt, actor, item_id) as held:
        await service.discard(held)
        name = held.item.title or held.item.text
    response = RedirectResponse("/app/library", 303)
    flash.say(response, rt, f"Discarded “{name[:80]}”.", undo=f"/app/items/{item_id}/undo")
    return response


async def _item(request: Request, actor: Actor, rt: Runtime, item_id: int, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        item = await queries.own_item(session, actor.user.id, item_id)
        card = await card_of(session, item)
        page = await session.get(ItemPage, item_id)
        similar = await similar_items(session, item, SIMILAR)
        waiting = await queries.count_pending(session, actor.user.id)
    threads = rt.part(WorkThreads)  # a saved page may have a megabyte, which is sanitised and compressed
    return await threads.run(
        respond,
        request,
        actor,
        "library/item.html",
        status=status,
        page_title=card.title or "Item",
        item=card,
        reading=await threads.run(reading_of, item, page),
        similar=[{"id": str(one.id), "title": one.title or one.text[:80], "site": one.site} for one, _ in similar],
        review_waiting=waiting,
        **context,
    )
