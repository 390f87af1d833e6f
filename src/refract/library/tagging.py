"""Which tags an item bears. The junction table is the truth, and every change of it moves the usage counts with it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import Table, delete, select

from refract.core.db import ReadSession, WriteSession
from refract.core.rows import insert_or_skip, slices
from refract.library.models import Item, ItemTag
from refract.tags.models import Tag
from refract.tags.service import count_use


async def tags_of(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[Tag]]:
    """The tags of each item, by name."""
    found: dict[int, list[Tag]] = {item_id: [] for item_id in item_ids}
    for some in slices(item_ids):
        borne = select(ItemTag.item_id, Tag).join(Tag, Tag.id == ItemTag.tag_id).where(ItemTag.item_id.in_(some)).order_by(Tag.name_key)
        for item_id, tag in (await session.execute(borne)).all():
            found[item_id].append(tag)
    return found


async def retag(session: WriteSession, item: Item, tag_ids: Collection[int], now: datetime) -> None:
    """Let an item bear exactly these tags."""
    borne = set(await session.scalars(select(ItemTag.tag_id).where(ItemTag.item_id == item.id)))
    wanted = set(tag_ids)
    if gone := borne - wanted:
        lost = delete(ItemTag).where(ItemTag.item_id == item.id, ItemTag.tag_id.in_(gone))
        await session.execute(lost.execution_options(synchronize_session=False))
    rows = [{"item_id": item.id, "tag_id": tag_id, "created_at": now} for tag_id in sorted(wanted - borne)]
    await insert_or_skip(session, cast("Table", ItemTag.__table__), rows)
    await count_use(session, dict.fromkeys(gone, -1) | dict.fromkeys(wanted - borne, 1), now)
