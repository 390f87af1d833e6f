"""Liveness, readiness and metrics in the documented API, with the responses of `web.health`."""

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
    """Return whether the process is alive. Dependencies aren't checked.

    So a broken dependency doesn't cause a restart.
    """
    return Liveness()


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not ready"}})
async def ready(request: Request, response: Response) -> ReadinessDetail | Readiness:
    """Return whether this process should get traffic. The metrics token shows dependencies."""
    response.status_code, state = await _get_health(request).get_visible_readiness(request.scope)
    return state


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {}}}, **problems(MetricsTokenRequired)},
    response_class=Response,
)
async def metrics(request: Request) -> Response:
    """Return counters and gauges in the Prometheus format."""
    return Response(
        await _get_health(request).render_metrics(request.scope), media_type=METRICS_TYPE
    )
