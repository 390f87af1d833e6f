"""Tags of links, and each tag's count of live links."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import delete, func, select, update

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.ids import IdSource
from refract.identity import audit
from refract.links.enums import LinkState
from refract.links.errors import TooManyTags
from refract.links.models import Link, LinkOwner, LinkTag
from refract.links.schemas import MAX_TAGS
from refract.tags import service as tags
from refract.tags.errors import NothingToMerge, TagNotFound
from refract.tags.grammar import check_shared, slugify
from refract.tags.models import SHARED_SPACE, Tag, TagAlias


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
    if added:
        primary = select(LinkOwner.user_id).where(LinkOwner.primary_link_id == link_id)
        copied = {"link_id": link_id, "owner_id": await session.scalar(primary)}
        await insert_rows(session, LinkTag, [{**copied, "tag_id": tag} for tag in sorted(added)])
    await tags.adjust_usage(session, dict.fromkeys(removed, -1) | dict.fromkeys(added, 1), now)


async def ensure_tags(
    session: WriteSession, ids: IdSource, names: Collection[str], now: datetime
) -> dict[int, str]:
    """Return the shared tags of these names, created where necessary."""
    found = await tags.ensure_shared_tags(session, ids, names, now)
    return {tag.id: tag.name for tag in found.values()}


# Deleting and merging shared tags, which administrators may do. History keeps the names.


async def delete_shared_tag(session: WriteSession, tag_id: int, by: int, now: datetime) -> Tag:
    """Remove a shared tag from all links. Its row stays: the same name revives the same id."""
    tag = (await _lock_shared_tags(session, [tag_id]))[tag_id]
    await session.execute(
        delete(LinkTag).where(LinkTag.tag_id == tag_id).execution_options(synchronize_session=False)
    )
    tag.deleted_at, tag.usage_count = now, 0
    audit.add_entry(session, "tag.deleted", at=now, actor_id=by, target=tag.key)
    await session.flush()
    return tag


async def merge_shared_tags(
    session: WriteSession, target_id: int, source_ids: Collection[int], by: int, now: datetime
) -> Tag:
    """Replace shared tags by another on all links. Their names mean the target from then on."""
    if not source_ids or target_id in source_ids:
        raise NothingToMerge
    locked = await _lock_shared_tags(session, [target_id, *source_ids])
    target, sources = locked[target_id], [locked[source_id] for source_id in sorted(source_ids)]
    await _move_links(session, target_id, sorted(source_ids))
    await session.execute(
        update(TagAlias)
        .where(TagAlias.space == SHARED_SPACE, TagAlias.tag_id.in_(source_ids))
        .values(tag_id=target_id)
        .execution_options(synchronize_session=False)
    )
    aliases = {key: source.name for source in sources for key in (source.key, source.name_key)}
    rows = [
        {"space": SHARED_SPACE, "key": key, "tag_id": target_id, "name": name, "created_at": now}
        for key, name in sorted(aliases.items())
    ]
    await insert_if_absent(session, TagAlias, rows)
    for source in sources:
        source.deleted_at, source.usage_count = now, 0
        audit.add_entry(
            session, "tag.merged", at=now, actor_id=by, target=source.key, detail=target.key
        )
    target.last_used_at = max(
        (tag.last_used_at for tag in locked.values() if tag.last_used_at is not None), default=None
    )
    target.usage_count = await _count_live_links(session, target_id)
    await session.flush()
    return target


async def _lock_shared_tags(session: WriteSession, ids: Collection[int]) -> dict[int, Tag]:
    """Lock living shared tags in the order of their ids. Raises `TagNotFound` if one is missing."""
    query = (
        select(Tag)
        .where(Tag.id.in_(ids), Tag.space == SHARED_SPACE, Tag.deleted_at.is_(None))
        .order_by(Tag.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    found = {tag.id: tag for tag in await session.scalars(query)}
    if len(found) != len(set(ids)):
        raise TagNotFound
    return found


async def _move_links(session: WriteSession, target_id: int, source_ids: Sequence[int]) -> None:
    tagged = select(LinkTag.link_id, LinkTag.owner_id).where(LinkTag.tag_id.in_(source_ids))
    rows = [
        {"link_id": link_id, "tag_id": target_id, "owner_id": owner_id}
        for link_id, owner_id in await session.execute(tagged.distinct().order_by(LinkTag.link_id))
    ]
    await insert_if_absent(session, LinkTag, rows)
    await session.execute(
        delete(LinkTag)
        .where(LinkTag.tag_id.in_(source_ids))
        .execution_options(synchronize_session=False)
    )


async def _count_live_links(session: WriteSession, tag_id: int) -> int:
    query = (
        select(func.count())
        .select_from(LinkTag)
        .join(Link, Link.id == LinkTag.link_id)
        .where(LinkTag.tag_id == tag_id, Link.status != LinkState.DELETED)
    )
    return await session.scalar(query) or 0
