"""The review deck: the queue, the item with what is proposed for it, and one key for each decision."""

from typing import Annotated, Any

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond, respond_part
from refract.identity.visitors import Actor
from refract.library import queries, service
from refract.library.cards import cards_of
from refract.library.edge import holding
from refract.library.models import ItemStatus, SuggestionStatus
from refract.library.schemas import Confirmation, ItemOut
from refract.web import flash
from refract.web.toolkit import Rt, page_router

router = page_router()
QUEUE = 50
SURE = 0.5
"""A proposed tag that exists already and is surer than this is ticked beforehand."""


@router.get("/app/review")
async def review_page(request: Request, actor: Reader, rt: Rt, item: Annotated[str, Query(max_length=20)] = "") -> Response:
    return await _deck(request, actor, rt, item)


@router.get("/app/review/waiting")
async def how_many_wait(request: Request, actor: Reader, rt: Rt) -> Response:
    """The number beside the library's name, for pages that have nothing else to do with it."""
    async with rt.db.read() as session:
        number = await queries.count_pending(session, actor.user.id)
    return respond_part(request, actor, "components/waiting_badge.html", number=number)


@router.post("/app/review/{item_id}")
async def decide(  # noqa: PLR0913, PLR0917 - each field of the form is one
    item_id: Id,
    request: Request,
    actor: Writer,
    rt: Rt,
    act: Annotated[str, Form(max_length=20)] = "confirm",
    title: Annotated[str, Form()] = "",
    summary: Annotated[str, Form()] = "",
    accept: Annotated[list[str] | None, Form()] = None,
    tags: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    """Confirm with what is kept, discard, or let the assistant try again; then the next one."""
    typed = {"title": title, "summary": summary, "tags": tags}
    try:
        said = await _decided(rt, actor, item_id, act, typed, accept or [])
    except ValidationError as wrong:
        return await _deck(request, actor, rt, str(item_id), status=422, values=typed, problem=str(wrong.errors()[0]["msg"]))
    except (Conflict, Invalid) as refused:
        return await _deck(request, actor, rt, str(item_id), status=refused.status, values=typed, problem=refused.message)
    response = RedirectResponse("/app/review", 303)
    flash.say(response, rt, said, undo=f"/app/items/{item_id}/undo" if act != "retry" else None)
    return response


async def _decided(rt: Runtime, actor: Actor, item_id: int, act: str, typed: dict[str, str], accept: list[str]) -> str:
    names = [name.strip() for name in typed["tags"].split(",") if name.strip()]
    kept = Confirmation.model_validate({"title": typed["title"], "summary": typed["summary"], "accept": accept, "new_tags": names})
    async with holding(rt, actor, item_id) as held:
        if act == "discard":
            await service.discard(held)
        elif act == "retry":
            await service.retry(held)
        else:
            await service.confirm(held, kept)
        name = held.item.title or held.item.text
    words = {"discard": "Discarded", "retry": "Trying again:"}.get(act, "Filed")
    return f"{words} “{name[:80]}”."


@router.post("/app/items/{item_id}/undo")
async def undo_item(item_id: Id, actor: Writer, rt: Rt) -> Response:
    """Take back the latest decision and show the item again."""
    try:
        async with holding(rt, actor, item_id) as held:
            await service.undo(held)
            waits, name = held.item.pending, held.item.title or held.item.text
    except Conflict as refused:
        response = RedirectResponse(f"/app/library/{item_id}", 303)
        flash.say(response, rt, refused.message, kind="note")
        return response
    response = RedirectResponse(f"/app/review?item={item_id}" if waits else f"/app/library/{item_id}", 303)
    flash.say(response, rt, f"“{name[:80]}” is as it was.")
    return response


async def _deck(request: Request, actor: Actor, rt: Runtime, wanted: str, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        page = await queries.page_of_pending(session, Cursors(rt.secret), actor.user.id, status=None, limit=QUEUE, cursor=None)
        waiting = await queries.count_pending(session, actor.user.id)
        cards = await cards_of(session, page.items)
    here = next((card for card in cards if str(card.id) == wanted), None)
    here = here or next((card for card in cards if card.status != ItemStatus.ENRICHING), cards[0] if cards else None)
    return respond(
        request,
        actor,
        "library/review.html",
        status=status,
        page_title="Review",
        queue=cards,
        item=here,
        chips=_chips(here) if here else [],
        waiting=waiting,
        review_waiting=waiting,
        busy=any(card.status == ItemStatus.ENRICHING for card in cards),
        **context,
    )


def _chips(item: ItemOut) -> list[dict[str, Any]]:
    """The proposed tags, the surest first; each with its reason, and whether it would be taken."""
    return [
        {
            "id": str(one.id),
            "name": one.name,
            "existing": one.existing,
            "percent": round(100 * one.confidence),
            "reason": one.reason,
            "chosen": one.status == SuggestionStatus.ACCEPTED or (one.existing and one.confidence >= SURE),
        }
        for one in item.suggestions
        if one.status != SuggestionStatus.REJECTED
    ]
