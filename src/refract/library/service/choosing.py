"""Which tags somebody means by ids and names."""

from collections.abc import Collection, Sequence

from refract.core.db import WriteSession
from refract.core.errors import FieldError
from refract.core.runtime import Runtime
from refract.library.errors import TooManyItemTags, Undecided, UnknownSuggestion, UnknownTag
from refract.library.models import Suggestion
from refract.library.schemas import MOST_TAGS
from refract.tags import personal
from refract.tags.queries import tags_by_id


async def chosen_tags(session: WriteSession, rt: Runtime, user_id: int, tag_ids: Collection[int], names: Collection[str]) -> set[int]:
    """The person's own tags with these ids, and those with these names, made where there is none."""
    known = await tags_by_id(session, tag_ids) if tag_ids else {}
    for tag_id in tag_ids:
        tag = known.get(tag_id)
        if tag is None or tag.space != user_id or tag.deleted_at is not None:
            raise UnknownTag(tag_id=tag_id, errors=[FieldError("tag_ids", f"There is no tag {tag_id} among yours.")])
    made = await personal.ensure(session, rt.ids, user_id, names, rt.clock.now()) if names else {}
    chosen = set(known) | {tag.id for tag in made.values()}
    if len(chosen) > MOST_TAGS:
        raise TooManyItemTags(most=MOST_TAGS)
    return chosen


def decided(
    suggestions: Sequence[Suggestion], accept: Collection[int], reject: Collection[int]
) -> tuple[list[Suggestion], list[Suggestion]]:
    """The suggestions that were meant."""
    known = {one.id: one for one in suggestions}
    for suggestion_id in (*accept, *reject):
        if suggestion_id not in known:
            raise UnknownSuggestion(suggestion_id=suggestion_id)
    if both := set(accept) & set(reject):
        raise Undecided(suggestion_id=min(both))
    return [known[number] for number in dict.fromkeys(accept)], [known[number] for number in dict.fromkeys(reject)]
