"""The administrators' queue of abuse reports."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.admin import moderation
from refract.admin.moderation import ReportAction
from refract.core.errors import RefractError
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import AdminCaller
from refract.identity.responses import render_fragment, render_response
from refract.reports import queries
from refract.reports.models import ReportStatus
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router

router = page_router()
PER_PAGE = 25
PATH = "/app/admin/reports"


@router.get(PATH)
async def reports_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    status: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """What was reported, by target; and what was decided before."""
    chosen = ReportStatus.CLOSED if status == ReportStatus.CLOSED else ReportStatus.OPEN
    async with rt.db.read() as session:
        page = await queries.load_reports_page(
            session, CursorCodec(rt.secret), chosen, limit=PER_PAGE, cursor=cursor
        )
        waiting = await queries.count_open_reports(session)
    kept = {"status": chosen.value} if chosen is ReportStatus.CLOSED else {}
    return render_response(
        request,
        actor,
        "admin/reports.html",
        page_title="Reports",
        here="reports",
        groups=page.items,
        shown=chosen.value,
        reports_waiting=waiting,
        next_url=(
            f"{PATH}?{urlencode({**kept, 'cursor': page.next_cursor})}"
            if page.next_cursor
            else None
        ),
        first_url=f"{PATH}?{urlencode(kept)}".rstrip("?") if cursor else None,
    )


@router.get(PATH + "/waiting")
async def count_waiting(request: Request, actor: AdminCaller, rt: Rt) -> Response:
    """The number beside Admin, for pages that have nothing else to do with it."""
    async with rt.db.read() as session:
        number = await queries.count_open_reports(session)
    return render_fragment(request, actor, "admin/_open_reports.html", number=number)


@router.post(PATH + "/{report_id}/{action}")
async def decide_report(
    report_id: Id,
    action: ReportAction,
    actor: AdminCaller,
    rt: Rt,
    domain: Annotated[str, Form(max_length=255)] = "",
) -> Response:
    """Do one of the things that a report asks for, and offer to take it back."""
    response = RedirectResponse(PATH, 303)
    try:
        async with rt.db.write() as session:
            done = await moderation.decide_report(
                session, rt, actor.user, report_id, action, domain.strip() or None
            )
        flash.add(response, rt, done.message, undo=done.undo)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        flash.add(response, rt, exc.message, kind="wrong")
    return response
