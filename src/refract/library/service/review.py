"""The person decides: confirm, discard, try again, take or refuse a suggestion."""

from collections.abc import Collection, Sequence

from refract.core.errors import InvalidStateTransition
from refract.library.capturing import first_line
from refract.library.models import Enrichment, FieldSource, ItemStatus, Suggestion, SuggestionStatus
from refract.library.schemas import Confirmation, Decision, given
from refract.library.service.choosing import decided
from refract.library.service.edit import own_words, wear_chosen
from refract.library.service.enrichment import begin_enrichment
from refract.library.service.hold import Held


async def confirm(held: Held, kept: Confirmation) -> Held:
    """Into the library, with what the person kept of the proposal. Suggestions that are not mentioned go on waiting."""
    held.demand("confirmed", ItemStatus.READY_TO_CONFIRM, ItemStatus.FAILED)
    named = {name: value for name, value in given(kept).items() if value is not None}
    own_words(held, {name: named[name] for name in ("title", "summary") if name in named})
    await _decide(held, kept.accept, kept.reject, named.get("tag_ids"), named.get("new_tags", []))
    await archive(held)
    return held


async def archive(held: Held) -> None:
    item = held.item
    if not item.title:
        item.title, item.title_source = first_line(item.text), FieldSource.SYSTEM.value
    item.enrichment = item.enrichment or Enrichment.MANUAL.value
    item.confirmed_at, item.job_id, item.failure = held.now, None, None
    item.move(ItemStatus.ARCHIVED)
    await held.record("confirmed")


async def decide(held: Held, decision: Decision) -> Held:
    """Take or refuse suggestions one by one; the item stays where it is."""
    held.demand("reviewed", ItemStatus.READY_TO_CONFIRM, ItemStatus.FAILED, ItemStatus.ARCHIVED)
    await _decide(held, decision.accept, decision.reject, None, [])
    await held.record("decided")
    return held


async def _decide(held: Held, accept: Collection[int], reject: Collection[int], tag_ids: list[int] | None, names: list[str]) -> None:
    taken, refused = decided(held.suggestions, accept, reject)
    settle(held, taken, SuggestionStatus.ACCEPTED)
    settle(held, refused, SuggestionStatus.REJECTED)
    if taken or names or tag_ids is not None:
        await wear_chosen(held, tag_ids, [*names, *(one.name for one in taken)])


def settle(held: Held, suggestions: Sequence[Suggestion], answer: SuggestionStatus) -> None:
    for one in suggestions:
        if one.status not in (SuggestionStatus.PENDING, answer):
            raise InvalidStateTransition(what="suggestion", state=one.status, wish=answer.lower(), allowed="undo")
        one.status, one.reviewed_at = answer.value, held.now


async def discard(held: Held) -> Held:
    """Put an item away. A job that is at it may not write any more; its tags are taken off, and come back with undo."""
    held.demand("discarded", *(status for status in ItemStatus if status != ItemStatus.DISCARDED))
    await held.wear(set())
    held.item.job_id = None
    held.item.move(ItemStatus.DISCARDED)
    await held.record("discarded")
    return held


async def retry(held: Held) -> Held:
    """Let the assistant try once more. What was paid for the first time is still paid for."""
    held.demand("tried again", ItemStatus.FAILED)
    held.item.failure = None
    held.item.move(ItemStatus.ENRICHING)
    await begin_enrichment(held.session, held.rt, held.item)
    await held.forget()
    return held
