"""Alive, ready, measured."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import text

from refract import __version__
from refract.core.errors import Unauthenticated, Unavailable
from refract.core.runtime import Runtime
from refract.web.problems import problems
from refract.web.toolkit import Rt

router = APIRouter(tags=["operations"])
_PATIENCE = 2.0
Probe = Callable[[Runtime], Awaitable[None]]


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str = Field(examples=["0.1.0"])


class Dependency(BaseModel):
    """One thing that answering may need."""

    status: Literal["ok", "down"]
    latency_ms: float | None = Field(examples=[0.4])
    detail: str | None = None


class Readiness(BaseModel):
    """Whether traffic should come here."""

    status: Literal["ready", "degraded", "stopping"]
    version: str
    dependencies: dict[str, Dependency]


class MetricsTokenNeeded(Unauthenticated):
    """Metrics are for those who know the token in REFRACT_METRICS_TOKEN."""


@router.get("/health")
async def health() -> Alive:
    """Whether the process is alive. It asks nobody, so a broken dependency does not get it restarted."""
    return Alive(version=__version__)


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not ready"}})
async def ready(request: Request, response: Response, rt: Rt) -> Readiness:
    """Whether this process should get traffic, with the state of everything it depends on."""
    probes: dict[str, Probe] = {"database": _ask_database, **getattr(request.app.state, "probes", {})}
    found = dict(zip(probes, await asyncio.gather(*(_measure(rt, probe) for probe in probes.values())), strict=True))
    stopping = getattr(request.app.state, "stopping", False)
    fine = all(one.status == "ok" for one in found.values())
    response.status_code = 200 if fine and not stopping else 503
    return Readiness(status="stopping" if stopping else "ready" if fine else "degraded", version=__version__, dependencies=found)


async def _measure(rt: Runtime, probe: Probe) -> Dependency:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(_PATIENCE):
            await probe(rt)
    except (Unavailable, OSError) as error:
        return Dependency(status="down", latency_ms=None, detail=error.message if isinstance(error, Unavailable) else "It does not answer.")
    return Dependency(status="ok", latency_ms=round((time.perf_counter() - began) * 1000, 3))


async def _ask_database(rt: Runtime) -> None:
    async with rt.db.read() as session:
        await session.execute(text("SELECT 1"))


async def _metrics_reader(request: Request, rt: Rt) -> None:
    token = rt.settings.metrics_token
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token is not None and not hmac.compare_digest(given.encode(), token.get_secret_value().encode()):
        raise MetricsTokenNeeded


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}, **problems(MetricsTokenNeeded)}, response_class=Response)
async def metrics(rt: Rt, _: Annotated[None, Depends(_metrics_reader)]) -> Response:
    """Counters and gauges in the format of Prometheus."""
    return Response(rt.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
