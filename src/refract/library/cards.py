"""Items as they are shown: each with its tags, its suggestions and the first item of the same page."""

from collections.abc import Sequence

from refract.core.db import ReadSession
from refract.library import queries
from refract.library.models import Item, Suggestion
from refract.library.schemas import ItemOut, ItemTagOut, SuggestionOut
from refract.library.tagging import tags_of
from refract.tags import personal
from refract.tags.models import Tag


async def cards_of(session: ReadSession, items: Sequence[Item]) -> list[ItemOut]:
    """The items of one person, by as many questions for a hundred as for one."""
    if not items:
        return []
    user_id = items[0].user_id
    ids = [item.id for item in items]
    tags = await tags_of(session, ids)
    suggestions = await queries.suggestions_of(session, ids)
    names = {one.normalised_name for each in suggestions.values() for one in each}
    known = {key for key, tag in (await personal.by_key(session, user_id, names)).items() if tag.deleted_at is None} if names else set()
    same = await queries.first_of_same_page(session, user_id, items)
    return [_card(item, tags[item.id], suggestions[item.id], known, same.get(item.id)) for item in items]


async def card_of(session: ReadSession, item: Item) -> ItemOut:
    return (await cards_of(session, [item]))[0]


def _card(item: Item, tags: Sequence[Tag], suggestions: Sequence[Suggestion], known: set[str], same: int | None) -> ItemOut:
    return ItemOut.model_validate(
        {
            **{name: getattr(item, name) for name in ItemOut.model_fields if name not in ("tags", "suggestions", "duplicate_of")},
            "tags": [ItemTagOut(id=tag.id, name=tag.name, color=tag.color) for tag in tags],
            "suggestions": [_suggestion(one, existing=one.normalised_name in known) for one in suggestions],
            "duplicate_of": same,
        }
    )


def _suggestion(one: Suggestion, *, existing: bool) -> SuggestionOut:
    return SuggestionOut.model_validate(
        {**{name: getattr(one, name) for name in SuggestionOut.model_fields if name != "existing"}, "existing": existing}
    )
