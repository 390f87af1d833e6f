"""Queries for people and for all lists."""

from dataclasses import asdict, dataclass

from sqlalchemy import Select, select

from refract.admin.schemas import AdminListOut, AdminListPage
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.identity.errors import AccountNotFound
from refract.identity.models import User, UserStatus
from refract.identity.users import fold_email
from refract.lists.presentation import build_summary
from refract.lists.queries import AllListsFilter, ListRow, load_all_lists_page


@dataclass(frozen=True, slots=True)
class PeopleFilter:
    """A filter of people. Without a status, all but deleted accounts."""

    q: str | None = None
    status: str | None = None
    role: str | None = None
    plan: str | None = None


async def load_people_page(
    session: ReadSession,
    cursors: CursorCodec,
    filters: PeopleFilter,
    *,
    limit: int,
    cursor: str | None,
) -> Page[User]:
    """Return a page of people, newest first; `q` is a part of the email address."""
    cursor_scope = ["people", asdict(filters)]
    query = select(User).order_by(User.created_at.desc(), User.id.desc()).limit(limit + 1)
    query = query.where(
        User.status == filters.status if filters.status else User.status != UserStatus.DELETED
    )
    if filters.q:
        query = query.where(User.email_folded.contains(fold_email(filters.q), autoescape=True))
    if filters.role:
        query = query.where(User.role == filters.role)
    if filters.plan:
        query = query.where(User.plan == filters.plan)
    if cursor:
        query = query.where(
            build_after_clause(
                [User.created_at, User.id], cursors.decode(cursor_scope, cursor), descending=True
            )
        )
    return cursors.build_page(
        cursor_scope,
        list(await session.scalars(query)),
        limit,
        lambda user: (user.created_at, user.id),
    )


async def load_admin_lists_page(
    session: ReadSession,
    cursors: CursorCodec,
    filters: AllListsFilter,
    base_url: str,
    *,
    limit: int,
    cursor: str | None,
) -> AdminListPage:
    """Return a page of all lists, newest first, with their owners and some of their hosts."""
    page = await load_all_lists_page(session, cursors, filters, limit=limit, cursor=cursor)
    return AdminListPage(
        items=[_build_list_out(row, base_url) for row in page.items], next_cursor=page.next_cursor
    )


def _build_list_out(row: ListRow, base_url: str) -> AdminListOut:
    return AdminListOut(
        **build_summary(row.link_list, row.entry_count, row.views, base_url).model_dump(),
        owner_id=row.link_list.owner_id,
        owner_email=row.owner.email if row.owner else None,
        hosts=list(row.hosts),
        removed_at=row.link_list.deleted_at,
    )


async def get_user(session: ReadSession, user_id: int) -> User:
    """Return an account by id, also a deleted one. Raises `AccountNotFound`."""
    found = await session.get(User, user_id)
    if found is None:
        raise AccountNotFound
    return found


def select_by_email(folded: str) -> Select[User]:
    """Return a query for the accounts with an email address, verified or not."""
    return select(User).where(User.email_folded == folded)
