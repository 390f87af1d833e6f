"""Roll-back of an import: its items, and the tags that it created and nothing uses."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.library.errors import ImportClosed
from refract.library.imports.importer import stop_running_import
from refract.library.imports.models import ImportRow, ImportStatus, LibraryImport
from refract.library.models import Item, ItemTag
from refract.library.service.erasure import delete_items
from refract.tags import personal_tags
from refract.tags.models import Tag, TagAlias

BATCH_SIZE = 200
_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


async def mark_rolling_back(
    session: WriteSession, library_import: LibraryImport, now: datetime
) -> LibraryImport:
    """Mark an import as rolling back.

    Nothing is added to it any more, and its items are removed in batches.
    """
    stopped = await stop_running_import(session, library_import, now)
    if stopped.status == ImportStatus.ROLLED_BACK:
        raise ImportClosed
    stopped.status = ImportStatus.ROLLING_BACK
    return stopped


async def roll_back_batch(rt: Runtime, import_id: int) -> bool:
    """Remove some items of an import and commit; return whether there may be more."""
    async with rt.db.write() as session:
        row = (
            select(LibraryImport)
            .where(LibraryImport.id == import_id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        library_import = await session.scalar(row)
        if library_import is None or library_import.status != ImportStatus.ROLLING_BACK:
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
            await delete_items(session, rt, library_import.user_id, item_ids)
            return True
        await _delete_tags(session, rt, library_import)
        await session.execute(
            delete(ImportRow).where(ImportRow.import_id == import_id).execution_options(**_NO_SYNC)
        )
        library_import.status, library_import.finished_at = ImportStatus.ROLLED_BACK, rt.clock.now()
        return False


async def _delete_tags(session: WriteSession, rt: Runtime, library_import: LibraryImport) -> None:
    """Remove new tags and delete revived ones again, if no item and no alias uses them.

    A tag that items of another import use is transferred to it, and is removed with the last of
    them.
    """
    made = {int(number) for number in library_import.made_tags["made"]}
    revived = {int(number) for number in library_import.made_tags["revived"]}
    tags = await personal_tags.lock_tags(session, library_import.user_id, made | revived)
    unused = [tag for tag in tags.values() if not tag.usage_count]
    vanishing = [tag.id for tag in unused if tag.id in made]
    meant = select(TagAlias.tag_id).where(
        TagAlias.tag_id.in_(vanishing), TagAlias.created_at < library_import.created_at
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
                session, library_import, tag.id, "made" if tag.id in made else "revived"
            )
    await session.flush()


async def _reassign_tag(
    session: WriteSession, library_import: LibraryImport, tag_id: int, how: str
) -> None:
    bearers = (
        select(func.max(Item.import_id))
        .join(ItemTag, ItemTag.item_id == Item.id)
        .where(ItemTag.tag_id == tag_id)
    )
    heir = await session.scalar(bearers.where(Item.import_id != library_import.id))
    if heir is None:
        return
    row = (
        select(LibraryImport)
        .where(LibraryImport.id == heir)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    other = await session.scalar(row)
    if other is not None and str(tag_id) not in other.made_tags[how]:
        other.made_tags = {**other.made_tags, how: [*other.made_tags[how], str(tag_id)]}
