"""Deleting lists, and the 24 hours in which that can be undone."""

from datetime import datetime, timedelta

from sqlalchemy import select

from refract.core.db import WriteSession
from refract.core.errors import NothingToUndo
from refract.core.ids import IdSource
from refract.identity import audit
from refract.identity.access import Right
from refract.links import feed
from refract.lists.access import Who
from refract.lists.errors import RemovedByAdministrator
from refract.lists.models import LinkList, ListEvent, ListStatus
from refract.lists.service.drafts import hold, record_change
from refract.lists.service.publishing import lock_family, log_action, news_of
from refract.names import service as names
from refract.names.models import Kind
from refract.names.service import Namespace

UNDO_TIME = timedelta(hours=24)


async def delete_list(session: WriteSession, ids: IdSource, who: Who, list_id: int, now: datetime) -> LinkList:
    """Delete softly. The name is kept for the 24 hours in which this can be undone.

    With the edition that holds the name, the older ones behind it go as well; an administrator who
    takes down somebody's list also takes the draft of the next edition, which would bring the page back.
    """
    found = await delete_editions(session, ids, who, list_id, now)
    if not who.as_admin(found):  # else every edition has its line already
        audit.record(session, "list.deleted", at=now, actor_id=who.user_id, target=found.id)
    return found


async def delete_editions(session: WriteSession, ids: IdSource, who: Who, list_id: int, now: datetime) -> LinkList:
    """Delete a list as `delete_list` does, without a line of its own: for an account that is deleted as a whole."""
    family = await lock_family(session, list_id)
    found = await hold(session, who, list_id)
    by_admin = who.as_admin(found)
    going = [found]
    if await names.hold_names(session, Kind.LIST, found.id, now + UNDO_TIME):
        published = [one for one in family if one.deleted_at is None and one.status == ListStatus.PUBLISHED]
        going = [one for one in family if one.deleted_at is None] if by_admin else published
    for one in going:
        one.deleted_at = now
        one.deleted_by_admin = by_admin
        record_change(session, who, one, "deleted", now)
        log_action(session, ids, one, ListEvent.DELETE, now)
    await session.flush()
    if found.status == ListStatus.PUBLISHED:
        await feed.changed(session, [news_of(one) for one in going])
    return found


async def undo_delete(session: WriteSession, space: Namespace, who: Who, list_id: int) -> LinkList:
    """Bring back a list deleted in the last 24 hours, with all that went with it, under its name.

    Raises SlugTaken if its name was released and is somebody else's now.
    """
    family = await lock_family(session, list_id)
    found, now = await _hold_deleted(session, space, who, list_id), space.clock.now()
    gone = [one for one in family if one.deleted_at == found.deleted_at]
    latest = max((one.edition or 0 for one in family), default=0)
    if found.slug is not None and found.edition == latest and not await names.hold_names(session, Kind.LIST, found.id, None):
        await names.claim_for(session, space, Kind.LIST, found.id, [found.slug])
    for one in gone:
        one.deleted_at, one.deleted_by_admin = None, False
        record_change(session, who, one, "restored", now)
        if one.status == ListStatus.PUBLISHED:
            log_action(session, space.ids, one, ListEvent.PUBLISH, now)
    await session.flush()
    await feed.changed(session, [news_of(one) for one in gone if one.status == ListStatus.PUBLISHED])
    return found


async def release_name(session: WriteSession, space: Namespace, who: Who, list_id: int) -> LinkList:
    """Free the name of a deleted list before its 24 hours are over."""
    found = await _hold_deleted(session, space, who, list_id)
    await names.release(session, Kind.LIST, found.id)
    record_change(session, who, found, "name_released", space.clock.now())
    await session.flush()
    return found


async def _hold_deleted(session: WriteSession, space: Namespace, who: Who, list_id: int) -> LinkList:
    """Lock a list that was deleted in the last 24 hours, for those who may bring it back."""
    locked = select(LinkList).where(LinkList.id == list_id).with_for_update().execution_options(populate_existing=True)
    found = who.demand(await session.scalar(locked), Right.EDIT)
    if found.deleted_at is None or found.deleted_at + UNDO_TIME <= space.clock.now():
        raise NothingToUndo
    if found.deleted_by_admin and not who.is_admin:
        raise RemovedByAdministrator
    return found
