"""Liveness, readiness and metrics of a process, which every role serves."""

import asyncio
import contextlib
import hmac
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Literal, Protocol

import structlog
from pydantic import BaseModel, Field, SkipValidation
from sqlalchemy import text
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from refract import __version__
from refract.core.db.errors import format_driver_error, translate_db_error
from refract.core.errors import RefractError, StoreDamaged, StoreFull, Unauthenticated, Unavailable
from refract.core.ip_addresses import is_loopback
from refract.core.phrases import Phrase
from refract.core.redis import create_redis
from refract.core.runtime import Runtime
from refract.web.hosts import create_accepted_hosts, get_domain, parse_host
from refract.web.problems import MethodNotAllowed, PageNotFound, make_problem_response

HEALTH_PATHS = frozenset({"health", "ready", "metrics"})
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PROBE_TIMEOUT = 2.0
HealthProbe = Callable[[Runtime], Awaitable[None]]


def is_health_path(scope: Scope) -> bool:
    """Return whether a request is for these endpoints. Other domains have `/health` alone."""
    path, paths = scope["path"], {"health"} if get_domain(scope) else HEALTH_PATHS
    return path.startswith("/") and path.split("/", 2)[1].lower() in paths


class Liveness(BaseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"


HealthText = Annotated[str, SkipValidation]
"""A sentence. It is not validated, because validation would copy a `Phrase` to plain text."""


class DependencyHealth(BaseModel):
    """A dependency of the process."""

    status: Literal["ok", "down"]
    latency_ms: float | None = Field(examples=[0.4])
    detail: HealthText | None = None


ReadyStatus = Literal["starting", "ready", "degraded", "stopping"]


class Readiness(BaseModel):
    """Whether the process should get traffic. `degraded` means an operator should look."""

    status: ReadyStatus


class ReadinessDetail(Readiness):
    """The same with reasons, for callers with the metrics token."""

    version: str
    dependencies: dict[str, DependencyHealth]
    problems: list[HealthText] = Field(default_factory=list, examples=[[]])


class MetricsTokenRequired(Unauthenticated):
    """Send the token in REFRACT_METRICS_TOKEN as a Bearer token.

    Without one set, only direct requests from this machine are allowed.
    """


class MetricsCollector(Protocol):
    """Adds the metrics of the other processes of this server."""

    async def collect(self, own: bytes) -> bytes: ...


class HealthEndpoints:
    """The health of a process, and the ASGI application that serves it."""

    def __init__(
        self,
        rt: Runtime,
        probes: Mapping[str, HealthProbe] | None = None,
        problems: Callable[[], list[str]] = list,
    ) -> None:
        self.is_starting = False
        """Set while the web app is loading: redirects work already, everything else waits."""
        self.is_stopping = False
        """Set when the process is about to stop and should get no new traffic."""
        self._rt = rt
        self.peers: MetricsCollector | None = None
        """The other processes of this node, whose metrics are added to ours."""
        self.before_metrics: Callable[[], Awaitable[None]] | None = None
        """Updates gauges that are not counted as they change."""
        self.has_mismatch: Callable[[], bool] = bool
        """Set while the schema doesn't match the code: no role should get traffic then."""
        self._redis = rt.singleton(create_redis)
        self._probes: dict[str, HealthProbe] = {"database": _probe_database, **(probes or {})}
        if self._redis is not None:
            self._probes["redis"] = self._probe_redis
        self._problems = problems
        self._requires_all = (
            rt.settings.role != "redirect"
        )  # cached links work without the database

    def can_see_detail(self, scope: Scope) -> bool:
        """Return whether a request may see details: by the token, or if none is set, locally.

        A local request must also name a host of ours and come through no proxy: a browser on this
        machine may have been sent here under a foreign name (DNS rebinding).
        """
        headers, token = Headers(scope=scope), self._rt.settings.metrics_token
        if token is not None:
            given = headers.get("authorization", "").removeprefix("Bearer ")
            return hmac.compare_digest(given.encode(), token.get_secret_value().encode())
        if self._rt.settings.trusted_proxies or has_proxy_headers(headers):
            return False
        host = headers.get("host", "").encode("latin-1")
        named = is_loopback(parse_host(host) or "") or self._rt.singleton(
            create_accepted_hosts
        ).is_accepted(host)
        return named and is_loopback(scope["client"][0] if scope.get("client") else "")

    async def get_visible_readiness(self, scope: Scope) -> tuple[int, Readiness]:
        """Return the HTTP status, and the state as far as this caller may see it."""
        status, state = await self.check_readiness()
        return status, state if self.can_see_detail(scope) else Readiness(status=state.status)

    async def check_readiness(self) -> tuple[int, ReadinessDetail]:
        """Return the HTTP status, and the state of everything the process depends on."""
        measured = await asyncio.gather(
            *(_run_probe(self._rt, probe) for probe in self._probes.values())
        )
        found = dict(zip(self._probes, measured, strict=True))
        problems = self._problems()
        fine = not problems and all(dependency.status == "ok" for dependency in found.values())
        needed = all(
            dependency.status == "ok" for name, dependency in found.items() if name != "redis"
        )  # the database takes over meanwhile
        refused = (
            self.is_starting
            or self.is_stopping
            or self.has_mismatch()
            or (not needed and self._requires_all)
        )
        return 503 if refused else 200, ReadinessDetail(
            status=self._get_status(fine=fine),
            version=__version__,
            dependencies=found,
            problems=problems,
        )

    def _get_status(self, *, fine: bool) -> ReadyStatus:
        if self.is_stopping:
            return "stopping"
        if self.is_starting:
            return "starting"
        return "ready" if fine else "degraded"

    async def _probe_redis(self, _rt: Runtime) -> None:
        if self._redis is not None:
            await self._redis.execute("PING")

    async def render_metrics(self, scope: Scope) -> bytes:
        """Return the metrics of this node, or raise `MetricsTokenRequired`."""
        if not self.can_see_detail(scope):
            raise MetricsTokenRequired
        if self.before_metrics is not None:
            with contextlib.suppress(Unavailable):  # the last known values are returned then
                await self.before_metrics()
        own = self._rt.metrics.render()
        return own if self.peers is None else await self.peers.collect(own)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._respond(scope)
        except RefractError as exc:
            response = make_problem_response(exc)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed(method=scope["method"][:20])
        match scope["path"]:
            case "/health":
                return _make_json_response(Liveness(), 200)
            case "/ready":
                status, state = await self.get_visible_readiness(scope)
                return _make_json_response(state, status)
            case "/metrics":
                return Response(await self.render_metrics(scope), media_type=METRICS_TYPE)
        raise PageNotFound


def has_proxy_headers(headers: Iterable[str]) -> bool:
    """Return whether a request has a header that only proxies add."""
    return any(
        name in ("forwarded", "via", "x-real-ip") or name.startswith("x-forwarded-")
        for name in headers
    )


def _make_json_response(model: BaseModel, status: int) -> Response:
    return Response(model.model_dump_json(), status, media_type="application/json")


async def _run_probe(rt: Runtime, probe: HealthProbe) -> DependencyHealth:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            await probe(rt)
    except Exception as exc:  # noqa: BLE001 - a broken dependency is reported
        known = exc if isinstance(exc, Unavailable) else translate_db_error(exc)
        if known is None:
            structlog.get_logger("refract.vitals").warning(
                "probe_failed", error=f"{type(exc).__name__}: {format_driver_error(exc)}"
            )
        return DependencyHealth(
            status="down",
            latency_ms=None,
            detail=known.message if known is not None else Phrase("It isn't responding."),
        )
    return DependencyHealth(status="ok", latency_ms=round((time.perf_counter() - began) * 1000, 3))


async def _probe_database(rt: Runtime) -> None:
    async with rt.db.read() as session:
        await session.execute(text("SELECT 1"))
    if rt.db.is_damaged:
        raise StoreDamaged
    if rt.db.is_full:
        raise StoreFull
