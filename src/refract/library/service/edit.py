"""Editing items."""

from collections.abc import Collection, Sequence
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.errors import FieldError
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.library.errors import (
    ConflictingDecision,
    TooManyItemTags,
    UnknownSuggestion,
    UnknownTag,
)
from refract.library.models import READING_STATES, FieldSource, ItemStatus, Suggestion
from refract.library.recognition import recognize_text
from refract.library.schemas import MAX_TAGS, ItemPatch, get_given_fields
from refract.library.service import storage
from refract.library.service.lock import LockedItem
from refract.tags import personal_tags
from refract.tags.queries import find_tags_by_id


async def edit_item(locked: LockedItem, changes: ItemPatch) -> LockedItem:
    """Change the fields that are given.

    Fields that a user wrote are not overwritten by enrichment.
    """
    locked.require_status(
        Phrase("edited"), *(status for status in ItemStatus if status != ItemStatus.DISCARDED)
    )
    named = get_given_fields(changes)
    set_own_fields(locked, named)
    set_reading_states(locked, named)
    if named.get("text") is not None:
        await _replace_text(locked, named["text"])
    if named.get("tag_ids") is not None or named.get("new_tags"):
        await apply_tags(locked, named.get("tag_ids"), named.get("new_tags", []))
    await locked.save("changed", has_new_words=not named.keys() <= set(READING_STATES))
    return locked


def set_own_fields(locked: LockedItem, named: dict[str, Any]) -> None:
    """Set title, summary and notes to what the user gave.

    Null clears one, and enrichment may fill title and summary again.
    """
    item = locked.item
    if "title" in named and named["title"] != item.title:
        item.title, item.title_source = (
            named["title"],
            FieldSource.USER.value if named["title"] else None,
        )
    if "summary" in named and named["summary"] != item.summary:
        item.summary, item.summary_source = (
            named["summary"],
            FieldSource.USER.value if named["summary"] else None,
        )

    if "notes" in named:
        item.notes = named["notes"]


def set_reading_states(locked: LockedItem, named: dict[str, Any]) -> None:
    for name in READING_STATES:
        if named.get(name) is not None:
            setattr(locked.item, name, named[name])


async def apply_tags(locked: LockedItem, tag_ids: list[int] | None, names: list[str]) -> None:
    """Set the tags of an item. `tag_ids` is the full set, None keeps it; tags named are added."""
    chosen = await resolve_tags(
        locked.session, locked.rt, locked.item.user_id, tag_ids or [], names
    )
    await locked.set_tags(chosen if tag_ids is not None else locked.tag_ids | chosen)


async def _replace_text(locked: LockedItem, text: str) -> None:
    item, seen = locked.item, recognize_text(text)
    if seen.url_digest != item.url_digest:  # what was fetched belonged to another page
        item.canonical_digest = None
        await storage.delete_page(locked.session, item)
    item.text, item.type, item.url, item.url_digest, item.site = (
        text,
        seen.type.value,
        seen.url,
        seen.url_digest,
        seen.site,
    )


# Tags and suggestions by ids and names.


async def resolve_tags(
    session: WriteSession,
    rt: Runtime,
    user_id: int,
    tag_ids: Collection[int],
    names: Collection[str],
) -> set[int]:
    """Return the ids of the user's tags with these ids or names; missing names are created."""
    known = await find_tags_by_id(session, tag_ids) if tag_ids else {}
    for tag_id in tag_ids:
        tag = known.get(tag_id)
        if tag is None or tag.space != user_id or tag.deleted_at is not None:
            raise UnknownTag(
                tag_id=tag_id,
                errors=[
                    FieldError("tag_ids", Phrase("You don't have a tag {tag_id}.", tag_id=tag_id))
                ],
            )
    made = (
        await personal_tags.ensure_tags(session, rt.ids, user_id, names, rt.clock.now())
        if names
        else {}
    )
    chosen = set(known) | {tag.id for tag in made.values()}
    if len(chosen) > MAX_TAGS:
        raise TooManyItemTags(limit=MAX_TAGS)
    return chosen


def resolve_suggestions(
    suggestions: Sequence[Suggestion], accept: Collection[int], reject: Collection[int]
) -> tuple[list[Suggestion], list[Suggestion]]:
    """Return the suggestions to accept and to reject. Raises if an id is unknown or in both."""
    known = {suggestion.id: suggestion for suggestion in suggestions}
    for suggestion_id in (*accept, *reject):
        if suggestion_id not in known:
            raise UnknownSuggestion(suggestion_id=suggestion_id)
    if both := set(accept) & set(reject):
        raise ConflictingDecision(suggestion_id=min(both))
    return [known[number] for number in dict.fromkeys(accept)], [
        known[number] for number in dict.fromkeys(reject)
    ]
