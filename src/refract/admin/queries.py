"""Finding people and everybody's lists, for administrators."""

from dataclasses import asdict, dataclass

from sqlalchemy import Select, select

from refract.admin.schemas import AdminListOut, AdminListPage
from refract.core.db import ReadSession
from refract.core.page import Cursors, Page, after
from refract.identity.errors import AccountNotFound
from refract.identity.models import User, UserStatus
from refract.identity.people import fold_email
from refract.lists.queries import AllListsFilter, ListRow, page_of_all_lists
from refract.lists.shown import summary


@dataclass(frozen=True, slots=True)
class PeopleQuestion:
    """Which people. Without a status everybody but those whose account is deleted."""

    q: str | None = None
    status: str | None = None
    role: str | None = None
    plan: str | None = None


async def page_of_people(session: ReadSession, cursors: Cursors, asked: PeopleQuestion, *, limit: int, cursor: str | None) -> Page[User]:
    """Newest first; `q` is a part of the email address."""
    question = ["people", asdict(asked)]
    wanted = select(User).order_by(User.created_at.desc(), User.id.desc()).limit(limit + 1)
    wanted = wanted.where(User.status == asked.status if asked.status else User.status != UserStatus.DELETED)
    if asked.q:
        wanted = wanted.where(User.email_folded.contains(fold_email(asked.q), autoescape=True))
    if asked.role:
        wanted = wanted.where(User.role == asked.role)
    if asked.plan:
        wanted = wanted.where(User.plan == asked.plan)
    if cursor:
        wanted = wanted.where(after([User.created_at, User.id], cursors.read(question, cursor), descending=True))
    return cursors.page(question, list(await session.scalars(wanted)), limit, lambda user: (user.created_at, user.id))


async def page_of_lists(
    session: ReadSession, cursors: Cursors, asked: AllListsFilter, base_url: str, *, limit: int, cursor: str | None
) -> AdminListPage:
    """Return everybody's lists, newest first, each with its owner and some of the hosts it leads to."""
    page = await page_of_all_lists(session, cursors, asked, limit=limit, cursor=cursor)
    return AdminListPage(items=[_list_out(row, base_url) for row in page.items], next_cursor=page.next_cursor)


def _list_out(row: ListRow, base_url: str) -> AdminListOut:
    return AdminListOut(
        **summary(row.found, row.entry_count, row.views, base_url).model_dump(),
        owner_id=row.found.owner_id,
        owner_email=row.owner.email if row.owner else None,
        hosts=list(row.hosts),
        removed_at=row.found.deleted_at,
    )


async def person(session: ReadSession, user_id: int) -> User:
    """An account by its id, whatever its status."""
    found = await session.get(User, user_id)
    if found is None:
        raise AccountNotFound
    return found


def by_email(folded: str) -> Select[User]:
    """Every account that claims an address."""
    return select(User).where(User.email_folded == folded)
