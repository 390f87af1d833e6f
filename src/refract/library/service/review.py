"""Decisions of the user: confirm, discard, retry, accept or reject suggestions, undo."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.errors import InvalidStateTransition, NothingToUndo
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.schemas import Preferences
from refract.library.models import (
    Enrichment,
    FieldSource,
    Item,
    ItemStatus,
    ItemUndo,
    Suggestion,
    SuggestionStatus,
)
from refract.library.queries.items import get_undo
from refract.library.recognition import extract_first_line
from refract.library.schemas import ItemConfirmation, SuggestionDecision, get_given_fields
from refract.library.service.edit import apply_tags, resolve_suggestions, set_own_fields
from refract.library.service.enrichment import enqueue_enrichment
from refract.library.service.lock import (
    CONTENT_FIELDS,
    STATUS_FIELDS,
    UNDO_WINDOW,
    LockedItem,
    lock_item,
)
from refract.tags import personal_tags

_SUGGESTION_LABELS: dict[SuggestionStatus, Phrase] = {
    SuggestionStatus.PENDING: Phrase("pending"),
    SuggestionStatus.ACCEPTED: Phrase("accepted"),
    SuggestionStatus.REJECTED: Phrase("rejected"),
}


async def confirm_item(locked: LockedItem, confirmation: ItemConfirmation) -> LockedItem:
    """Save an item to the library with the given fields. Other suggestions stay pending.

    One whose page is still being fetched need not wait for it: its job may not write any more.
    """
    locked.require_status(
        Phrase("confirmed"),
        ItemStatus.ENRICHING,
        ItemStatus.READY_TO_CONFIRM,
        ItemStatus.FAILED,
    )
    named = {
        name: value for name, value in get_given_fields(confirmation).items() if value is not None
    }
    set_own_fields(locked, {name: named[name] for name in ("title", "summary") if name in named})
    await _apply_decision(
        locked,
        confirmation.accept,
        confirmation.reject,
        named.get("tag_ids"),
        named.get("new_tags", []),
    )
    await save_to_library(locked)
    return locked


async def save_to_library(locked: LockedItem) -> None:
    """Give the item the status of saved ones, `ARCHIVED`."""
    item = locked.item
    if not item.title:
        item.title, item.title_source = extract_first_line(item.text), FieldSource.SYSTEM.value
    item.enrichment = item.enrichment or Enrichment.MANUAL.value
    item.confirmed_at, item.job_id, item.failure = locked.now, None, None
    item.set_status(ItemStatus.ARCHIVED)
    await locked.save("confirmed")


async def decide_suggestions(locked: LockedItem, decision: SuggestionDecision) -> LockedItem:
    """Accept or reject suggestions; the status of the item stays."""
    locked.require_status(
        Phrase("reviewed"), ItemStatus.READY_TO_CONFIRM, ItemStatus.FAILED, ItemStatus.ARCHIVED
    )
    await _apply_decision(locked, decision.accept, decision.reject, None, [])
    await locked.save("decided")
    return locked


async def _apply_decision(
    locked: LockedItem,
    accept: Collection[int],
    reject: Collection[int],
    tag_ids: list[int] | None,
    names: list[str],
) -> None:
    taken, refused = resolve_suggestions(locked.suggestions, accept, reject)
    set_suggestion_status(locked, taken, SuggestionStatus.ACCEPTED)
    set_suggestion_status(locked, refused, SuggestionStatus.REJECTED)
    if taken or names or tag_ids is not None:
        await apply_tags(locked, tag_ids, [*names, *(suggestion.name for suggestion in taken)])


def set_suggestion_status(
    locked: LockedItem, suggestions: Sequence[Suggestion], status: SuggestionStatus
) -> None:
    for suggestion in suggestions:
        if suggestion.status not in (SuggestionStatus.PENDING, status):
            raise InvalidStateTransition(
                what=Phrase("The suggestion"),
                state=suggestion.status,
                label=_SUGGESTION_LABELS[SuggestionStatus(suggestion.status)],
                action=_SUGGESTION_LABELS[status],
                allowed=Phrase("undo"),
            )
        suggestion.status, suggestion.reviewed_at = status.value, locked.now


async def discard_item(locked: LockedItem) -> LockedItem:
    """Discard an item.

    Its job may not write any more. Its tags are removed, and undo restores them.
    """
    locked.require_status(
        Phrase("discarded"), *(status for status in ItemStatus if status != ItemStatus.DISCARDED)
    )
    await locked.set_tags(set())
    locked.item.job_id = None
    locked.item.set_status(ItemStatus.DISCARDED)
    await locked.save("discarded")
    return locked


async def restore_item(locked: LockedItem) -> LockedItem:
    """Bring a discarded item back: as it was within 24 hours, later with what is left of it.

    An item that was saved before is saved again, any other one waits for review.
    """
    locked.require_status(Phrase("restored"), ItemStatus.DISCARDED)
    last = await get_undo(locked.session, locked.item.id)
    if last is not None and last.action == "discarded":
        await _restore_item(locked, last)
    else:
        is_saved = locked.item.confirmed_at is not None
        locked.item.set_status(ItemStatus.ARCHIVED if is_saved else ItemStatus.READY_TO_CONFIRM)
    await locked.save_without_undo()
    return locked


async def retry_item(locked: LockedItem) -> LockedItem:
    """Enrich a failed item again. It is not charged a second time."""
    locked.require_status(Phrase("retried"), ItemStatus.FAILED)
    locked.item.failure = None
    locked.item.set_status(ItemStatus.ENRICHING)
    await enqueue_enrichment(locked.session, locked.rt, locked.item)
    await locked.save_without_undo()
    return locked


# Auto-approval, for users who turned it on.


async def auto_confirm_item(session: WriteSession, rt: Runtime, item: Item) -> bool:
    """Confirm an item whose suggestions reach the user's threshold, with those tags.

    The other suggestions stay pending. It can be undone.
    """
    user = await session.get_one(User, item.user_id)
    threshold = Preferences.model_validate(user.preferences).auto_confirm
    if threshold is None:
        return False
    locked = await lock_item(session, rt, user.id, item.id)
    sure = [
        suggestion
        for suggestion in locked.suggestions
        if suggestion.status == SuggestionStatus.PENDING and suggestion.confidence >= threshold
    ]
    if not sure:
        return False
    set_suggestion_status(locked, sure, SuggestionStatus.ACCEPTED)
    await apply_tags(locked, None, [suggestion.name for suggestion in sure])
    await save_to_library(locked)
    return True


# Undo of the latest change.


async def undo_item(locked: LockedItem) -> LockedItem:
    """Restore the item as it was before its latest change, within 24 hours.

    Undoing a capture discards it.
    """
    last = await get_undo(locked.session, locked.item.id)
    if last is None or locked.now - last.at > UNDO_WINDOW:
        raise NothingToUndo
    if last.action == "captured":
        await locked.set_tags(set())
        locked.item.job_id = None
        locked.item.set_status(ItemStatus.DISCARDED)
    else:
        await _restore_item(locked, last)
    await locked.save_without_undo()
    return locked


async def _restore_item(locked: LockedItem, last: ItemUndo) -> None:
    before, removed = last.before, set(locked.tag_ids)
    for name in CONTENT_FIELDS:
        if name in before:  # records of older releases have fewer
            setattr(locked.item, name, before[name])
    await _restore_suggestions(locked, before["suggestions"])
    # a tag merged since is replaced by its target, a deleted one left out
    await locked.set_tags({int(tag_id) for tag_id in before["tags"]})
    await personal_tags.delete_unused_tags(
        locked.session, removed - locked.tag_ids, created_since=last.at
    )
    if last.action in {"confirmed", "discarded"}:
        # no other change affects the status, which may have changed since
        await _restore_status(locked, before)


async def _restore_status(locked: LockedItem, before: dict[str, Any]) -> None:
    for name in STATUS_FIELDS:
        setattr(locked.item, name, before[name])
    locked.item.confirmed_at = (
        datetime.fromisoformat(before["confirmed_at"]) if before["confirmed_at"] else None
    )
    locked.item.set_status(ItemStatus(before["status"]))
    if locked.status == ItemStatus.ENRICHING:
        await enqueue_enrichment(locked.session, locked.rt, locked.item)


async def _restore_suggestions(locked: LockedItem, statuses: dict[str, str]) -> None:
    for suggestion in locked.suggestions:
        known = statuses.get(str(suggestion.id), SuggestionStatus.PENDING)  # suggested since
        if suggestion.status != known:
            suggestion.status, suggestion.reviewed_at = (
                known,
                None if known == SuggestionStatus.PENDING else suggestion.reviewed_at,
            )
