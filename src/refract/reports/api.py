"""API of abuse reports."""

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
    actor: OptionalCaller,  # noqa: ARG001 - checks the origin of a session
    rt: Rt,
) -> ReportReceived:
    """Report a link or list. No account needed; the response is the same if it doesn't exist."""
    async with rt.db.write() as session:
        await service.receive_report(session, rt, client_network(request, rt), new)
    return ReportReceived()
