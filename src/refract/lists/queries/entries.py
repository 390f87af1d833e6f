"""Entries of lists, in order, and those that wait for a job."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import and_, func, select
from sqlalchemy.orm import aliased

from refract.clicks.models import ListTotals
from refract.core.db.session import ReadSession
from refract.links.models import Link
from refract.lists.errors import EntryNotFound
from refract.lists.models import FetchStatus, LinkList, ListEntry
from refract.lists.presentation import EntryRow
from refract.lists.queries.lists import NOT_DELETED

_BATCH_SIZE = 100


async def list_entries(
    session: ReadSession,
    list_id: int,
    ids: Collection[int] | None = None,
    *,
    position: int | None = None,
) -> list[EntryRow]:
    """Return the entries in order, each with the link it follows and its clicks.

    `ids` and `position` select some of them.
    """
    query = (
        select(ListEntry, Link, ListTotals.total_clicks)
        .outerjoin(Link, Link.id == ListEntry.link_id)
        .outerjoin(ListTotals, ListTotals.target_id == ListEntry.id)
        .where(ListEntry.list_id == list_id)
        .order_by(ListEntry.position)
    )
    if ids is not None:
        query = query.where(ListEntry.id.in_(sorted(ids)))
    if position is not None:
        query = query.where(ListEntry.position == position)
    rows: list[EntryRow] = []
    # In batches: building a thousand objects would block the event loop for too long.
    found = await session.stream(query.execution_options(yield_per=_BATCH_SIZE))
    async for batch in found.partitions():
        rows += [EntryRow(entry, link, clicks or 0) for entry, link, clicks in batch]
        await asyncio.sleep(0)
    return rows


async def count_entries(session: ReadSession, list_id: int) -> int:
    return (
        await session.scalar(
            select(func.count()).select_from(ListEntry).where(ListEntry.list_id == list_id)
        )
        or 0
    )


async def find_entry(session: ReadSession, list_id: int, entry_id: int) -> ListEntry:
    found = await session.scalar(
        select(ListEntry).where(ListEntry.id == entry_id, ListEntry.list_id == list_id)
    )
    if found is None:
        raise EntryNotFound
    return found


async def find_duplicates(session: ReadSession, entries: Sequence[ListEntry]) -> set[int]:
    """Return the ids of those entries whose normalized URL occurs earlier in the same list."""
    if not entries:
        return set()
    other = aliased(ListEntry)
    alike = (
        select(ListEntry.id)
        .join(
            other,
            and_(
                other.list_id == ListEntry.list_id,
                other.normalized_digest == ListEntry.normalized_digest,
                other.position < ListEntry.position,
            ),
        )
        .where(ListEntry.id.in_([entry.id for entry in entries]))
        .distinct()
    )
    return set(await session.scalars(alike))


async def find_pending_entry(session: ReadSession, entry_id: int) -> tuple[str, int | None] | None:
    """Return URL and list owner of an entry that is not fetched yet, unless its list is deleted."""
    query = select(ListEntry.href, LinkList.owner_id).join(
        LinkList, LinkList.id == ListEntry.list_id
    )
    pending = query.where(
        ListEntry.id == entry_id, ListEntry.fetch_status == FetchStatus.PENDING, NOT_DELETED
    )
    row = (await session.execute(pending)).one_or_none()
    return (row.href, row.owner_id) if row is not None else None


async def find_due_entries(
    session: ReadSession, now: datetime, *, clicked_every: timedelta, every: timedelta, limit: int
) -> dict[int, str]:
    """Return id and URL of entries whose check is due.

    Those never checked come first, then those clicked since a check older than `clicked_every`,
    then those last checked before `every`.
    """
    alive = (
        select(ListEntry.id, ListEntry.href)
        .join(LinkList, LinkList.id == ListEntry.list_id)
        .where(NOT_DELETED, ~ListEntry.dangerous)
    )
    followed = alive.join(ListTotals, ListTotals.target_id == ListEntry.id).where(
        ListTotals.last_clicked_at > ListEntry.checked_at,
        ListEntry.checked_at <= now - clicked_every,
    )
    questions = (
        alive.where(ListEntry.checked_at.is_(None)).order_by(ListEntry.id),
        followed.order_by(ListEntry.checked_at),
        alive.where(ListEntry.checked_at <= now - every).order_by(ListEntry.checked_at),
    )
    found: dict[int, str] = {}
    for question in questions:
        if len(found) < limit:
            found |= dict((await session.execute(question.limit(limit - len(found)))).all())
    return found
