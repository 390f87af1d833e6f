"""Admin API of the queue of abuse reports."""

from typing import Annotated

from fastapi import Query

from refract.admin import moderation
from refract.admin.moderation import ReportAction
from refract.admin.schemas import ReportDecisionIn, ReportDecisionOut
from refract.core.errors import InvalidStateTransition
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import AdminCaller
from refract.identity.errors import LastAdmin
from refract.links.errors import LinkNotFound
from refract.links.safety.errors import InvalidDomain
from refract.lists.errors import ListNotFound
from refract.reports import queries
from refract.reports.errors import ActionNotApplicable, ReportNotFound
from refract.reports.models import ReportStatus
from refract.reports.schemas import ReportGroupPage
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

router = api_router("/admin/reports", "admin")
_REFUSALS = (
    ReportNotFound,
    ActionNotApplicable,
    LinkNotFound,
    ListNotFound,
    LastAdmin,
    InvalidDomain,
    InvalidStateTransition,
)


@router.get("")
async def list_reports(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    status: Annotated[
        ReportStatus, Query(description="Closed ones are kept for 90 days by default.")
    ] = ReportStatus.OPEN,
) -> ReportGroupPage:
    """List reports by target: open ones oldest first, closed ones latest first."""
    async with rt.db.read() as session:
        page = await queries.load_reports_page(
            session,
            CursorCodec(rt.secret),
            rt.settings.public_url,
            status,
            limit=limit,
            cursor=cursor,
        )
        waiting = await queries.count_open_reports(session)
    return ReportGroupPage(items=list(page.items), next_cursor=page.next_cursor, open=waiting)


@router.post("/{report_id}/{action}", responses=problems(*_REFUSALS))
async def decide_reports(
    report_id: Id,
    action: ReportAction,
    actor: AdminCaller,
    rt: Rt,
    body: ReportDecisionIn | None = None,
) -> ReportDecisionOut:
    """Act on the target of a report and close all its reports.

    `dismiss` only closes them, `reopen` opens them again.
    """
    domain = body.domain if body else None
    async with rt.db.write() as session:
        done = await moderation.decide_report(session, rt, actor.user, report_id, action, domain)
    return ReportDecisionOut(
        id=done.report.id,
        kind="link" if done.report.kind == "link" else "list",
        target_id=done.report.target_id,
        action=action.value,
    )
