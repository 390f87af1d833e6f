"""What is erased for good: in time, or with its owner."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update

from refract.analytics.models import ListTotals
from refract.core.db import WriteSession
from refract.core.ids import IdSource
from refract.core.rows import slices
from refract.lists import queries
from refract.lists.access import Who
from refract.lists.models import LinkList, ListAction, ListEntry, ListStatus
from refract.lists.service.deletion import delete_editions
from refract.names import service as names
from refract.names.models import Kind, Name

KEPT = timedelta(days=90)
_AT_ONCE = 200


async def erase_old(session: WriteSession, now: datetime, most: int = _AT_ONCE) -> int:
    """Erase a slice of what was deleted 90 days ago, and of drafts without an owner that nobody has touched for so long."""
    before = now - KEPT
    ids = await queries.long_deleted(session, before, most)
    ids += [one for one in await queries.untouched_drafts(session, before, most) if one not in ids]
    await erase_lists(session, ids)
    return len(ids)


async def erase_lists(session: WriteSession, ids: Sequence[int]) -> None:
    """Remove lists with everything in them, and free their names. Events of clicks stay; they are anonymous."""
    for some in slices(list(ids)):
        entries = list(await session.scalars(select(ListEntry.id).where(ListEntry.list_id.in_(some))))
        for targets in slices([*some, *entries]):
            await session.execute(delete(ListTotals).where(ListTotals.target_id.in_(targets)))
        await session.execute(delete(ListEntry).where(ListEntry.list_id.in_(some)))
        await session.execute(delete(Name).where(Name.kind == Kind.LIST, Name.target_id.in_(some)))
        await session.execute(delete(LinkList).where(LinkList.id.in_(some)))


async def forget_actions(session: WriteSession, now: datetime, most: int = 1_000) -> int:
    """Remove a slice of the log older than 90 days; the answer is how many rows went."""
    old = select(ListAction.id).where(ListAction.created_at < now - KEPT).order_by(ListAction.created_at).limit(most)
    ids = list(await session.scalars(old))
    if ids:
        await session.execute(delete(ListAction).where(ListAction.id.in_(ids)))
    return len(ids)


async def forget_slugs(session: WriteSession, ids: Sequence[int]) -> None:
    """The log goes on saying that something was published or deleted, and no longer under which name."""
    for some in slices(list(ids)):
        nameless = update(ListAction).where(ListAction.list_id.in_(some)).values(slug=None)
        await session.execute(nameless.execution_options(synchronize_session=False))


async def erase_person(session: WriteSession, ids: IdSource, user_id: int, now: datetime) -> None:
    """Somebody's account goes: their published lists are deleted, which frees the names, and their drafts are erased."""
    who = Who(user_id)
    mine = select(LinkList.id, LinkList.status).where(LinkList.owner_id == user_id, queries.ALIVE).order_by(LinkList.id)
    lists = [(list_id, status) for list_id, status in await session.execute(mine)]
    for list_id, status in lists:
        if status == ListStatus.PUBLISHED:
            still = await session.scalar(select(LinkList.id).where(LinkList.id == list_id, queries.ALIVE))
            if still is not None:  # else it went with a later edition
                await delete_editions(session, ids, who, list_id, now)
                await names.release(session, Kind.LIST, list_id)
    await erase_lists(session, [list_id for list_id, status in lists if status == ListStatus.DRAFT])
