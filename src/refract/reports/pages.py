"""The form that reports abuse. It works without script and without an account."""

from typing import Annotated

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.identity.actors import MaybeActor
from refract.identity.errors import OriginUnproven
from refract.identity.rendering import respond, visit_cookie
from refract.identity.visitors import Actor, session_token
from refract.reports.models import ReportReason
from refract.reports.schemas import MAX_DETAILS, MAX_TARGET, ReportCreate
from refract.reports.service import receive_report
from refract.web import csrf
from refract.web.networks import client_network
from refract.web.problems import field_errors
from refract.web.toolkit import Rt, page_router

router = page_router()
ROUTERS = (router,)
PATH = "/app/report"


@router.get(PATH)
async def report_page(request: Request, actor: MaybeActor, name: Annotated[str, Query(max_length=MAX_TARGET)] = "") -> Response:
    """Ask what is wrong. Whether there is anything under the name is not told."""
    return _form(request, actor, {"target": name})


@router.post(PATH)
async def report(
    request: Request,
    actor: MaybeActor,
    rt: Rt,
    target: Annotated[str, Form(max_length=10_000)] = "",
    reason: Annotated[str, Form(max_length=20)] = "",
    details: Annotated[str, Form(max_length=10_000)] = "",
) -> Response:
    """Take the report, and thank for it whatever became of it."""
    if not await csrf.proven(rt, request, session_token(request, rt) if actor else visit_cookie(request)):
        raise OriginUnproven
    values = {"target": target, "reason": reason, "details": details}
    try:
        new = ReportCreate.model_validate(values)
    except ValidationError as wrong:
        errors = {one.field: one.message for one in field_errors(wrong.errors())}
        return _form(request, actor, values, errors=errors, status=422)
    async with rt.db.write() as session:
        await receive_report(session, rt, client_network(request, rt), new)
    return RedirectResponse(f"{PATH}/thanks", 303)


@router.get(PATH + "/thanks")
async def thanks_page(request: Request, actor: MaybeActor) -> Response:
    return respond(request, actor, "reports/received.html", page_title="Thank you")


def _form(
    request: Request,
    actor: Actor | None,
    values: dict[str, str],
    *,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    return respond(
        request,
        actor,
        "reports/form.html",
        status=status,
        page_title="Report abuse",
        reasons=list(ReportReason),
        max_details=MAX_DETAILS,
        values=values,
        errors=errors or {},
    )
