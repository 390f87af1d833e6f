"""The review page: the queue, and an item with its suggested title, summary and tags."""

from typing import Annotated, Any

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_fragment, render_response
from refract.library import service
from refract.library.dependencies import lock_own_item
from refract.library.enrichment.reasons import translate_reason
from refract.library.models import ItemStatus, SuggestionStatus
from refract.library.pages.messages import translate_validation_error
from refract.library.queries import items as queries_items
from refract.library.queries.serializers import serialize_items
from refract.library.schemas import ItemConfirmation, ItemOut
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
QUEUE_SIZE = 50
MIN_PRESELECTED_CONFIDENCE = 0.5
"""Suggestions of existing tags with at least this confidence are selected beforehand."""


@router.get("/app/review")
async def review_page(
    request: Request, actor: ReadCaller, rt: Rt, item: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    return await _render_review(request, actor, rt, item)


@router.get("/app/review/waiting")
async def render_waiting_count(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Render the number beside "Library" for pages that do not know it."""
    async with rt.db.read() as session:
        number = await queries_items.count_pending_items(session, actor.user.id)
    return render_fragment(request, actor, "components/waiting_badge.html", number=number)


@router.post("/app/review/{item_id}")
async def decide_item(  # noqa: PLR0913, PLR0917 - one per form field
    item_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    act: Annotated[str, Form(max_length=20)] = "confirm",
    title: Annotated[str, Form()] = "",
    summary: Annotated[str, Form()] = "",
    accept: Annotated[list[str] | None, Form()] = None,
    tags: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    """Confirm an item with the given fields, discard it or retry; then go to the next one."""
    typed = {"title": title, "summary": summary, "tags": tags}
    try:
        message = await _apply_decision(rt, actor, item_id, act, typed, accept or [])
    except ValidationError as exc:
        return await _render_review(
            request,
            actor,
            rt,
            str(item_id),
            status=422,
            values=typed,
            problem=translate_validation_error(exc.errors()[0]),
        )
    except (Conflict, Invalid) as exc:
        return await _render_review(
            request,
            actor,
            rt,
            str(item_id),
            status=exc.status,
            values=typed,
            problem=translate_error(exc),
        )
    response = RedirectResponse("/app/review", 303)
    flash.add(response, rt, message, undo=f"/app/items/{item_id}/undo" if act != "retry" else None)
    return response


async def _apply_decision(
    rt: Runtime, actor: Caller, item_id: int, act: str, typed: dict[str, str], accept: list[str]
) -> str:
    names = [name.strip() for name in typed["tags"].split(",") if name.strip()]
    confirmation = ItemConfirmation.model_validate(
        {"title": typed["title"], "summary": typed["summary"], "accept": accept, "new_tags": names}
    )
    async with lock_own_item(rt, actor, item_id) as locked:
        if act == "discard":
            await service.discard_item(locked)
        elif act == "retry":
            await service.retry_item(locked)
        else:
            await service.confirm_item(locked, confirmation)
        title = (locked.item.title or locked.item.text)[:80]
    if act == "discard":
        return gettext("Discarded “{title}”", title=title)
    if act == "retry":
        return gettext("Retrying “{title}”", title=title)
    return gettext("Saved “{title}”", title=title)


@router.post("/app/items/{item_id}/undo")
async def undo_item(item_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Undo the latest decision and show the item again."""
    try:
        async with lock_own_item(rt, actor, item_id) as locked:
            await service.undo_item(locked)
            is_pending = locked.item.pending
    except Conflict as exc:
        response = RedirectResponse(f"/app/library/{item_id}", 303)
        flash.add(response, rt, translate_error(exc), kind="note")
        return response
    response = RedirectResponse(
        f"/app/review?item={item_id}" if is_pending else f"/app/library/{item_id}", 303
    )
    flash.add(response, rt, gettext("Undone"))
    return response


async def _render_review(
    request: Request, actor: Caller, rt: Runtime, item_id: str, *, status: int = 200, **context: Any
) -> Response:
    async with rt.db.read() as session:
        page = await queries_items.list_pending_items(
            session,
            CursorCodec(rt.secret),
            actor.user.id,
            status=None,
            limit=QUEUE_SIZE,
            cursor=None,
        )
        waiting = await queries_items.count_pending_items(session, actor.user.id)
        cards = await serialize_items(session, page.items)
        here = next((card for card in cards if str(card.id) == item_id), None)
        if here is None:  # saved or discarded elsewhere: its text belongs to no other item
            context.pop("values", None)
        here = here or next(
            (card for card in cards if card.status != ItemStatus.ENRICHING),
            cards[0] if cards else None,
        )
        excerpt = await queries_items.load_excerpt(session, int(here.id)) if here else None
    return render_response(
        request,
        actor,
        "library/review.html",
        status=status,
        page_title=gettext("Review"),
        queue=cards,
        item=here,
        excerpt=excerpt,
        chips=_build_chips(here) if here else [],
        waiting=waiting,
        review_waiting=waiting,
        busy=any(card.status == ItemStatus.ENRICHING for card in cards),
        **context,
    )


def _build_chips(item: ItemOut) -> list[dict[str, Any]]:
    """Return the suggested tags with their reason, and whether they are selected beforehand."""
    return [
        {
            "id": str(suggestion.id),
            "name": suggestion.name,
            "existing": suggestion.existing,
            "share": suggestion.confidence,
            "reason": translate_reason(suggestion.reason),
            "chosen": (
                suggestion.status == SuggestionStatus.ACCEPTED
                or (suggestion.existing and suggestion.confidence >= MIN_PRESELECTED_CONFIDENCE)
            ),
        }
        for suggestion in item.suggestions
        if suggestion.status != SuggestionStatus.REJECTED
    ]
