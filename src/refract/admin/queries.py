"""Finding people, for those who run the place."""

from dataclasses import asdict, dataclass

from sqlalchemy import Select, select

from refract.core.db import ReadSession
from refract.core.page import Cursors, Page, after
from refract.identity.errors import AccountNotFound
from refract.identity.models import User, UserStatus
from refract.identity.people import fold_email


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


async def person(session: ReadSession, user_id: int) -> User:
    """An account by its id, whatever its status."""
    found = await session.get(User, user_id)
    if found is None:
        raise AccountNotFound
    return found


def by_email(folded: str) -> Select[User]:
    """Every account that claims an address."""
    return select(User).where(User.email_folded == folded)
