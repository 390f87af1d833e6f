"""Permanent deletion of items."""

from collections.abc import Collection

from sqlalchemy import delete, func, select

from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.library.models import Item, ItemStatus, ItemTag
from refract.library.payloads import enqueue_word_purge
from refract.library.service import storage
from refract.library.service.lock import LockedItem
from refract.tags import personal_tags
from refract.tags.service import adjust_usage


async def erase_item(locked: LockedItem) -> None:
    """Erase a discarded item with its page permanently."""
    locked.require_status(Phrase("erased"), ItemStatus.DISCARDED)
    item = locked.item
    locked.session.expunge(item)
    await delete_items(locked.session, locked.rt, item.user_id, [item.id])
    await enqueue_word_purge(locked.session, locked.rt)


async def delete_items(
    session: WriteSession, rt: Runtime, user_id: int, item_ids: Collection[int]
) -> None:
    """Delete items with everything that belongs to them, and adjust the counts of their tags."""
    tag_ids = select(ItemTag.tag_id).where(ItemTag.item_id.in_(item_ids))
    await personal_tags.lock_tags(session, user_id, set(await session.scalars(tag_ids)))
    counts = (
        select(ItemTag.tag_id, func.count())
        .where(ItemTag.item_id.in_(item_ids))
        .group_by(ItemTag.tag_id)
    )
    changes = {tag_id: -number for tag_id, number in (await session.execute(counts)).all()}
    freed = await storage.measure_usage(session, user_id, item_ids)
    await session.execute(
        delete(Item).where(Item.id.in_(item_ids)).execution_options(synchronize_session=False)
    )
    await adjust_usage(session, changes, rt.clock.now())
    await storage.adjust_usage(session, user_id, storage.StorageUsage(-freed.items, -freed.bytes))
