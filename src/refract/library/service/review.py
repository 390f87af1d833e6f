"""Decisions of the user: confirm, discard, retry, accept or reject suggestions, undo."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.errors import InvalidStateTransition, NothingToUndo
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


async def confirm_item(held: LockedItem, kept: ItemConfirmation) -> LockedItem:
    """Save an item to the library with the given fields. Other suggestions stay pending."""
    held.require_status("confirmed", ItemStatus.READY_TO_CONFIRM, ItemStatus.FAILED)
    named = {name: value for name, value in get_given_fields(kept).items() if value is not None}
    set_own_fields(held, {name: named[name] for name in ("title", "summary") if name in named})
    await _apply_decision(
        held, kept.accept, kept.reject, named.get("tag_ids"), named.get("new_tags", [])
    )
    await archive_item(held)
    return held


async def archive_item(held: LockedItem) -> None:
    item = held.item
    if not item.title:
        item.title, item.title_source = extract_first_line(item.text), FieldSource.SYSTEM.value
    item.enrichment = item.enrichment or Enrichment.MANUAL.value
    item.confirmed_at, item.job_id, item.failure = held.now, None, None
    item.set_status(ItemStatus.ARCHIVED)
    await held.save("confirmed")


async def decide_suggestions(held: LockedItem, decision: SuggestionDecision) -> LockedItem:
    """Accept or reject suggestions; the status of the item stays."""
    held.require_status(
        "reviewed", ItemStatus.READY_TO_CONFIRM, ItemStatus.FAILED, ItemStatus.ARCHIVED
    )
    await _apply_decision(held, decision.accept, decision.reject, None, [])
    await held.save("decided")
    return held


async def _apply_decision(
    held: LockedItem,
    accept: Collection[int],
    reject: Collection[int],
    tag_ids: list[int] | None,
    names: list[str],
) -> None:
    taken, refused = resolve_suggestions(held.suggestions, accept, reject)
    set_suggestion_status(held, taken, SuggestionStatus.ACCEPTED)
    set_suggestion_status(held, refused, SuggestionStatus.REJECTED)
    if taken or names or tag_ids is not None:
        await apply_tags(held, tag_ids, [*names, *(one.name for one in taken)])


def set_suggestion_status(
    held: LockedItem, suggestions: Sequence[Suggestion], answer: SuggestionStatus
) -> None:
    for one in suggestions:
        if one.status not in (SuggestionStatus.PENDING, answer):
            raise InvalidStateTransition(
                what="suggestion", state=one.status, action=answer.lower(), allowed="undo"
            )
        one.status, one.reviewed_at = answer.value, held.now


async def discard_item(held: LockedItem) -> LockedItem:
    """Discard an item.

    Its job may not write any more. Its tags are removed, and undo restores them.
    """
    held.require_status(
        "discarded", *(status for status in ItemStatus if status != ItemStatus.DISCARDED)
    )
    await held.set_tags(set())
    held.item.job_id = None
    held.item.set_status(ItemStatus.DISCARDED)
    await held.save("discarded")
    return held


async def retry_item(held: LockedItem) -> LockedItem:
    """Enrich a failed item again. It is not charged a second time."""
    held.require_status("tried again", ItemStatus.FAILED)
    held.item.failure = None
    held.item.set_status(ItemStatus.ENRICHING)
    await enqueue_enrichment(held.session, held.rt, held.item)
    await held.save_without_undo()
    return held


# Auto-approval, for users who turned it on.


async def auto_confirm_item(session: WriteSession, rt: Runtime, item: Item) -> bool:
    """Confirm an item whose suggestions reach the user's threshold, with those tags.

    The other suggestions stay pending. It can be undone.
    """
    user = await session.get_one(User, item.user_id)
    threshold = Preferences.model_validate(user.preferences).auto_confirm
    if threshold is None:
        return False
    held = await lock_item(session, rt, user.id, item.id)
    sure = [
        one
        for one in held.suggestions
        if one.status == SuggestionStatus.PENDING and one.confidence >= threshold
    ]
    if not sure:
        return False
    set_suggestion_status(held, sure, SuggestionStatus.ACCEPTED)
    await apply_tags(held, None, [one.name for one in sure])
    await archive_item(held)
    return True


# Undo of the latest change.


async def undo_item(held: LockedItem) -> LockedItem:
    """Restore the item as it was before its latest change, within 24 hours.

    Undoing a capture discards it.
    """
    last = await get_undo(held.session, held.item.id)
    if last is None or held.now - last.at > UNDO_WINDOW:
        raise NothingToUndo
    if last.action == "captured":
        await held.set_tags(set())
        held.item.job_id = None
        held.item.set_status(ItemStatus.DISCARDED)
    else:
        await _restore_item(held, last)
    await held.save_without_undo()
    return held


async def _restore_item(held: LockedItem, last: ItemUndo) -> None:
    before = last.before
    for name in CONTENT_FIELDS:
        setattr(held.item, name, before[name])
    await _restore_suggestions(held, before["suggestions"])
    # a tag merged since is replaced by its target, a deleted one left out
    await held.set_tags({int(tag_id) for tag_id in before["tags"]})
    if last.action in {"confirmed", "discarded"}:
        # no other change affects the status, which may have changed since
        await _restore_status(held, before)


async def _restore_status(held: LockedItem, before: dict[str, Any]) -> None:
    for name in STATUS_FIELDS:
        setattr(held.item, name, before[name])
    held.item.confirmed_at = (
        datetime.fromisoformat(before["confirmed_at"]) if before["confirmed_at"] else None
    )
    held.item.set_status(ItemStatus(before["status"]))
    if held.status == ItemStatus.ENRICHING:
        await enqueue_enrichment(held.session, held.rt, held.item)


async def _restore_suggestions(held: LockedItem, statuses: dict[str, str]) -> None:
    for one in held.suggestions:
        known = statuses.get(str(one.id), SuggestionStatus.PENDING)  # suggested since
        if one.status != known:
            one.status, one.reviewed_at = (
                known,
                None if known == SuggestionStatus.PENDING else one.reviewed_at,
            )
