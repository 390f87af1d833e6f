"""Confirm, discard, retry, undo, and suggestions one by one."""

from fastapi import Response

from refract.core.errors import NothingToUndo
from refract.core.schema import Id
from refract.identity.actors import Writer
from refract.library import service
from refract.library.edge import ON_AN_ITEM, TAGGING, holding, shown
from refract.library.errors import Undecided, UnknownSuggestion
from refract.library.schemas import Confirmation, Decision, ItemOut
from refract.web.problems import problems
from refract.web.toolkit import IdempotencyKey, IfMatch, Rt, api_router

router = api_router("/items/{item_id}", "items")
_DECIDING = (*ON_AN_ITEM, *TAGGING, UnknownSuggestion, Undecided)


@router.post("/confirm", responses=problems(*_DECIDING))
async def confirm_item(
    item_id: Id,
    actor: Writer,
    rt: Rt,
    response: Response,
    kept: Confirmation | None = None,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemOut:
    """Put an item into the library with what I keep of the proposal. `tag_ids` is the full set of tags; absent leaves them."""
    async with holding(rt, actor, item_id, if_match) as held:
        return await shown(await service.confirm(held, kept or Confirmation()), response)


@router.post("/suggestions", responses=problems(*_DECIDING))
async def decide_suggestions(
    item_id: Id,
    decision: Decision,
    actor: Writer,
    rt: Rt,
    response: Response,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemOut:
    """Accept or reject suggestions without moving the item. A rejected name is not suggested to me again."""
    async with holding(rt, actor, item_id, if_match) as held:
        return await shown(await service.decide(held, decision), response)


@router.post("/discard", responses=problems(*ON_AN_ITEM))
async def discard_item(
    item_id: Id,
    actor: Writer,
    rt: Rt,
    response: Response,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemOut:
    """Put an item away. The assistant stops; it can be undone within 24 hours."""
    async with holding(rt, actor, item_id, if_match) as held:
        return await shown(await service.discard(held), response)


@router.post("/retry", responses=problems(*ON_AN_ITEM))
async def retry_item(
    item_id: Id,
    actor: Writer,
    rt: Rt,
    response: Response,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemOut:
    """Let the assistant try a failed item once more; it is not charged again."""
    async with holding(rt, actor, item_id, if_match) as held:
        return await shown(await service.retry(held), response)


@router.post("/undo", responses=problems(*ON_AN_ITEM, NothingToUndo))
async def undo_item(
    item_id: Id,
    actor: Writer,
    rt: Rt,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemOut:
    """Take back my latest change of this item, within 24 hours. Undoing a capture discards it."""
    async with holding(rt, actor, item_id) as held:
        return await shown(await service.undo(held), response)
