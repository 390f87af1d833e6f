"""Tags of links, and each tag's count of live links."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import delete

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.core.ids import IdSource
from refract.links.errors import TooManyTags
from refract.links.models import LinkTag
from refract.links.schemas import MAX_TAGS
from refract.tags import service as tags
from refract.tags.grammar import check_shared, slugify


def validate_tags(names: Sequence[str]) -> list[str]:
    """Return the valid, distinct tags of a request. Raises `InvalidTag` or `TooManyTags`."""
    found: dict[str, str] = {}
    for name in names:
        good = check_shared(name)
        found.setdefault(slugify(good), good)
    if len(found) > MAX_TAGS:
        raise TooManyTags(limit=MAX_TAGS)
    return list(found.values())


async def replace_tags(
    session: WriteSession,
    link_id: int,
    old: Mapping[int, str],
    new: Mapping[int, str],
    now: datetime,
) -> None:
    """Replace the tags of a live link."""
    removed, added = set(old) - set(new), set(new) - set(old)
    if removed:
        await session.execute(
            delete(LinkTag).where(LinkTag.link_id == link_id, LinkTag.tag_id.in_(removed))
        )
    await insert_rows(
        session,
        LinkTag,
        [{"link_id": link_id, "tag_id": tag_id} for tag_id in sorted(added)],
    )
    await tags.adjust_usage(session, dict.fromkeys(removed, -1) | dict.fromkeys(added, 1), now)


async def ensure_tags(
    session: WriteSession, ids: IdSource, names: Collection[str], now: datetime
) -> dict[int, str]:
    """Return the shared tags of these names, created where necessary."""
    found = await tags.ensure_shared_tags(session, ids, names, now)
    return {tag.id: tag.name for tag in found.values()}
