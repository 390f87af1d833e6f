"""Changing what an item says."""

from typing import Any

from refract.library.capturing import recognise
from refract.library.models import FieldSource, ItemStatus
from refract.library.schemas import ItemPatch, given
from refract.library.service.choosing import chosen_tags
from refract.library.service.hold import Held


async def change(held: Held, changes: ItemPatch) -> Held:
    """Change what is named; everything else stays. What a person has written, the assistant leaves alone from then on."""
    held.demand("edited", *(status for status in ItemStatus if status != ItemStatus.DISCARDED))
    named = given(changes)
    own_words(held, named)
    if named.get("text") is not None:
        _rewrite(held, named["text"])
    if named.get("tag_ids") is not None or named.get("new_tags"):
        await wear_chosen(held, named.get("tag_ids"), named.get("new_tags", []))
    await held.record("changed")
    return held


def own_words(held: Held, named: dict[str, Any]) -> None:
    """Title and summary as the person gave them; null clears, and a cleared one may be filled again by the assistant."""
    item = held.item
    if "title" in named and named["title"] != item.title:
        item.title, item.title_source = named["title"], FieldSource.USER.value if named["title"] else None
    if "summary" in named and named["summary"] != item.summary:
        item.summary, item.summary_source = named["summary"], FieldSource.USER.value if named["summary"] else None


async def wear_chosen(held: Held, tag_ids: list[int] | None, names: list[str]) -> None:
    """`tag_ids` is the full set, None leaves it; names come on top."""
    chosen = await chosen_tags(held.session, held.rt, held.item.user_id, tag_ids or [], names)
    await held.wear(chosen if tag_ids is not None else held.tag_ids | chosen)


def _rewrite(held: Held, text: str) -> None:
    item, seen = held.item, recognise(text)
    if seen.url_digest != item.url_digest:
        item.canonical_digest = None  # it was another page's
    item.text, item.type, item.url, item.url_digest, item.site = text, seen.type.value, seen.url, seen.url_digest, seen.site
