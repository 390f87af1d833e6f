"""One list: its details, its published and open editions, and lists to clean up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ScalarSelect, Select, and_, func, select
from sqlalchemy.orm import aliased

from refract.clicks.models import ListTotals
from refract.core.db.session import ReadSession
from refract.identity.access import AccessRight
from refract.identity.models import User, choose_name
from refract.links.safety.models import BlockEpoch
from refract.lists.access import ListCaller
from refract.lists.models import LinkList, ListAction, ListEdit, ListStatus
from refract.lists.presentation import ListDetails
from refract.names.enums import NameTarget
from refract.names.grammar import is_possible_name, join_name, name_key
from refract.names.models import Name

NOT_DELETED = LinkList.deleted_at.is_(None)
IS_PUBLISHED = and_(NOT_DELETED, LinkList.status == ListStatus.PUBLISHED)
MAX_ACTIONS = 100
MAX_EDITS = 8
_EPOCH = select(func.max(BlockEpoch.epoch)).scalar_subquery()


async def view_list(session: ReadSession, caller: ListCaller, list_id: int) -> ListDetails:
    """Return a list that the caller may view, with its counts but without its entries."""
    row = (
        await session.execute(_select_details().where(LinkList.id == list_id, NOT_DELETED))
    ).one_or_none()
    await caller.require(session, row[0] if row else None, AccessRight.VIEW)
    assert row is not None  # noqa: S101 - demanded
    return _build_details(row)


async def view_list_with_actions(
    session: ReadSession, caller: ListCaller, list_id: int
) -> tuple[ListDetails, list[tuple[ListAction, int | None]]]:
    """Return a list like `view_list`, and the actions on it and its editions, latest first."""
    edition = aliased(LinkList)
    query = (
        _select_details()
        .add_columns(ListAction, edition.edition)
        .outerjoin(edition, edition.family_id == LinkList.family_id)
        .outerjoin(ListAction, ListAction.list_id == edition.id)
        .where(LinkList.id == list_id, NOT_DELETED)
        .order_by(func.coalesce(ListAction.id, 0).desc())
        .limit(MAX_ACTIONS)
    )
    rows = (await session.execute(query)).all()
    await caller.require(session, rows[0][0] if rows else None, AccessRight.VIEW)
    found = [(action, number) for *_, action, number in rows if action is not None]
    return _build_details(rows[0]), found


def _select_details() -> Select[Any]:
    return (
        select(
            LinkList,
            ListTotals.total_clicks,
            _EPOCH,
            User.nickname,
            User.display_name,
            User.bio,
        )
        .outerjoin(ListTotals, ListTotals.target_id == LinkList.id)
        .outerjoin(User, and_(User.id == LinkList.owner_id, LinkList.shows_author))
    )


def _build_details(row: Sequence[Any]) -> ListDetails:
    found, views, epoch, nickname, display_name, bio = row[:6]
    author = choose_name(nickname, display_name or "") or None
    if found.shows_author and found.team_id is not None:
        author = found.team_name
    return ListDetails(found, views or 0, epoch or 0, author, bio if author else None)


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


@dataclass(frozen=True, slots=True)
class PublishedEdition:
    """A published edition, with the numbers of its neighbours."""

    details: ListDetails
    latest_edition: int
    previous_edition: int | None
    next_edition: int | None


async def find_published_edition(
    session: ReadSession, target: int | str, edition: int | None = None, host: str | None = None
) -> PublishedEdition | None:
    """Return the edition that holds a name, or another edition of the same list.

    `target` is the id of the list that holds the name, or the name itself, on the domain `host`.
    """
    if isinstance(target, str):
        if not is_possible_name(target):
            return None
        target = join_name(host, target)
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
    return PublishedEdition(_build_details(row), *row[-3:])


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


async def find_abandoned_drafts(session: ReadSession, before: datetime, limit: int) -> list[int]:
    """Return the ids of drafts without an owner that were last changed before a time."""
    query = select(LinkList.id).where(
        LinkList.status == ListStatus.DRAFT,
        LinkList.owner_id.is_(None),
        LinkList.team_id.is_(None),
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


async def list_edits(session: ReadSession, list_id: int) -> list[tuple[ListEdit, User]]:
    """Return what members of a team changed in its list last, and who they are, latest first."""
    query = select(ListEdit, User).join(User, User.id == ListEdit.user_id)
    rows = await session.execute(
        query.where(ListEdit.list_id == list_id)
        .order_by(ListEdit.version.desc(), ListEdit.user_id)
        .limit(MAX_EDITS)
    )
    return [(edit, user) for edit, user in rows]


async def list_actions(
    session: ReadSession, caller: ListCaller, list_id: int
) -> list[tuple[ListAction, int | None]]:
    """Return the actions on a list and its editions with their numbers, latest first.

    Its owner sees those of a deleted list too, as long as they are kept.
    """
    found = await caller.require(
        session,
        await session.scalar(select(LinkList).where(LinkList.id == list_id)),
        AccessRight.VIEW,
    )
    query = (
        select(ListAction, LinkList.edition)
        .join(LinkList, LinkList.id == ListAction.list_id)
        .where(LinkList.family_id == found.family_id)
        .order_by(ListAction.created_at.desc(), ListAction.id.desc())
        .limit(MAX_ACTIONS)
    )
    return [(action, edition) for action, edition in await session.execute(query)]
