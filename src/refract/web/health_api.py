"""Alive, ready, measured: the same answers as `web.vitals` gives, as part of the documented API."""

from fastapi import APIRouter, Request, Response

from refract.web.health import (
    METRICS_TYPE,
    HealthEndpoints,
    Liveness,
    MetricsTokenRequired,
    Readiness,
    ReadinessDetail,
)
from refract.web.problems import problems
from refract.web.routing import PageRoute

router = APIRouter(tags=["operations"], route_class=PageRoute)


def _get_health(request: Request) -> HealthEndpoints:
    vitals: HealthEndpoints = request.app.state.vitals
    return vitals


@router.get("/health")
async def health() -> Liveness:
    """Whether the process is alive. Dependencies are not asked, so a broken one does not get it restarted."""
    return Liveness()


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not ready"}})
async def ready(request: Request, response: Response) -> ReadinessDetail | Readiness:
    """Whether this process should get traffic. Callers with the metrics token also see what it depends on."""
    response.status_code, state = await _get_health(request).get_visible_readiness(request.scope)
    return state


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {}}}, **problems(MetricsTokenRequired)},
    response_class=Response,
)
async def metrics(request: Request) -> Response:
    """Counters and gauges in the format of Prometheus."""
    return Response(
        await _get_health(request).render_metrics(request.scope), media_type=METRICS_TYPE
    )
