"""Admin pages of the queue of abuse reports."""

from typing import Annotated

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
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
PATH = "/app/admin/reports"


@router.get(PATH)
async def reports_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    status: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Show open or closed reports by target."""
    chosen = ReportStatus.CLOSED if status == ReportStatus.CLOSED else ReportStatus.OPEN
    async with rt.db.read() as session:
        page = await queries.load_reports_page(
            session,
            CursorCodec(rt.secret),
            rt.settings.public_url,
            chosen,
            limit=PER_PAGE,
            cursor=cursor,
        )
        waiting = await queries.count_open_reports(session)
    params = {"status": chosen.value if chosen is ReportStatus.CLOSED else ""}
    return render_response(
        request,
        actor,
        "admin/reports.html",
        page_title=gettext("Reports"),
        here="reports",
        groups=page.items,
        shown=chosen.value,
        reports_waiting=waiting,
        **build_pager(PATH, params, cursor, page.next_cursor),
    )


@router.get(PATH + "/waiting")
async def count_waiting(request: Request, actor: AdminCaller, rt: Rt) -> Response:
    """Return the badge beside Admin, for pages that do not count reports themselves."""
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
    """Apply an action to what was reported, and offer to undo it."""
    response = RedirectResponse(PATH, 303)
    try:
        async with rt.db.write() as session:
            decision = await moderation.decide_report(
                session, rt, actor.user, report_id, action, domain.strip() or None
            )
        flash.add(response, rt, decision.message, undo=decision.undo)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        flash.add(response, rt, translate_error(exc), kind="wrong")
    return response
