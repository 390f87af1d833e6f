"""Queries of the report queue: one row per target, a fixed number of queries per page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.identity.models import User
from refract.links.models import Link, LinkOwner, LinkTeam
from refract.lists.models import LinkList
from refract.lists.queries import list_hosts
from refract.names.enums import NameTarget
from refract.names.grammar import build_short_url
from refract.reports.models import Report, ReportReason, ReportStatus
from refract.reports.schemas import ReportGroupOut
from refract.teams.models import Team

MAX_TEXTS = 5
_TEXTS_PER_PAGE = 500
TARGET_GONE = "gone"


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """The current state of a reported link or list."""

    title: str | None = None
    state: str = TARGET_GONE
    destination: str | None = None
    hosts: tuple[str, ...] = ()
    owner: User | None = None
    team: str | None = None
    """The handle of the team that owns it, if no person does."""


async def count_open_reports(session: ReadSession) -> int:
    """Return the number of open reports."""
    waiting = select(func.count()).select_from(Report).where(Report.status == ReportStatus.OPEN)
    return await session.scalar(waiting) or 0


async def load_reports_page(
    session: ReadSession,
    cursors: CursorCodec,
    public_url: str,
    status: ReportStatus,
    *,
    limit: int,
    cursor: str | None,
) -> Page[ReportGroupOut]:
    """Return reports grouped by target: open ones oldest first, closed ones latest first."""
    question = ["reports", status.value]
    first = func.min(Report.id)
    groups = select(first, func.count(), func.max(Report.id), Report.target_id)
    groups = (
        groups.where(Report.status == status)
        .group_by(Report.kind, Report.target_id)
        .limit(limit + 1)
    )
    is_open = status == ReportStatus.OPEN
    groups = groups.order_by(first if is_open else first.desc())
    if cursor:
        (last,) = cursors.decode(question, cursor)
        groups = groups.having(first > last if is_open else first < last)
    rows = [tuple(row) for row in await session.execute(groups)]
    page = cursors.build_page(question, rows, limit, lambda row: (row[0],))
    groups_out = await _build_groups(session, public_url, status, page.items)
    return Page(groups_out, page.next_cursor)


async def _build_groups(
    session: ReadSession,
    public_url: str,
    status: ReportStatus,
    groups: Sequence[tuple[Any, ...]],
) -> list[ReportGroupOut]:
    if not groups:
        return []
    ids = [number for first, _, last, _ in groups for number in (first, last)]
    ends = {
        report.id: report
        for report in await session.scalars(select(Report).where(Report.id.in_(ids)))
    }
    target_ids = [target_id for *_, target_id in groups]
    reasons, texts = (
        await _count_reasons(session, status, target_ids),
        await _load_texts(session, status, target_ids),
    )
    targets = await load_targets(session, [ends[first] for first, *_ in groups])
    outs = []
    for first, count, last, target_id in groups:
        oldest, latest, target = ends[first], ends[last], targets[target_id]
        outs.append(
            ReportGroupOut(
                id=oldest.id,
                status=status,
                kind="link" if oldest.kind == NameTarget.LINK else "list",
                target_id=target_id,
                name=latest.name,
                domain=latest.domain,
                url=build_short_url(public_url, latest.full_name),
                count=count,
                reasons=reasons[target_id],
                details=texts.get(target_id, []),
                first_at=oldest.created_at,
                last_at=latest.created_at,
                outcome=oldest.outcome,
                title=target.title,
                state=target.state,
                destination=target.destination,
                hosts=list(target.hosts),
                **_describe_owner(target),
            )
        )
    return outs


def _describe_owner(target: ReportTarget) -> dict[str, Any]:
    owner = target.owner
    return {
        "owner_id": owner.id if owner else None,
        "owner_email": owner.email if owner else None,
        "owner_status": owner.status if owner else None,
        "owner_team": target.team,
    }


async def _count_reasons(
    session: ReadSession, status: ReportStatus, target_ids: Sequence[int]
) -> dict[int, dict[ReportReason, int]]:
    counted = select(Report.target_id, Report.reason, func.count())
    counted = counted.where(Report.status == status, Report.target_id.in_(target_ids))
    found: dict[int, dict[ReportReason, int]] = {}
    for target_id, reason, count in await session.execute(
        counted.group_by(Report.target_id, Report.reason)
    ):
        found.setdefault(target_id, {})[ReportReason(reason)] = count
    return found


async def _load_texts(
    session: ReadSession, status: ReportStatus, target_ids: Sequence[int]
) -> dict[int, list[str]]:
    """Return the latest report texts of each target."""
    written = select(Report.target_id, Report.details)
    written = written.where(
        Report.status == status, Report.target_id.in_(target_ids), Report.details.is_not(None)
    )
    found: dict[int, list[str]] = {}
    for target_id, text in await session.execute(
        written.order_by(Report.id.desc()).limit(_TEXTS_PER_PAGE)
    ):
        texts = found.setdefault(target_id, [])
        if text and len(texts) < MAX_TEXTS:
            texts.append(text)
    return found


async def load_targets(session: ReadSession, reports: Sequence[Report]) -> dict[int, ReportTarget]:
    """Return the targets of reports, by id."""
    links = [report.target_id for report in reports if report.kind == NameTarget.LINK]
    lists = [report.target_id for report in reports if report.kind == NameTarget.LIST]
    found = {report.target_id: ReportTarget() for report in reports}
    return found | await _load_links(session, links) | await _load_lists(session, lists)


async def _load_links(session: ReadSession, ids: Sequence[int]) -> dict[int, ReportTarget]:
    if not ids:
        return {}
    owned = (
        select(Link, User, Team.slug)
        .outerjoin(LinkOwner, LinkOwner.primary_link_id == Link.id)
        .outerjoin(User, User.id == LinkOwner.user_id)
        .outerjoin(LinkTeam, LinkTeam.primary_link_id == Link.id)
        .outerjoin(Team, Team.id == LinkTeam.team_id)
        .where(Link.id.in_(ids))
    )
    return {
        link.id: ReportTarget(
            link.title, link.status, link.href, (link.destination_host,), owner, team
        )
        for link, owner, team in await session.execute(owned)
    }


async def _load_lists(session: ReadSession, ids: Sequence[int]) -> dict[int, ReportTarget]:
    if not ids:
        return {}
    owned = (
        select(LinkList, User)
        .outerjoin(User, User.id == LinkList.owner_id)
        .where(LinkList.id.in_(ids))
    )
    hosts = await list_hosts(session, ids)
    return {
        link_list.id: ReportTarget(
            link_list.title,
            "deleted" if link_list.deleted_at else link_list.status,
            None,
            hosts.get(link_list.id, ()),
            owner,
            link_list.team_slug,
        )
        for link_list, owner in await session.execute(owned)
    }
