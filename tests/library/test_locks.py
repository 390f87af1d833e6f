"""Locks: a change of one item and a change of a tag on many items do not wait for each other."""

import pytest
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library import service
from refract.library.models import ItemTag
from refract.library.schemas import ItemPatch
from refract.library.service import tag_changes
from tests.tags import items


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_a_merge_does_not_wait_for_whoever_changes_an_item(rt: Runtime, ada: User) -> None:
    """It would give up after five seconds, or deadlock if the other one needs the tags."""
    async with rt.db.write() as session:
        item = await items.item(session, rt, ada, "k8s", "Other")
        source, target = [await items.tag(session, rt, ada, name) for name in ("k8s", "Kubernetes")]

    async with rt.db.write() as changing:
        held = await service.lock_item(changing, rt, ada.id, item.id)
        async with rt.db.write() as merging:
            await tag_changes.merge_tags(
                merging, rt.ids, ada.id, target.id, [source.id], rt.clock.now()
            )
        await service.edit_item(held, ItemPatch(title="Mine", tag_ids=[target.id]))

    async with rt.db.read() as session:
        assert list(
            await session.scalars(select(ItemTag.tag_id).where(ItemTag.item_id == item.id))
        ) == [target.id]
