"""Questions about tags."""

from collections.abc import Collection

from sqlalchemy import or_, select

from refract.core.db import ReadSession
from refract.core.rows import slices
from refract.tags.models import SHARED_SPACE, Tag


async def tags_by_id(session: ReadSession, ids: Collection[int]) -> dict[int, Tag]:
    found: dict[int, Tag] = {}
    for some in slices(sorted(ids)):
        found |= {tag.id: tag for tag in await session.scalars(select(Tag).where(Tag.id.in_(some)))}
    return found


async def shared_by_key(session: ReadSession, keys: Collection[str]) -> dict[str, Tag]:
    """Shared tags by what they are or were called: a tag's own key goes before another tag's present name."""
    found: dict[str, Tag] = {}
    for some in slices(sorted(keys)):
        question = select(Tag).where(Tag.space == SHARED_SPACE, or_(Tag.key.in_(some), Tag.name_key.in_(some)))
        tags = (await session.scalars(question.order_by(Tag.id))).all()
        found |= {tag.name_key: tag for tag in tags} | {tag.key: tag for tag in tags}
    return {key: found[key] for key in keys if key in found}
