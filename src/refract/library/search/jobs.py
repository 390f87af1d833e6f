"""Jobs of the search index: reindexing after changes of tags, in batches, and purging."""

from collections.abc import Callable
from datetime import time
from typing import ClassVar

from sqlalchemy import Select, select, text

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import write_in_slices
from refract.library.models import ItemTag, TagChangeItem
from refract.library.payloads import PurgeDeletedWords
from refract.library.search import index_items
from refract.library.search.models import ItemSearch
from refract.library.service import tag_changes

_BATCH_SIZE = 200
_MERGE_PAGES = 200
"""Pages of the index on SQLite that are rewritten in one transaction."""


class ReindexChange(JobPayload):
    """Reindex all items that a merge, a deletion or their undo affected."""

    kind: ClassVar[str] = "library.reindex_change"
    change_id: Id


class ReindexTag(JobPayload):
    """Reindex all items that have a renamed tag."""

    kind: ClassVar[str] = "library.reindex_tag"
    tag_id: Id


class ReindexItems(JobPayload):
    """Reindex all items. A migration enqueues it when the tokens of a word change."""

    kind: ClassVar[str] = "library.reindex_items"


class DeleteTagChanges(JobPayload):
    """Delete merges and deletions that can no longer be undone."""

    kind: ClassVar[str] = "library.forget_tag_changes"


async def enqueue_reindex_change(
    session: WriteSession, rt: Runtime, user_id: int, change_id: int
) -> None:
    await enqueue(session, rt, ReindexChange(change_id=change_id), share=user_id)


async def enqueue_reindex_tag(
    session: WriteSession, rt: Runtime, user_id: int, tag_id: int
) -> None:
    await enqueue(session, rt, ReindexTag(tag_id=tag_id), share=user_id)


@handles(ReindexChange)
async def reindex_change_items(rt: Runtime, job: ReindexChange) -> None:
    of_change = (
        select(TagChangeItem.item_id).where(TagChangeItem.change_id == job.change_id).distinct()
    )
    await _reindex_in_batches(
        rt,
        lambda last: of_change.where(TagChangeItem.item_id > last).order_by(TagChangeItem.item_id),
    )


@handles(ReindexTag)
async def reindex_tag_items(rt: Runtime, job: ReindexTag) -> None:
    of_tag = select(ItemTag.item_id).where(ItemTag.tag_id == job.tag_id)
    await _reindex_in_batches(
        rt, lambda last: of_tag.where(ItemTag.item_id > last).order_by(ItemTag.item_id)
    )


@handles(ReindexItems)
async def reindex_all_items(rt: Runtime, _job: ReindexItems) -> None:
    indexed = select(ItemSearch.item_id)
    await _reindex_in_batches(
        rt, lambda last: indexed.where(ItemSearch.item_id > last).order_by(ItemSearch.item_id)
    )


@handles(DeleteTagChanges)
async def delete_tag_changes(rt: Runtime, _job: DeleteTagChanges) -> None:
    await write_in_slices(
        rt, lambda session: tag_changes.delete_expired_changes(session, rt.clock.now())
    )


@handles(PurgeDeletedWords)
async def purge_deleted_words(rt: Runtime, _job: PurgeDeletedWords) -> None:
    """Merge the indexes so that words of deleted items and links leave the file.

    FTS5 only marks a row as deleted; its words stay until parts of the index happen to be merged.
    So everything is merged into one part, some pages at a time: a negative number starts that, and
    it is done when nothing changes.
    """
    if rt.settings.dialect != "sqlite":
        return
    for index in ("item_search_fts", "link_search_fts"):
        await _merge_index(rt, index)


async def _merge_index(rt: Runtime, index: str) -> None:
    pages, changes = -_MERGE_PAGES, text("SELECT total_changes()")
    columns = f"{index} ({index}, rank)"
    merge = text(f"INSERT INTO {columns} VALUES ('merge', :pages)")  # noqa: S608 - fixed

    async def merge_pages(session: WriteSession) -> bool:
        nonlocal pages
        before = await session.scalar(changes) or 0
        await session.execute(merge, {"pages": pages})
        pages = _MERGE_PAGES
        return (await session.scalar(changes) or 0) - before >= 2

    await write_in_slices(rt, merge_pages)


async def _reindex_in_batches(rt: Runtime, items_after: Callable[[int], Select[int]]) -> None:
    """Reindex in batches, each in a transaction of its own, so that locks are short."""
    last = 0

    async def reindex_batch(session: WriteSession) -> int:
        nonlocal last
        item_ids = list(await session.scalars(items_after(last).limit(_BATCH_SIZE)))
        if item_ids:
            await index_items(session, item_ids)
            last = item_ids[-1]
        return len(item_ids)

    await write_in_slices(rt, reindex_batch)


HANDLERS = (
    reindex_change_items,
    reindex_tag_items,
    reindex_all_items,
    delete_tag_changes,
    purge_deleted_words,
)
PERIODIC = (PeriodicJob(DeleteTagChanges(), daily=time(3, 15)),)
