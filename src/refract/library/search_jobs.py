"""Words of items that follow a change of their tags, a slice at a time, and what may be forgotten."""

from collections.abc import Callable
from datetime import time
from typing import ClassVar

from sqlalchemy import Select, select, text

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.jobs.models import MAINTENANCE
from refract.jobs.payload import Payload
from refract.jobs.queue import enqueue
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.library import vocabulary
from refract.library.models import ItemTag, TagChangeItem
from refract.library.search import reindex

BREATH_SECONDS = 0.01
_SLICE = 200
_PAGES = 200
"""Of the index on SQLite that are written anew in one transaction."""


class ReindexChange(Payload):
    """Take in the words of all items that a merge, a deletion or their undoing was about."""

    kind: ClassVar[str] = "library.reindex_change"
    change_id: Id


class ReindexTag(Payload):
    """Take in the words of all items that bear a tag, which has another name now."""

    kind: ClassVar[str] = "library.reindex_tag"
    tag_id: Id


class ForgetTagChanges(Payload):
    """Remove merges and deletions that can no longer be undone."""

    kind: ClassVar[str] = "library.forget_tag_changes"


class ForgetWords(Payload):
    """Let the index on SQLite forget the words of items that are gone."""

    kind: ClassVar[str] = "library.forget_words"


async def reindex_change(session: WriteSession, rt: Runtime, user_id: int, change_id: int) -> None:
    await enqueue(session, rt, ReindexChange(change_id=change_id), share=user_id)


async def reindex_tag(session: WriteSession, rt: Runtime, user_id: int, tag_id: int) -> None:
    await enqueue(session, rt, ReindexTag(tag_id=tag_id), share=user_id)


async def forget_words_later(session: WriteSession, rt: Runtime) -> None:
    """For whoever has removed items and wants no word of them left. Elsewhere the database itself sees to it."""
    if session.dialect == "sqlite":
        await enqueue(session, rt, ForgetWords(), dedup=ForgetWords.kind, share=MAINTENANCE)


@handles(ReindexChange)
async def reindex_changed(rt: Runtime, job: ReindexChange) -> None:
    of_change = select(TagChangeItem.item_id).where(TagChangeItem.change_id == job.change_id).distinct()
    await _in_slices(rt, lambda last: of_change.where(TagChangeItem.item_id > last).order_by(TagChangeItem.item_id))


@handles(ReindexTag)
async def reindex_tagged(rt: Runtime, job: ReindexTag) -> None:
    of_tag = select(ItemTag.item_id).where(ItemTag.tag_id == job.tag_id)
    await _in_slices(rt, lambda last: of_tag.where(ItemTag.item_id > last).order_by(ItemTag.item_id))


@handles(ForgetTagChanges)
async def forget_tag_changes(rt: Runtime, _job: ForgetTagChanges) -> None:
    while True:
        async with rt.db.write() as session:
            if not await vocabulary.forget_changes(session, rt.clock.now()):
                return
        await rt.clock.sleep(BREATH_SECONDS)


@handles(ForgetWords)
async def forget_words(rt: Runtime, _job: ForgetWords) -> None:
    """FTS5 only notes that a row is gone; its words stay in the file until parts of the index are merged, which happens by chance.

    So everything is merged into one part, some pages at a time: a negative number begins that, and it is done when nothing changes.
    """
    if rt.settings.dialect != "sqlite":
        return
    pages, changes = -_PAGES, text("SELECT total_changes()")
    while True:
        async with rt.db.write() as session:
            before = await session.scalar(changes) or 0
            await session.execute(text("INSERT INTO item_search_fts (item_search_fts, rank) VALUES ('merge', :pages)"), {"pages": pages})
            if (await session.scalar(changes) or 0) - before < 2:
                return
        pages = _PAGES
        await rt.clock.sleep(BREATH_SECONDS)


async def _in_slices(rt: Runtime, items_after: Callable[[int], Select[int]]) -> None:
    """Each slice is a transaction of its own, so that nobody waits long for it."""
    last = 0
    while True:
        async with rt.db.write() as session:
            some = list(await session.scalars(items_after(last).limit(_SLICE)))
            if not some:
                return
            await reindex(session, some)
        last = some[-1]
        await rt.clock.sleep(BREATH_SECONDS)


HANDLERS = (reindex_changed, reindex_tagged, forget_tag_changes, forget_words)
PERIODIC = (Every(ForgetTagChanges(), daily=time(3, 15)),)
