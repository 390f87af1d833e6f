"""Roll-back of an import: its items, and the tags that it created and nothing uses."""

from typing import Any

from sqlalchemy import delete, func, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.imports.models import ImportRow, ImportRun, ImportStatus
from refract.imports.service import lock_import
from refract.library.models import Item, ItemTag
from refract.library.service.erasure import delete_items
from refract.tags import personal_tags
from refract.tags.models import Tag, TagAlias

BATCH_SIZE = 200
_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


async def roll_back_batch(rt: Runtime, import_id: int) -> bool:
    """Remove some items of an import and commit; return whether there may be more."""
    async with rt.db.write() as session:
        import_run = await lock_import(session, import_id)
        if import_run is None or import_run.status != ImportStatus.ROLLING_BACK:
            return False
        item_ids = list(
            await session.scalars(
                select(Item.id)
                .where(Item.import_id == import_id)
                .order_by(Item.id)
                .limit(BATCH_SIZE)
            )
        )
        if item_ids:
            await delete_items(session, rt, import_run.user_id, item_ids)
            return True
        await _delete_tags(session, rt, import_run)
        await session.execute(
            delete(ImportRow).where(ImportRow.import_id == import_id).execution_options(**_NO_SYNC)
        )
        import_run.status, import_run.finished_at = ImportStatus.ROLLED_BACK, rt.clock.now()
        return False


async def _delete_tags(session: WriteSession, rt: Runtime, import_run: ImportRun) -> None:
    """Remove new tags and delete revived ones again, if no item and no alias uses them.

    A tag that items of another import use is transferred to it, and is removed with the last of
    them.
    """
    made = {int(number) for number in import_run.made_tags["made"]}
    revived = {int(number) for number in import_run.made_tags["revived"]}
    tags = await personal_tags.lock_tags(session, import_run.user_id, made | revived)
    unused = [tag for tag in tags.values() if not tag.usage_count]
    vanishing = [tag.id for tag in unused if tag.id in made]
    meant = select(TagAlias.tag_id).where(
        TagAlias.tag_id.in_(vanishing), TagAlias.created_at < import_run.created_at
    )
    kept = set(await session.scalars(meant)) if vanishing else set()
    await session.execute(
        delete(Tag).where(Tag.id.in_(set(vanishing) - kept)).execution_options(**_NO_SYNC)
    )
    for tag in unused:
        if tag.id in revived and tag.deleted_at is None:
            tag.deleted_at = rt.clock.now()
    for tag in tags.values():
        if tag.usage_count:
            await _reassign_tag(
                session, import_run, tag.id, "made" if tag.id in made else "revived"
            )
    await session.flush()


async def _reassign_tag(
    session: WriteSession, import_run: ImportRun, tag_id: int, how: str
) -> None:
    bearers = (
        select(func.max(Item.import_id))
        .join(ItemTag, ItemTag.item_id == Item.id)
        .where(ItemTag.tag_id == tag_id)
    )
    heir = await session.scalar(bearers.where(Item.import_id != import_run.id))
    if heir is None:
        return
    other = await lock_import(session, heir)
    if other is not None and str(tag_id) not in other.made_tags[how]:
        other.made_tags = {**other.made_tags, how: [*other.made_tags[how], str(tag_id)]}
