"""Queries for people, for all lists and for the count of clicks."""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Select, select

from refract.admin.schemas import AdminListOut, AdminListPage, FiguresOut
from refract.clicks.jobs import VerifyClicks
from refract.clicks.verify import ClickIntake, Reconciliation, count_intake, load_verification
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.identity.errors import AccountNotFound
from refract.identity.models import TEAM_ISSUER, User, UserStatus
from refract.identity.users import fold_email
from refract.jobs.models import JobStatus
from refract.jobs.queries import count_open_jobs
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
    query = query.where(User.issuer != TEAM_ISSUER)
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


@dataclass(frozen=True, slots=True)
class ClickFigures:
    """Clicks received so far, and what the last verification found."""

    intake: ClickIntake
    last: Reconciliation | None
    verified_at: datetime | None
    verifying: bool
    """Whether a verification is waiting or running."""

    @property
    def drift(self) -> list[Phrase]:
        return self.last.drift if self.last is not None else []


async def load_figures(rt: Runtime) -> ClickFigures:
    intake = await count_intake(rt)
    async with rt.db.read() as session:
        last = await load_verification(session)
        open_jobs = await count_open_jobs(session)
    verifying = any(
        kind == VerifyClicks.kind and status != JobStatus.DEAD for status, kind in open_jobs
    )
    found, at = last or (None, None)
    return ClickFigures(intake, found, at, verifying)


def build_figures_out(figures: ClickFigures) -> FiguresOut:
    """Return the figures as the API has them."""
    return FiguresOut(
        accepted=figures.intake.accepted,
        stored=figures.intake.stored,
        pending=figures.intake.pending,
        not_kept=figures.intake.not_kept,
        events=figures.last.events if figures.last else None,
        totals=figures.last.totals if figures.last else None,
        drift=list(figures.drift),
        verified_at=figures.verified_at,
        verifying=figures.verifying,
    )


def select_by_email(folded: str) -> Select[User]:
    """Return a query for the accounts with an email address, verified or not."""
    return select(User).where(User.email_folded == folded)
