"""Deletion and merging of personal tags together with their items, and undo within a day."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Boolean,
    and_,
    delete,
    exists,
    false,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy import cast as sql_cast

from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.ids import IdSource
from refract.library.models import Item, ItemStatus, ItemTag, TagChange, TagChangeItem
from refract.tags import personal_tags
from refract.tags.errors import NoTagChange, NothingToMerge, TagNotFound
from refract.tags.models import Tag, TagAlias

UNDO_HOURS = 24
_NO_SYNC = {"synchronize_session": False}


@dataclass(frozen=True, slots=True)
class ChangedTag:
    """A changed tag, and the id of the record that lists its items."""

    tag: Tag
    change_id: int


async def delete_tag(
    session: WriteSession, ids: IdSource, user_id: int, tag_id: int, now: datetime
) -> ChangedTag:
    """Remove a tag from all items. Its row stays, so that the same name revives the same id."""
    tag = await personal_tags.lock_live_tag(session, user_id, tag_id)
    change = await _record_change(session, ids, tag, "delete", {}, now)
    await _record_items(session, change, tag.id, None)
    await session.execute(
        delete(ItemTag).where(ItemTag.tag_id == tag.id).execution_options(**_NO_SYNC)
    )
    tag.deleted_at, tag.usage_count = now, 0
    await session.flush()
    return ChangedTag(tag, change.id)


async def merge_tags(
    session: WriteSession,
    ids: IdSource,
    user_id: int,
    target_id: int,
    source_ids: Collection[int],
    now: datetime,
) -> ChangedTag:
    """Merge the sources into the target.

    It replaces them on their items, and their names become its aliases.
    """
    sorted_ids = sorted(set(source_ids))
    target, sources = await _lock_merged_tags(session, user_id, target_id, sorted_ids)
    moved = await _repoint_aliases(session, sorted_ids, target_id)
    change = await _record_change(
        session,
        ids,
        target,
        "merge",
        {"sources": [str(number) for number in sorted_ids], "aliases": moved},
        now,
    )
    for source in sources:
        await _record_items(session, change, source.id, target_id)
    await _move_items(session, sorted_ids, target_id)
    aliases = [
        {
            "space": user_id,
            "key": source.key,
            "tag_id": target_id,
            "name": source.name,
            "created_at": now,
        }
        for source in sorted(sources, key=lambda source: source.key)
    ]
    await insert_if_absent(session, TagAlias, aliases)
    for source in sources:
        source.deleted_at, source.usage_count = now, 0
    used = [tag.last_used_at for tag in (target, *sources) if tag.last_used_at is not None]
    target.last_used_at = max(used, default=None)
    await session.flush()
    await _recount_usage(session, [target])
    return ChangedTag(target, change.id)


async def _lock_merged_tags(
    session: WriteSession, user_id: int, target_id: int, source_ids: Sequence[int]
) -> tuple[Tag, list[Tag]]:
    if not source_ids or target_id in source_ids:
        raise NothingToMerge
    locked = await personal_tags.lock_tags(session, user_id, [target_id, *source_ids])
    if len(locked) != len(source_ids) + 1 or any(
        tag.deleted_at is not None for tag in locked.values()
    ):
        raise TagNotFound
    return locked[target_id], [locked[number] for number in source_ids]


async def undo_tag_change(
    session: WriteSession, user_id: int, tag_id: int, now: datetime
) -> ChangedTag:
    """Undo the latest merge into a tag, or its deletion.

    Items that lost a tag by it get it back.
    """
    tag = (await personal_tags.lock_tags(session, user_id, [tag_id])).get(tag_id)
    if tag is None:
        raise TagNotFound
    latest = select(TagChange).where(
        TagChange.tag_id == tag_id, TagChange.undone_at.is_(None), TagChange.user_id == user_id
    )
    change = await session.scalar(latest.order_by(TagChange.id.desc()).limit(1))
    if change is None or change.at < now - timedelta(hours=UNDO_HOURS):
        raise NoTagChange(hours=UNDO_HOURS)
    await (_undo_merge if change.action == "merge" else _undo_delete)(session, tag, change)
    change.undone_at = now
    await session.flush()
    return ChangedTag(tag, change.id)


async def delete_expired_changes(session: WriteSession, now: datetime, most: int = 20) -> int:
    """Delete records that can no longer be undone, oldest first; return how many there were."""
    old = (
        select(TagChange.id)
        .where(TagChange.at < now - timedelta(hours=2 * UNDO_HOURS))
        .order_by(TagChange.id)
        .limit(most)
    )
    numbers = list(await session.scalars(old))
    await session.execute(
        delete(TagChange).where(TagChange.id.in_(numbers)).execution_options(**_NO_SYNC)
    )
    return len(numbers)


async def _undo_delete(session: WriteSession, tag: Tag, change: TagChange) -> None:
    if await _is_alias_of_another(session, tag):
        raise NoTagChange(hours=UNDO_HOURS)
    tag.deleted_at = None
    await session.flush()
    await _restore_tag(session, change, tag.id)
    await _recount_usage(session, [tag])


async def _undo_merge(session: WriteSession, target: Tag, change: TagChange) -> None:
    """Revive the sources and their names.

    The target is removed from items that have it by the merge.
    """
    numbers = [int(number) for number in change.details["sources"]]
    sources = list((await personal_tags.lock_tags(session, target.space, numbers)).values())
    if target.deleted_at is not None or any(
        [await _is_alias_of_another(session, source, target.id) for source in sources]
    ):
        raise NoTagChange(hours=UNDO_HOURS)
    names = delete(TagAlias).where(
        TagAlias.space == target.space, TagAlias.key.in_([source.key for source in sources])
    )
    await session.execute(names.where(TagAlias.tag_id == target.id).execution_options(**_NO_SYNC))
    for key, owner in change.details["aliases"].items():
        back = update(TagAlias).where(
            TagAlias.space == target.space, TagAlias.key == key, TagAlias.tag_id == target.id
        )
        await session.execute(back.values(tag_id=int(owner)).execution_options(**_NO_SYNC))
    for source in sources:
        source.deleted_at = None
    await session.flush()
    await _remove_target(session, target, change)
    for source in sources:
        await _restore_tag(session, change, source.id)
    await _recount_usage(session, [target, *sources])


async def _remove_target(session: WriteSession, target: Tag, change: TagChange) -> None:
    """Remove the target from items that have it by the merge only."""
    gained = and_(TagChangeItem.change_id == change.id, TagChangeItem.had_target.is_(False))
    lost = delete(ItemTag).where(ItemTag.tag_id == target.id, ItemTag.created_at <= change.at)
    if session.dialect == "sqlite":
        lost = lost.where(ItemTag.item_id.in_(select(TagChangeItem.item_id).where(gained)))
    else:  # joined: MariaDB would run a subquery for each row, and read all items of the change
        lost = lost.where(ItemTag.item_id == TagChangeItem.item_id, gained)
    await session.execute(lost.execution_options(**_NO_SYNC))


async def _is_alias_of_another(session: WriteSession, tag: Tag, than: int | None = None) -> bool:
    """Return whether the name of a tag has become an alias of another tag since."""
    means = await session.scalar(
        select(TagAlias.tag_id).where(TagAlias.space == tag.space, TagAlias.key == tag.key)
    )
    return means is not None and means != than


async def _record_change(
    session: WriteSession,
    ids: IdSource,
    tag: Tag,
    action: str,
    details: dict[str, Any],
    now: datetime,
) -> TagChange:
    change = TagChange(
        id=ids.next_id(),
        user_id=tag.space,
        tag_id=tag.id,
        action=action,
        at=now,
        undone_at=None,
        details=details,
    )
    session.add(change)
    await session.flush()
    return change


async def _record_items(
    session: WriteSession, change: TagChange, tag_id: int, target_id: int | None
) -> None:
    """Record which items have a tag, by one statement however many there are."""
    other = ItemTag.__table__.alias("other")
    both = (
        exists().where(other.c.item_id == ItemTag.item_id, other.c.tag_id == target_id)
        if target_id is not None
        else false()
    )
    rows = select(
        literal(change.id),
        ItemTag.tag_id,
        ItemTag.item_id,
        sql_cast(both, Boolean) if session.dialect != "mysql" else both,
        ItemTag.created_at,
    ).where(ItemTag.tag_id == tag_id)
    await session.execute(
        insert(TagChangeItem).from_select(
            ["change_id", "tag_id", "item_id", "had_target", "tagged_at"], rows
        )
    )


async def _move_items(session: WriteSession, source_ids: Sequence[int], target_id: int) -> None:
    other = ItemTag.__table__.alias("other")
    has_target = exists().where(other.c.item_id == ItemTag.item_id, other.c.tag_id == target_id)
    tagged = func.max(ItemTag.created_at)
    rows = (
        select(ItemTag.item_id, literal(target_id), tagged)
        .where(ItemTag.tag_id.in_(source_ids), ~has_target)
        .group_by(ItemTag.item_id)
    )
    await session.execute(insert(ItemTag).from_select(["item_id", "tag_id", "created_at"], rows))
    await session.execute(
        delete(ItemTag).where(ItemTag.tag_id.in_(source_ids)).execution_options(**_NO_SYNC)
    )


async def _repoint_aliases(
    session: WriteSession, source_ids: Sequence[int], target_id: int
) -> dict[str, str]:
    """Let aliases of the sources point to the target; return what they pointed to before."""
    rows = (
        await session.execute(
            select(TagAlias.key, TagAlias.tag_id).where(TagAlias.tag_id.in_(source_ids))
        )
    ).all()
    moved = update(TagAlias).where(TagAlias.tag_id.in_(source_ids)).values(tag_id=target_id)
    await session.execute(moved.execution_options(**_NO_SYNC))
    return {key: str(owner) for key, owner in rows}


async def _restore_tag(session: WriteSession, change: TagChange, tag_id: int) -> None:
    """Put a tag back on the items that lost it and still are in the library."""
    has_tag = exists().where(ItemTag.item_id == TagChangeItem.item_id, ItemTag.tag_id == tag_id)
    rows = (
        select(TagChangeItem.item_id, TagChangeItem.tag_id, TagChangeItem.tagged_at)
        .join(Item, Item.id == TagChangeItem.item_id)
        .where(
            TagChangeItem.change_id == change.id,
            TagChangeItem.tag_id == tag_id,
            Item.status != ItemStatus.DISCARDED,
            ~has_tag,
        )
    )
    await session.execute(insert(ItemTag).from_select(["item_id", "tag_id", "created_at"], rows))


async def _recount_usage(session: WriteSession, tags: Sequence[Tag]) -> None:
    """Set usage counts to those of the junction table. The tags are locked."""
    for tag in tags:
        tag.usage_count = (
            await session.scalar(select(func.count()).where(ItemTag.tag_id == tag.id)) or 0
        )
    await session.flush()
