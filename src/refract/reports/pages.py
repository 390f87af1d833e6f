"""The form that reports abuse. It works without JavaScript and without an account."""

from typing import Annotated

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.identity.authentication import Caller, get_session_token
from refract.identity.dependencies import OptionalCaller
from refract.identity.errors import CsrfFailed
from refract.identity.responses import get_visit_cookie, render_response
from refract.reports.models import ReportReason
from refract.reports.schemas import MAX_DETAILS, MAX_TARGET, ReportCreate
from refract.reports.service import receive_report
from refract.web import csrf
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext
from refract.web.networks import client_network
from refract.web.problems import list_field_errors

router = page_router()
ROUTERS = (router,)
PATH = "/app/report"


@router.get(PATH)
async def report_page(
    request: Request, actor: OptionalCaller, name: Annotated[str, Query(max_length=MAX_TARGET)] = ""
) -> Response:
    """Show the form. It does not reveal whether the name exists."""
    return _render_form(request, actor, {"target": name})


@router.post(PATH)
async def submit_report(
    request: Request,
    actor: OptionalCaller,
    rt: Rt,
    target: Annotated[str, Form(max_length=10_000)] = "",
    reason: Annotated[str, Form(max_length=20)] = "",
    details: Annotated[str, Form(max_length=10_000)] = "",
) -> Response:
    """Receive a report. The response is the same whether or not the target exists."""
    if not await csrf.is_valid(
        rt, request, get_session_token(request, rt) if actor else get_visit_cookie(request)
    ):
        raise CsrfFailed
    values = {"target": target, "reason": reason, "details": details}
    try:
        new = ReportCreate.model_validate(values)
    except ValidationError as exc:
        errors = {error.field: error.message for error in list_field_errors(exc.errors())}
        return _render_form(request, actor, values, errors=errors, status=422)
    async with rt.db.write() as session:
        await receive_report(session, rt, client_network(request, rt), new)
    return RedirectResponse(f"{PATH}/thanks", 303)


@router.get(PATH + "/thanks")
async def thanks_page(request: Request, actor: OptionalCaller) -> Response:
    return render_response(request, actor, "reports/received.html", page_title=gettext("Thank you"))


def _render_form(
    request: Request,
    actor: Caller | None,
    values: dict[str, str],
    *,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    return render_response(
        request,
        actor,
        "reports/form.html",
        status=status,
        page_title=gettext("Report abuse"),
        reasons=list(ReportReason),
        max_details=MAX_DETAILS,
        values=values,
        errors=errors or {},
    )
