"""API of the review: confirm, discard, retry, undo, and single suggestions."""

from fastapi import Response

from refract.core.errors import NothingToUndo
from refract.core.schemas import Id
from refract.identity.dependencies import WriteCaller
from refract.library import service
from refract.library.dependencies import ITEM_ERRORS, TAG_ERRORS, lock_own_item, render_item
from refract.library.errors import (
    ConflictingDecision,
    ItemNotFound,
    StorageLimitReached,
    UnknownSuggestion,
)
from refract.library.schemas import ItemConfirmation, ItemOut, SuggestionDecision
from refract.web.dependencies import IfMatchHeader, Rt, api_router
from refract.web.problems import problems

router = api_router("/items/{item_id}", "items")
_DECISION_ERRORS = (*ITEM_ERRORS, UnknownSuggestion, ConflictingDecision)


@router.post("/confirm", responses=problems(*_DECISION_ERRORS, *TAG_ERRORS))
async def confirm_item(
    item_id: Id,
    actor: WriteCaller,
    rt: Rt,
    response: Response,
    confirmation: ItemConfirmation | None = None,
    if_match: IfMatchHeader = None,
) -> ItemOut:
    """Save an item to the library with the given fields.

    `tag_ids` is the full set of tags; if omitted, they stay.
    """
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        return await render_item(
            await service.confirm_item(locked, confirmation or ItemConfirmation()), response
        )


@router.post("/suggestions", responses=problems(*_DECISION_ERRORS))
async def decide_suggestions(
    item_id: Id,
    decision: SuggestionDecision,
    actor: WriteCaller,
    rt: Rt,
    response: Response,
    if_match: IfMatchHeader = None,
) -> ItemOut:
    """Accept or reject suggestions without changing the item's status.

    A rejected name is not suggested again.
    """
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        return await render_item(await service.decide_suggestions(locked, decision), response)


@router.post("/discard", responses=problems(*ITEM_ERRORS))
async def discard_item(
    item_id: Id, actor: WriteCaller, rt: Rt, response: Response, if_match: IfMatchHeader = None
) -> ItemOut:
    """Discard an item and stop its processing. It can be restored at any time."""
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        return await render_item(await service.discard_item(locked), response)


@router.post("/restore", responses=problems(*ITEM_ERRORS))
async def restore_item(
    item_id: Id, actor: WriteCaller, rt: Rt, response: Response, if_match: IfMatchHeader = None
) -> ItemOut:
    """Bring a discarded item back, at any time.

    Within 24 hours it is as it was. Later its tags are gone, and it is saved if it was saved
    before, else ready to review.
    """
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        return await render_item(await service.restore_item(locked), response)


@router.post("/erase", status_code=204, responses=problems(*ITEM_ERRORS))
async def erase_item(
    item_id: Id, actor: WriteCaller, rt: Rt, if_match: IfMatchHeader = None
) -> Response:
    """Erase a discarded item permanently. This can't be undone."""
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        await service.erase_item(locked)
    return Response(status_code=204)


@router.post("/retry", responses=problems(*ITEM_ERRORS))
async def retry_item(
    item_id: Id, actor: WriteCaller, rt: Rt, response: Response, if_match: IfMatchHeader = None
) -> ItemOut:
    """Retry a failed item. It is not charged again."""
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        return await render_item(await service.retry_item(locked), response)


@router.post("/undo", responses=problems(ItemNotFound, NothingToUndo, StorageLimitReached))
async def undo_item(item_id: Id, actor: WriteCaller, rt: Rt, response: Response) -> ItemOut:
    """Undo the latest change of an item, within 24 hours. Undoing a capture discards it."""
    async with lock_own_item(rt, actor, item_id) as locked:
        return await render_item(await service.undo_item(locked), response)
