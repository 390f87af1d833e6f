"""Queries of lists. A list is read with two of them, however many entries it has."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Select, and_, func, or_, select
from sqlalchemy.orm import aliased

from refract.clicks.models import ListTotals
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.core.text import fold_text
from refract.identity.access import AccessRight
from refract.identity.models import User
from refract.links.models import Link
from refract.links.safety.models import BlockEpoch
from refract.lists.access import ListCaller
from refract.lists.errors import EntryNotFound
from refract.lists.models import FetchStatus, LinkList, ListEntry, ListStatus
from refract.lists.presentation import EntryRow, ListDetails
from refract.names.grammar import is_possible_name, name_key
from refract.names.models import Name, NameTarget

NOT_DELETED = LinkList.deleted_at.is_(None)
IS_PUBLISHED = and_(NOT_DELETED, LinkList.status == ListStatus.PUBLISHED)
_BATCH_SIZE = 100
_EPOCH = select(func.max(BlockEpoch.epoch)).scalar_subquery()


async def view_list(session: ReadSession, caller: ListCaller, list_id: int) -> ListDetails:
    """Return a list that the caller may view, with its counts but without its entries."""
    row = (
        await session.execute(_select_details().where(LinkList.id == list_id, NOT_DELETED))
    ).one_or_none()
    caller.require(row[0] if row else None, AccessRight.VIEW)
    assert row is not None  # noqa: S101 - demanded
    return ListDetails(row[0], views=row[1] or 0, epoch=row[2] or 0)


def _select_details() -> Select[Any]:
    return select(LinkList, ListTotals.total_clicks, _EPOCH).outerjoin(
        ListTotals, ListTotals.target_id == LinkList.id
    )


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


async def load_lists_page(
    session: ReadSession,
    cursors: CursorCodec,
    caller: ListCaller,
    *,
    limit: int,
    cursor: str | None,
    status: ListStatus | None = None,
    q: str | None = None,
) -> Page[tuple[LinkList, int, int]]:
    """Return the caller's lists, newest first, each with its number of entries and views."""
    question = ["lists", caller.user_id, caller.creator, status, q]
    counted = select(func.count()).where(ListEntry.list_id == LinkList.id).scalar_subquery()
    query = (
        select(LinkList, counted, ListTotals.total_clicks)
        .outerjoin(ListTotals, ListTotals.target_id == LinkList.id)
        .where(caller.filter_own_lists(), NOT_DELETED, *_build_conditions(status, q))
        .order_by(LinkList.id.desc())
        .limit(limit + 1)
    )
    if cursor:
        (before,) = cursors.decode(question, cursor)
        query = query.where(LinkList.id < before)
    rows = [(found, count or 0, views or 0) for found, count, views in await session.execute(query)]
    return cursors.build_page(question, rows, limit, lambda row: (row[0].id,))


def _build_conditions(status: ListStatus | None, q: str | None) -> list[ColumnElement[bool]]:
    words = [
        LinkList.search_text.contains(word, autoescape=True) for word in fold_text(q or "").split()
    ]
    return [*([LinkList.status == status] if status else []), *words]


@dataclass(frozen=True, slots=True)
class AllListsFilter:
    """A filter of all lists. `removed_since` selects those deleted since, not live ones."""

    q: str | None = None
    anonymous: bool | None = None
    status: ListStatus | None = None
    removed_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListRow:
    """A list as administrators see it in a table. `hosts` are some of its destinations."""

    link_list: LinkList
    owner: User | None
    entry_count: int
    views: int
    hosts: tuple[str, ...] = ()


async def load_all_lists_page(
    session: ReadSession,
    cursors: CursorCodec,
    filters: AllListsFilter,
    *,
    limit: int,
    cursor: str | None,
) -> Page[ListRow]:
    """Return lists of all owners, newest first. Takes two queries, however many there are."""
    question = [
        "all lists",
        filters.q,
        filters.anonymous,
        filters.status,
        str(filters.removed_since),
    ]
    counted = select(func.count()).where(ListEntry.list_id == LinkList.id).scalar_subquery()
    query = (
        select(LinkList, User, counted, ListTotals.total_clicks)
        .outerjoin(User, User.id == LinkList.owner_id)
        .outerjoin(ListTotals, ListTotals.target_id == LinkList.id)
        .where(*_build_filter_conditions(filters))
        .order_by(LinkList.id.desc())
        .limit(limit + 1)
    )
    if cursor:
        (before,) = cursors.decode(question, cursor)
        query = query.where(LinkList.id < before)
    rows = [
        ListRow(found, owner, count or 0, views or 0)
        for found, owner, count, views in await session.execute(query)
    ]
    hosts = await list_hosts(session, [row.link_list.id for row in rows[:limit]])
    rows = [replace(row, hosts=hosts.get(row.link_list.id, ())) for row in rows]
    return cursors.build_page(question, rows, limit, lambda row: (row.link_list.id,))


def _build_filter_conditions(filters: AllListsFilter) -> list[ColumnElement[bool]]:
    """Require every word in title, name or description, or in the host of an entry."""
    chosen: list[ColumnElement[bool]] = [
        (
            NOT_DELETED
            if filters.removed_since is None
            else LinkList.deleted_at >= filters.removed_since
        )
    ]
    if filters.anonymous is not None:
        chosen.append(
            LinkList.owner_id.is_(None) if filters.anonymous else LinkList.owner_id.is_not(None)
        )
    if filters.status is not None:
        chosen.append(LinkList.status == filters.status)
    for word in fold_text(filters.q or "").split():
        leads_there = select(ListEntry.id).where(
            ListEntry.list_id == LinkList.id, ListEntry.host.contains(word, autoescape=True)
        )
        chosen.append(
            or_(LinkList.search_text.contains(word, autoescape=True), leads_there.exists())
        )
    return chosen


async def list_hosts(
    session: ReadSession, list_ids: Sequence[int], limit: int = 20
) -> dict[int, tuple[str, ...]]:
    """Return the hosts that each list leads to, in the order of its entries."""
    query = (
        select(ListEntry.list_id, ListEntry.host)
        .where(ListEntry.list_id.in_(list_ids))
        .group_by(ListEntry.list_id, ListEntry.host)
        .order_by(ListEntry.list_id, func.min(ListEntry.position))
    )
    found: dict[int, list[str]] = {}
    for list_id, host in await session.execute(query) if list_ids else ():
        found.setdefault(list_id, []).append(host)
    return {list_id: tuple(hosts[:limit]) for list_id, hosts in found.items()}


async def find_published_list(session: ReadSession, slug: str) -> LinkList | None:
    """Return the published list that holds a name."""
    return await session.scalar(
        select(LinkList).where(LinkList.id == _select_holder_id(slug), IS_PUBLISHED)
    )


async def find_removed_list(session: ReadSession, slug: str) -> LinkList | None:
    """Return the list that was published under a name and deleted last."""
    query = select(LinkList).where(
        LinkList.slug == slug, LinkList.status == ListStatus.PUBLISHED, ~NOT_DELETED
    )
    return await session.scalar(
        query.order_by(LinkList.deleted_at.desc(), LinkList.edition.desc()).limit(1)
    )


async def list_recently_deleted(
    session: ReadSession, caller: ListCaller, since: datetime, limit: int = 20
) -> list[tuple[LinkList, bool]]:
    """Return the caller's recently deleted lists, latest first, and whether each holds a name.

    Editions that were deleted together are returned as one, the latest.
    """
    held = (
        select(Name.key).where(Name.kind == NameTarget.LIST, Name.target_id == LinkList.id).exists()
    )
    query = select(LinkList, held).where(
        caller.filter_own_lists(), LinkList.deleted_at > since, LinkList.deleted_by_admin.is_(False)
    )
    rows = await session.execute(
        query.order_by(LinkList.deleted_at.desc(), LinkList.edition.desc()).limit(limit)
    )
    by_deletion: dict[tuple[int, datetime | None], tuple[LinkList, bool]] = {}
    for found, holds in rows:
        by_deletion.setdefault((found.family_id, found.deleted_at), (found, holds))
    return list(by_deletion.values())


async def list_claimable(session: ReadSession, creator: str | None) -> list[LinkList]:
    """Return the lists that were made with a creator cookie and are not claimed yet."""
    if creator is None:
        return []
    waiting = select(LinkList).where(
        LinkList.creator_hash == creator, LinkList.owner_id.is_(None), NOT_DELETED
    )
    return list(await session.scalars(waiting.order_by(LinkList.id)))


@dataclass(frozen=True, slots=True)
class PublishedEdition:
    """A published edition, with the numbers of its neighbours."""

    details: ListDetails
    latest_edition: int
    previous_edition: int | None
    next_edition: int | None


async def find_published_edition(
    session: ReadSession, target: int | str, edition: int | None = None
) -> PublishedEdition | None:
    """Return the edition that holds a name, or another edition of the same list.

    `target` is the id of the list that holds the name, or the name itself.
    """
    if isinstance(target, str) and not is_possible_name(target):
        return None
    holder = _select_holder_id(target)
    current = aliased(LinkList)
    sibling = aliased(LinkList)
    others = and_(sibling.family_id == LinkList.family_id, sibling.deleted_at.is_(None))
    older = (
        select(func.max(sibling.edition))
        .where(others, sibling.edition < LinkList.edition)
        .scalar_subquery()
    )
    newer = (
        select(func.min(sibling.edition))
        .where(others, sibling.edition > LinkList.edition)
        .scalar_subquery()
    )
    query = (
        _select_details()
        .add_columns(current.edition, older, newer)
        .join(current, current.family_id == LinkList.family_id)
        .where(
            current.id == holder,
            current.deleted_at.is_(None),
            current.status == ListStatus.PUBLISHED,
            IS_PUBLISHED,
        )
        .where(LinkList.id == current.id if edition is None else LinkList.edition == edition)
    )
    row = (await session.execute(query)).one_or_none()
    if row is None:
        return None
    found, views, epoch, latest, before, after = row
    return PublishedEdition(
        ListDetails(found, views=views or 0, epoch=epoch or 0), latest, before, after
    )


def _select_holder_id(target: int | str) -> int | ScalarSelect[int]:
    if isinstance(target, int):
        return target
    return (
        select(Name.target_id)
        .where(Name.key == name_key(target), Name.kind == NameTarget.LIST)
        .scalar_subquery()
    )


async def find_open_edition(session: ReadSession, family_id: int) -> LinkList | None:
    """Return the draft of the next edition, or None."""
    drafts = select(LinkList).where(
        LinkList.family_id == family_id, LinkList.status == ListStatus.DRAFT, NOT_DELETED
    )
    return await session.scalar(drafts.order_by(LinkList.id).limit(1))


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


async def find_abandoned_drafts(session: ReadSession, before: datetime, limit: int) -> list[int]:
    """Return the ids of drafts without an owner that were last changed before a time."""
    query = select(LinkList.id).where(
        LinkList.status == ListStatus.DRAFT,
        LinkList.owner_id.is_(None),
        LinkList.updated_at < before,
    )
    return list(await session.scalars(query.order_by(LinkList.updated_at).limit(limit)))


async def find_long_deleted(session: ReadSession, before: datetime, limit: int) -> list[int]:
    return list(
        await session.scalars(
            select(LinkList.id)
            .where(LinkList.deleted_at < before)
            .order_by(LinkList.deleted_at)
            .limit(limit)
        )
    )
