"""Deletion of lists, and its undo within 24 hours."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update

from refract.clicks.models import ListTotals
from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.core.errors import NothingToUndo
from refract.core.ids import IdSource
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.links import feed
from refract.lists import queries
from refract.lists.access import ListCaller
from refract.lists.errors import RemovedByAdmin
from refract.lists.models import (
    LinkList,
    ListAction,
    ListEdit,
    ListEntry,
    ListEvent,
    ListStatus,
    RemovedEntry,
)
from refract.lists.service.drafts import lock_list, record_change
from refract.lists.service.publication import build_change, lock_family, log_action
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.models import Name
from refract.names.service import Namespace

UNDO_WINDOW = timedelta(hours=24)


async def delete_list(
    session: WriteSession, ids: IdSource, caller: ListCaller, list_id: int, now: datetime
) -> LinkList:
    """Delete a list softly. Its name is reserved for the 24 hours in which this can be undone.

    With the edition that holds the name, older editions are deleted as well. An administrator who
    deletes another user's list also deletes the draft of the next edition, which would bring the
    page back.
    """
    found = await delete_editions(session, ids, caller, list_id, now)
    if not caller.as_admin(found):  # else every edition is in the log already
        audit.add_entry(session, "list.deleted", at=now, actor_id=caller.user_id, target=found.id)
    return found


async def delete_editions(
    session: WriteSession, ids: IdSource, caller: ListCaller, list_id: int, now: datetime
) -> LinkList:
    """Delete a list as `delete_list` does, without an audit entry: for deleted accounts."""
    family = await lock_family(session, list_id)
    found = await lock_list(session, caller, list_id)
    by_admin = caller.as_admin(found)
    targets = [found]
    if await names.hold_names(session, NameTarget.LIST, found.id, now + UNDO_WINDOW):
        published = [
            sibling
            for sibling in family
            if sibling.deleted_at is None and sibling.status == ListStatus.PUBLISHED
        ]
        targets = (
            [sibling for sibling in family if sibling.deleted_at is None] if by_admin else published
        )
    for sibling in targets:
        sibling.deleted_at = now
        sibling.deleted_by_admin = by_admin
        await record_change(session, caller, sibling, "deleted", now)
        log_action(session, ids, sibling, ListEvent.DELETE, now)
    await session.flush()
    if found.status == ListStatus.PUBLISHED:
        await feed.publish_changes(session, [build_change(sibling) for sibling in targets])
    return found


async def undo_delete(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int
) -> LinkList:
    """Restore a list deleted in the last 24 hours, with all that was deleted with it.

    Raises `SlugTaken` if its name was released and belongs to another list or link now.
    """
    family = await lock_family(session, list_id)
    found, now = await _lock_deleted(session, space, caller, list_id), space.clock.now()
    restored = [sibling for sibling in family if sibling.deleted_at == found.deleted_at]
    latest = max((sibling.edition or 0 for sibling in family), default=0)
    if (
        found.slug is not None
        and found.edition == latest
        and not await names.hold_names(session, NameTarget.LIST, found.id, None)
    ):
        await names.claim_names_for(
            session, space, NameTarget.LIST, found.id, [found.slug], found.domain
        )
    for sibling in restored:
        sibling.deleted_at, sibling.deleted_by_admin = None, False
        await record_change(session, caller, sibling, "restored", now)
        if sibling.status == ListStatus.PUBLISHED:
            log_action(session, space.ids, sibling, ListEvent.PUBLISH, now)
    await session.flush()
    await feed.publish_changes(
        session,
        [build_change(sibling) for sibling in restored if sibling.status == ListStatus.PUBLISHED],
    )
    return found


async def release_name(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int
) -> LinkList:
    """Release the name of a deleted list before its 24 hours are over."""
    found = await _lock_deleted(session, space, caller, list_id)
    await names.release_names(session, NameTarget.LIST, found.id)
    await record_change(session, caller, found, "name_released", space.clock.now())
    await session.flush()
    return found


async def _lock_deleted(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int
) -> LinkList:
    """Lock a list deleted in the last 24 hours, if the caller may restore it."""
    locked = (
        select(LinkList)
        .where(LinkList.id == list_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    found = await caller.require(session, await session.scalar(locked), AccessRight.EDIT)
    if found.deleted_at is None or found.deleted_at + UNDO_WINDOW <= space.clock.now():
        raise NothingToUndo
    if found.deleted_by_admin and not caller.is_admin:
        raise RemovedByAdmin
    return found


# Permanent erasure, after the retention period or with the owner's account.

RETENTION = timedelta(days=90)
_BATCH_SIZE = 200


async def purge_old_lists(session: WriteSession, now: datetime, limit: int = _BATCH_SIZE) -> int:
    """Erase a batch of lists deleted, and of ownerless drafts last changed, over 90 days ago."""
    before = now - RETENTION
    ids = await queries.find_long_deleted(session, before, limit)
    ids += [
        draft_id
        for draft_id in await queries.find_abandoned_drafts(session, before, limit)
        if draft_id not in ids
    ]
    await erase_lists(session, ids)
    return len(ids)


async def erase_lists(session: WriteSession, ids: Sequence[int]) -> None:
    """Erase lists and entries, and release the names. Click events are anonymous and stay."""
    for batch in iter_batches(list(ids)):
        entries = list(
            await session.scalars(select(ListEntry.id).where(ListEntry.list_id.in_(batch)))
        )
        for targets in iter_batches([*batch, *entries]):
            await session.execute(delete(ListTotals).where(ListTotals.target_id.in_(targets)))
        await session.execute(delete(ListEntry).where(ListEntry.list_id.in_(batch)))
        for model in (RemovedEntry, ListEdit):
            await session.execute(delete(model).where(model.list_id.in_(batch)))
        await session.execute(
            delete(Name).where(Name.kind == NameTarget.LIST, Name.target_id.in_(batch))
        )
        await session.execute(delete(LinkList).where(LinkList.id.in_(batch)))


async def purge_actions(session: WriteSession, now: datetime, limit: int = 1_000) -> int:
    """Delete a batch of log entries older than 90 days and return their number."""
    old = (
        select(ListAction.id)
        .where(ListAction.created_at < now - RETENTION)
        .order_by(ListAction.created_at)
        .limit(limit)
    )
    ids = list(await session.scalars(old))
    if ids:
        await session.execute(delete(ListAction).where(ListAction.id.in_(ids)))
    return len(ids)


async def clear_slugs(session: WriteSession, ids: Sequence[int]) -> None:
    """Remove the names of lists from the log; it keeps that they were published or deleted."""
    for batch in iter_batches(list(ids)):
        nameless = update(ListAction).where(ListAction.list_id.in_(batch)).values(slug=None)
        await session.execute(nameless.execution_options(synchronize_session=False))


async def erase_user_lists(
    session: WriteSession, ids: IdSource, user_id: int, now: datetime
) -> None:
    """Delete the published lists of a user, which releases their names, and erase the drafts."""
    who = ListCaller(user_id)
    mine = (
        select(LinkList.id, LinkList.status)
        .where(LinkList.owner_id == user_id, queries.NOT_DELETED)
        .order_by(LinkList.id)
    )
    lists = [(list_id, status) for list_id, status in await session.execute(mine)]
    for list_id, status in lists:
        if status == ListStatus.PUBLISHED:
            live_id = await session.scalar(
                select(LinkList.id).where(LinkList.id == list_id, queries.NOT_DELETED)
            )
            if live_id is not None:  # else it was deleted with a later edition
                await delete_editions(session, ids, who, list_id, now)
                await names.release_names(session, NameTarget.LIST, list_id)
    await erase_lists(session, [list_id for list_id, status in lists if status == ListStatus.DRAFT])
