"""Items as the API and pages show them: with tags, suggestions and the item they duplicate."""

from collections.abc import Sequence

from refract.core.db.session import ReadSession
from refract.library.item_tags import get_item_tags
from refract.library.models import Item, Suggestion
from refract.library.queries import items as queries_items
from refract.library.schemas import ItemOut, ItemTagOut, SuggestionOut
from refract.tags import personal_tags
from refract.tags.models import Tag


async def serialize_items(session: ReadSession, items: Sequence[Item]) -> list[ItemOut]:
    """Return the items of one user in a number of queries that does not depend on theirs."""
    if not items:
        return []
    user_id = items[0].user_id
    ids = [item.id for item in items]
    tags = await get_item_tags(session, ids)
    suggestions = await queries_items.get_suggestions(session, ids)
    names = {suggestion.normalised_name for found in suggestions.values() for suggestion in found}
    known = (
        {
            key
            for key, tag in (await personal_tags.find_tags_by_key(session, user_id, names)).items()
            if tag.deleted_at is None
        }
        if names
        else set()
    )
    same = await queries_items.find_duplicates(session, user_id, items)
    return [
        _build_item_out(item, tags[item.id], suggestions[item.id], known, same.get(item.id))
        for item in items
    ]


async def serialize_item(session: ReadSession, item: Item) -> ItemOut:
    return (await serialize_items(session, [item]))[0]


async def serialize_bare_item(session: ReadSession, item: Item) -> ItemOut:
    """Return a new item, which has neither tags nor suggestions yet."""
    same = await queries_items.find_duplicates(session, item.user_id, [item])
    return _build_item_out(item, [], [], set(), same.get(item.id))


def _build_item_out(
    item: Item,
    tags: Sequence[Tag],
    suggestions: Sequence[Suggestion],
    known: set[str],
    same: int | None,
) -> ItemOut:
    return ItemOut.model_validate(
        {
            **{
                name: getattr(item, name)
                for name in ItemOut.model_fields
                if name not in ("tags", "suggestions", "duplicate_of")
            },
            "tags": [ItemTagOut(id=tag.id, name=tag.name, color=tag.color) for tag in tags],
            "suggestions": [
                _build_suggestion_out(suggestion, existing=suggestion.normalised_name in known)
                for suggestion in suggestions
            ],
            "duplicate_of": same,
        }
    )


def _build_suggestion_out(suggestion: Suggestion, *, existing: bool) -> SuggestionOut:
    return SuggestionOut.model_validate(
        {
            **{
                name: getattr(suggestion, name)
                for name in SuggestionOut.model_fields
                if name != "existing"
            },
            "existing": existing,
        }
    )
