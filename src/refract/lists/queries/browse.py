"""Tables of lists: those of a user or browser, and for administrators those of all users."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, or_, select

from refract.clicks.models import ListTotals
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.core.text import fold_text
from refract.identity.models import User
from refract.lists.access import ListCaller
from refract.lists.models import LinkList, ListEntry, ListStatus
from refract.lists.queries.lists import NOT_DELETED
from refract.names.enums import NameTarget
from refract.names.models import Name
from refract.teams.models import Team


async def load_lists_page(  # noqa: PLR0913 - each a filter
    session: ReadSession,
    cursors: CursorCodec,
    caller: ListCaller,
    *,
    limit: int,
    cursor: str | None,
    status: ListStatus | None = None,
    q: str | None = None,
    team: str | None = None,
) -> Page[tuple[LinkList, int, int]]:
    """Return the caller's lists, newest first, each with its number of entries and views.

    `team` is the handle of a team; only its lists are returned then.
    """
    question = ["lists", caller.user_id, caller.creator, status, q, team]
    counted = select(func.count()).where(ListEntry.list_id == LinkList.id).scalar_subquery()
    query = (
        select(LinkList, counted, ListTotals.total_clicks)
        .outerjoin(ListTotals, ListTotals.target_id == LinkList.id)
        .where(caller.filter_own_lists(), NOT_DELETED, *_build_conditions(status, q))
        .order_by(LinkList.id.desc())
        .limit(limit + 1)
    )
    if team is not None:
        slug = select(Team.id).where(Team.slug == team).scalar_subquery()
        query = query.where(LinkList.team_id == slug)
    if cursor:
        (before,) = cursors.decode(question, cursor)
        query = query.where(LinkList.id < before)
    rows = [(found, count or 0, views or 0) for found, count, views in await session.execute(query)]
    return cursors.build_page(question, rows, limit, lambda row: (row[0].id,))


async def count_lists(session: ReadSession, caller: ListCaller, q: str, most: int) -> int:
    """Count the caller's lists that have the words, up to `most`."""
    query = select(LinkList.id).where(
        caller.filter_own_lists(), NOT_DELETED, *_build_conditions(None, q)
    )
    return await session.scalar(select(func.count()).select_from(query.limit(most).subquery())) or 0


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
            and_(LinkList.owner_id.is_(None), LinkList.team_id.is_(None))
            if filters.anonymous
            else or_(LinkList.owner_id.is_not(None), LinkList.team_id.is_not(None))
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


async def list_first_titles(
    session: ReadSession, list_ids: Sequence[int], limit: int = 3
) -> dict[int, list[str]]:
    """Return the titles of each list's first entries, or their hosts."""
    query = (
        select(ListEntry.list_id, ListEntry.title, ListEntry.host)
        .where(ListEntry.list_id.in_(list_ids), ListEntry.position <= limit)
        .order_by(ListEntry.list_id, ListEntry.position)
    )
    found: dict[int, list[str]] = {}
    for list_id, title, host in await session.execute(query) if list_ids else ():
        found.setdefault(list_id, []).append(title or host)
    return found


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
