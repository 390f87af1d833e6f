"""Alive, ready, measured: the same answers as `web.vitals` gives, as part of the documented API."""

from fastapi import APIRouter, Request, Response

from refract.web.problems import problems
from refract.web.routes import PageRoute
from refract.web.vitals import METRICS_TYPE, Alive, MetricsTokenNeeded, Readiness, ReadinessDetail, Vitals

router = APIRouter(tags=["operations"], route_class=PageRoute)


def _vitals(request: Request) -> Vitals:
    vitals: Vitals = request.app.state.vitals
    return vitals


@router.get("/health")
async def health() -> Alive:
    """Whether the process is alive. Dependencies are not asked, so a broken one does not get it restarted."""
    return Alive()


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not ready"}})
async def ready(request: Request, response: Response) -> ReadinessDetail | Readiness:
    """Whether this process should get traffic. Callers with the metrics token also see what it depends on."""
    response.status_code, state = await _vitals(request).readiness_for(request.scope)
    return state


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}, **problems(MetricsTokenNeeded)}, response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters and gauges in the format of Prometheus."""
    return Response(await _vitals(request).metrics(request.scope), media_type=METRICS_TYPE)
