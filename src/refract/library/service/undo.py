"""Taking the latest change back."""

from datetime import datetime
from typing import Any

from refract.core.errors import NothingToUndo
from refract.library.models import ItemStatus, ItemUndo, SuggestionStatus
from refract.library.queries import undo_of
from refract.library.service.enrichment import begin_enrichment
from refract.library.service.hold import LIFE_FIELDS, OWN_FIELDS, UNDO_WITHIN, Held


async def undo(held: Held) -> Held:
    """The item as it was before its latest change, within 24 hours. Taking back a capture discards it."""
    last = await undo_of(held.session, held.item.id)
    if last is None or held.now - last.at > UNDO_WITHIN:
        raise NothingToUndo
    if last.action == "captured":
        await held.wear(set())
        held.item.job_id = None
        held.item.move(ItemStatus.DISCARDED)
    else:
        await _restore(held, last)
    await held.forget()
    return held


async def _restore(held: Held, last: ItemUndo) -> None:
    before = last.before
    for name in OWN_FIELDS:
        setattr(held.item, name, before[name])
    await _restore_suggestions(held, before["suggestions"])
    await held.wear({int(tag_id) for tag_id in before["tags"]})  # what was merged since comes as its target, what was deleted not at all
    if last.action in ("confirmed", "discarded"):  # any other change left the item in its state, which may have moved on since
        await _restore_life(held, before)


async def _restore_life(held: Held, before: dict[str, Any]) -> None:
    for name in LIFE_FIELDS:
        setattr(held.item, name, before[name])
    held.item.confirmed_at = datetime.fromisoformat(before["confirmed_at"]) if before["confirmed_at"] else None
    held.item.move(ItemStatus(before["status"]))
    if held.status == ItemStatus.ENRICHING:
        await begin_enrichment(held.session, held.rt, held.item)


async def _restore_suggestions(held: Held, statuses: dict[str, str]) -> None:
    for one in held.suggestions:
        known = statuses.get(str(one.id), SuggestionStatus.PENDING)  # proposed since
        if one.status != known:
            one.status, one.reviewed_at = known, None if known == SuggestionStatus.PENDING else one.reviewed_at
