"""Alive, ready, measured: the same answers as `web.vitals` gives, as part of the documented API."""

from fastapi import APIRouter, Request, Response

from refract.web.problems import problems
from refract.web.routes import PageRoute
from refract.web.vitals import METRICS_TYPE, Alive, MetricsTokenNeeded, Readiness, Vitals

router = APIRouter(tags=["operations"], route_class=PageRoute)


def _vitals(request: Request) -> Vitals:
    vitals: Vitals = request.app.state.vitals
    return vitals


@router.get("/health")
async def health(request: Request) -> Alive:
    """Whether the process is alive. It asks nobody, so a broken dependency does not get it restarted."""
    return _vitals(request).alive()


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not ready"}})
async def ready(request: Request, response: Response) -> Readiness:
    """Whether this process should get traffic, with the state of everything it depends on."""
    response.status_code, state = await _vitals(request).readiness()
    return state


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}, **problems(MetricsTokenNeeded)}, response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters and gauges in the format of Prometheus."""
    return Response(await _vitals(request).metrics(request.headers.get("authorization", "")), media_type=METRICS_TYPE)
