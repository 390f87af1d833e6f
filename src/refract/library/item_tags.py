"""Tags of items.

The junction table is authoritative, and every change of it adjusts the usage counts.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, select

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.library.models import Item, ItemTag
from refract.tags import personal_tags
from refract.tags.models import Tag, TagAlias
from refract.tags.service import adjust_usage


async def get_item_tags(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[Tag]]:
    """Return the tags of each item, by name."""
    found: dict[int, list[Tag]] = {item_id: [] for item_id in item_ids}
    for batch in iter_batches(item_ids):
        query = (
            select(ItemTag.item_id, Tag)
            .join(Tag, Tag.id == ItemTag.tag_id)
            .where(ItemTag.item_id.in_(batch))
            .order_by(Tag.name_key)
        )
        for item_id, tag in (await session.execute(query)).all():
            found[item_id].append(tag)
    return found


async def set_item_tags(
    session: WriteSession, item: Item, tag_ids: Collection[int], now: datetime
) -> set[int]:
    """Set the tags of an item; return those it has then.

    A tag that was merged meanwhile is replaced by its target, one that was deleted is left out.
    """
    requested, current = set(tag_ids), await _load_tag_ids(session, item)
    if requested == current:
        return current
    requested = await _lock_existing_tags(session, item.user_id, requested, current)
    current = await _load_tag_ids(session, item)  # again, now that they are locked
    if removed := current - requested:
        statement = delete(ItemTag).where(ItemTag.item_id == item.id, ItemTag.tag_id.in_(removed))
        await session.execute(statement.execution_options(synchronize_session=False))
    rows = [
        {"item_id": item.id, "tag_id": tag_id, "created_at": now}
        for tag_id in sorted(requested - current)
    ]
    await insert_if_absent(session, ItemTag, rows)
    await adjust_usage(
        session, dict.fromkeys(removed, -1) | dict.fromkeys(requested - current, 1), now
    )
    return requested


async def _load_tag_ids(session: ReadSession, item: Item) -> set[int]:
    return set(await session.scalars(select(ItemTag.tag_id).where(ItemTag.item_id == item.id)))


async def _lock_existing_tags(
    session: WriteSession, user_id: int, requested: set[int], current: set[int]
) -> set[int]:
    """Lock current and requested tags; return those that still exist."""
    locked = await personal_tags.lock_tags(session, user_id, requested | current)
    deleted_keys = {
        locked[tag_id].key
        for tag_id in requested
        if tag_id in locked and locked[tag_id].deleted_at is not None
    }
    live = {
        tag_id for tag_id in requested if tag_id in locked and locked[tag_id].deleted_at is None
    }
    if not deleted_keys:
        return live
    merged = select(TagAlias.tag_id).where(
        TagAlias.space == user_id, TagAlias.key.in_(deleted_keys)
    )
    targets = await personal_tags.lock_tags(
        session, user_id, set(await session.scalars(merged)) - live
    )
    return live | {tag_id for tag_id, tag in targets.items() if tag.deleted_at is None}
