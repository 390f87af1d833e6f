"""Reporting abuse over HTTP."""

from fastapi import Request

from refract.identity.dependencies import OptionalCaller
from refract.reports import service
from refract.reports.schemas import ReportCreate, ReportReceived
from refract.web.dependencies import Rt, api_router
from refract.web.networks import client_network

router = api_router("/reports", "reports")
ROUTERS = (router,)


@router.post("", status_code=202)
async def report_abuse(
    new: ReportCreate,
    request: Request,
    actor: OptionalCaller,  # noqa: ARG001 - a session needs proof of origin here as everywhere
    rt: Rt,
) -> ReportReceived:
    """Report a link or a list. No account is needed; the answer is the same whether or not it exists."""
    async with rt.db.write() as session:
        await service.receive_report(session, rt, client_network(request, rt), new)
    return ReportReceived()
