"""A server process in its role, and its background tasks. A role loads only what it needs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Receive, Scope, Send

from refract.clicks.spool.reader import has_ingester
from refract.core.errors import StoreFull, Unavailable
from refract.core.loop_lag import LoopLagProbe
from refract.core.memory import release_regularly
from refract.core.phrases import CountPhrase
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.core.tracing import get_traces
from refract.identity.key_usage import KeyUsageTracker
from refract.jobs.metrics import update_job_gauges
from refract.migrations.schema_check import SchemaCheck
from refract.registry import build_list_handler
from refract.reports.metrics import observe_reports
from refract.server.background import BackgroundTasks, keep_running
from refract.server.metrics import NodeMetrics
from refract.web.connections import (
    CONNECTIONS_STATE_KEY,
    PASSING_STATE_KEY,
    ConnectionLimits,
    OpenConnections,
)
from refract.web.health import HealthEndpoints, HealthProbe, is_health_path
from refract.web.hosts import get_domain
from refract.web.middleware import RequestMiddleware
from refract.web.networks import create_trusted_proxies
from refract.web.problems import PageNotFound, make_problem_response
from refract.web.protocol import BoundedHttpProtocol

if TYPE_CHECKING:
    from refract.redirect.asgi import RedirectApp
    from refract.redirect.engine import RedirectEngine
    from refract.redirect.passing import PassingState
    from refract.server.connection_queue import ConnectionSender


class SpoolWriteFailed(Unavailable):
    """Clicks can't be written to the spool: {reason}."""


class SpoolReaderMissing(Unavailable):
    """No process stores the clicks in {path}.

    Set REFRACT_REDIS_URL, start a worker with the same REFRACT_SPOOL_DIR, or set
    REFRACT_SPOOL_READER=elsewhere.
    """


def is_spool_unattended(settings: Settings) -> bool:
    """Return whether clicks of this process would stay in its spool forever.

    It may not store them itself, and no other process stores or ships them.
    """
    if (
        settings.role != "redirect"
        or settings.redis_url is not None
        or settings.spool_reader == "elsewhere"
    ):
        return False
    return not has_ingester(settings.effective_spool_dir)


class ServerNode:
    """The parts that every role has.

    `all` and `web` add the web app (`refract.app`), which is loaded while redirects are answered
    (`lazy`).
    """

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.engine = _build_engine(rt) if rt.settings.role not in ("worker", "ingest") else None
        schema = SchemaCheck()
        self.vitals = HealthEndpoints(
            rt, {"schema": schema.probe, **_build_probes(self.engine)}, self._list_problems
        )
        self.vitals.has_mismatch = lambda: schema.problem is not None
        # Web too: when all workers are dead, the waiting jobs must still be reported.
        if rt.settings.role in ("all", "web", "worker"):
            self.vitals.before_metrics = self._update_gauges
        rt.metrics.registry.register(NodeMetrics(rt.settings))
        self.connections = (
            self.engine.connections if self.engine is not None else _build_connections(rt)
        )
        self._middleware = RequestMiddleware(_wrap_in_spans(self.build_application(), rt), rt)
        self._tasks = BackgroundTasks(rt, caches_links=self.engine is not None)
        self._passing: PassingState | None = None

    async def _update_gauges(self) -> None:
        """Update the gauges that are not updated on every change."""
        await update_job_gauges(self.rt)
        await observe_reports(self.rt)

    def build_application(self) -> ASGIApp:
        """Return the application for requests that the fast lane does not answer."""
        return RedirectOnlyApp(
            self.vitals,
            build_redirect_app(self.rt, self.engine) if self.engine is not None else None,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._middleware(scope, receive, send)

    @property
    def protocol_class(self) -> type[asyncio.Protocol]:
        """Return the HTTP protocol class of connections."""
        if self.engine is None:
            return BoundedHttpProtocol
        from refract.redirect import passing, protocol  # noqa: PLC0415 - a worker has no lane

        return protocol.RedirectProtocol if self._passing is None else passing.ApplicationProtocol

    def pass_redirects_to(self, queue: "ConnectionSender") -> None:
        """Serve connections from the process that redirects, and pass short links back to it."""
        from refract.redirect.passing import PassingState  # noqa: PLC0415 - not in every role

        self._passing = PassingState(queue)

    @property
    def connection_state(self) -> Mapping[str, Any]:
        """Return the state that every connection gets."""
        return {CONNECTIONS_STATE_KEY: self.connections, PASSING_STATE_KEY: self._passing}

    def start_draining(self) -> None:
        """Report as not ready, and close open connections with their next response."""
        self.vitals.is_stopping = self._middleware.is_closing = True
        self.connections.is_draining = True

    async def wait_until_loaded(self) -> None:
        """Wait until this role answers all its requests."""

    async def wait_until_complete(self) -> None:
        """Wait until the background tasks run, too."""

    @asynccontextmanager
    async def run_background(self) -> AsyncIterator[None]:
        """Run all background tasks; stop and flush them at the end."""
        async with self.run_essentials(), self.run_auxiliaries():
            yield

    @asynccontextmanager
    async def run_essentials(self) -> AsyncIterator[None]:
        """Run the tasks that the first response needs."""
        async with AsyncExitStack() as exit_stack:
            await exit_stack.enter_async_context(
                keep_running("loop-probe", LoopLagProbe(self.rt).run)
            )
            if self.engine is not None:
                await exit_stack.enter_async_context(self.engine.run())
            else:
                self.connections.start()
                exit_stack.callback(self.connections.stop)
            yield

    @asynccontextmanager
    async def run_auxiliaries(self) -> AsyncIterator[None]:
        """Run the tasks that may begin later."""
        async with AsyncExitStack() as exit_stack:
            await exit_stack.enter_async_context(self._tasks.run())
            await exit_stack.enter_async_context(keep_running("memory", release_regularly))
            if self.rt.settings.role in ("all", "web"):
                await exit_stack.enter_async_context(self._run_key_usage())
            yield

    @asynccontextmanager
    async def _run_key_usage(self) -> AsyncIterator[None]:
        usage = self.rt.singleton(KeyUsageTracker)
        try:
            async with keep_running("key-usage", usage.run):
                yield
        finally:
            # Counts of the last second, on a database that is unavailable.
            with contextlib.suppress(Unavailable):
                await usage.flush()

    def _list_problems(self) -> list[str]:
        found = [StoreFull().message] if self.rt.db.is_full else []
        spool = self.engine.spool if self.engine is not None else None
        problem = spool.find_health_problem() if spool is not None else None
        if problem is not None:
            found.append(SpoolWriteFailed(reason=problem).message)
        if spool is not None and spool.dropped:
            found.append(
                CountPhrase(
                    "{n} click was lost because it couldn't be written.",
                    "{n} clicks were lost because they couldn't be written.",
                    spool.dropped,
                )
            )
        if is_spool_unattended(self.rt.settings):
            found.append(SpoolReaderMissing(path=self.rt.settings.effective_spool_dir).message)
        return found


class RedirectOnlyApp:
    """Redirects and health endpoints, without the web app."""

    def __init__(self, vitals: HealthEndpoints, redirects: ASGIApp | None) -> None:
        self._vitals = vitals
        self._redirects = redirects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_health_path(scope):
            await self._vitals(scope, receive, send)
        elif (
            scope["path"].startswith("/")
            and (scope["path"].split("/", 2)[1] or get_domain(scope))
            and self._redirects is not None
        ):
            await self._redirects(scope, receive, send)
        else:
            await make_problem_response(PageNotFound())(scope, receive, send)


def _build_connections(rt: Runtime) -> OpenConnections:
    return OpenConnections(
        proxies=rt.singleton(create_trusted_proxies),
        limits=ConnectionLimits(connections_per_network=rt.settings.connections_per_network),
        count_refusal=rt.metrics.count_refusal,
    )


def _build_engine(rt: Runtime) -> "RedirectEngine":
    from refract.redirect.engine import RedirectEngine  # noqa: PLC0415 - not in every role

    return RedirectEngine(rt)


def build_redirect_app(rt: Runtime, engine: "RedirectEngine") -> "RedirectApp":
    """Return the application for names and codes without the web app."""
    from refract.redirect.frontend import build_standalone_app  # noqa: PLC0415 - not in every role

    return build_standalone_app(
        rt,
        engine,
        lambda surface: build_list_handler(rt, engine, surface),
        templates=("redirect", "lists"),
    )


def _wrap_in_spans(app: ASGIApp, rt: Runtime) -> ASGIApp:
    traces = get_traces(rt)
    if traces is None:
        return app
    from refract.web.request_spans import RequestSpans  # noqa: PLC0415 - only with a collector

    return RequestSpans(app, traces)


def _build_probes(engine: "RedirectEngine | None") -> dict[str, HealthProbe]:
    if engine is None:
        return {}

    async def spool(rt: Runtime) -> None:  # noqa: ARG001 - probe signature
        problem = engine.spool.find_health_problem()
        if problem is not None:
            raise SpoolWriteFailed(reason=problem)

    return {"spool": spool}
