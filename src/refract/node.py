"""A process in its role: what it answers, and what runs beside the answers. A role loads only what it needs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from refract.analytics.node_metrics import NodeMetrics
from refract.analytics.spool_reader import has_ingester
from refract.core.address import TrustedProxies
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import StoreFull, Unavailable
from refract.core.loop_lag import LoopProbe
from refract.core.redis import Redis, shared_redis
from refract.core.runtime import Runtime
from refract.core.settings import Settings
from refract.identity.usage import KeyUsage
from refract.jobs.metrics import observe
from refract.migrations.state import SchemaCheck
from refract.reports.metrics import observe_reports
from refract.web.connections import STATE, Limits, OpenConnections
from refract.web.headers import Surroundings
from refract.web.problems import NoSuchPage, problem_response
from refract.web.protocol import BoundedProtocol
from refract.web.vitals import Probe, Vitals, is_vital

if TYPE_CHECKING:
    from refract.analytics.consume import Consumer
    from refract.analytics.ingest import Ingester
    from refract.analytics.ship import Shipper
    from refract.core.traces import Traces
    from refract.redirect.engine import Engine
    from refract.redirect.follow import Follow
    from refract.redirect.hooks import ListPage, Surface

RESTART_SECONDS = 1.0


class ClicksNotKept(Unavailable):
    """Clicks cannot be written to the spool: {reason}."""


class UnattendedSpool(Unavailable):
    """Nobody stores the clicks in {path}: set REFRACT_REDIS_URL, or start a worker with the same REFRACT_SPOOL_DIR.

    `REFRACT_SPOOL_READER=elsewhere` lets it be.
    """


def unattended(settings: Settings) -> bool:
    """Whether clicks of this process would lie in its spool for good: it may not store them, and nobody else is there to do so."""
    if settings.role != "redirect" or settings.redis_url is not None or settings.spool_reader == "elsewhere":
        return False
    return not has_ingester(settings.effective_spool_dir)


class Node:
    """What every role has. `all` and `web` extend it by the web app (`refract.app`), and load that while they answer (`opening`)."""

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.engine = _engine(rt) if rt.settings.role not in ("worker", "ingest") else None
        schema = SchemaCheck()
        self.vitals = Vitals(rt, {"schema": schema.probe, **_probes(self.engine)}, self._problems)
        self.vitals.has_mismatch = lambda: schema.problem is not None
        if rt.settings.role in ("all", "web", "worker"):  # web too: when all workers are dead, somebody must say that jobs wait
            self.vitals.before_metrics = self._observe
        rt.metrics.registry.register(NodeMetrics(rt.settings))
        self._traces = _traces(rt) if rt.settings.otlp_url is not None else None
        self.connections = self.engine.traffic if self.engine is not None else _connections(rt)
        self._surroundings = Surroundings(_traced(self.application(), self._traces), rt)
        self._log = structlog.get_logger("refract.node")

    async def _observe(self) -> None:
        """Bring the gauges up to date that nobody counts as they change."""
        await observe(self.rt)
        await observe_reports(self.rt)

    def application(self) -> ASGIApp:
        """What answers what the lane does not."""
        return Bare(self.vitals, follow(self.rt, self.engine) if self.engine is not None else None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._surroundings(scope, receive, send)

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """What speaks HTTP on a connection."""
        if self.engine is None:
            return BoundedProtocol
        from refract.redirect.lane import Lane  # noqa: PLC0415 - a worker has no lane

        return Lane

    @property
    def connection_state(self) -> Mapping[str, Any]:
        """What every connection is handed."""
        return {STATE: self.connections}

    def stopping(self) -> None:
        """No new traffic should come here, and what is open should close with its next answer."""
        self.vitals.stopping = self._surroundings.closing = True
        self.connections.draining = True

    async def loaded(self) -> None:
        """Wait until everything is answered that this role answers."""

    async def complete(self) -> None:
        """Wait until everything runs beside the answers, too."""

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """What runs beside the answers, stopped and written out at the end."""
        async with self.answering(), self.helping():
            yield

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """What must run before the first answer."""
        async with AsyncExitStack() as open_parts:
            await open_parts.enter_async_context(self.beside("loop-probe", LoopProbe(self.rt).run))
            if self.engine is not None:
                await open_parts.enter_async_context(self.engine.running())
            else:
                self.connections.start()
                open_parts.callback(self.connections.stop)
            if self._traces is not None:
                await open_parts.enter_async_context(self.beside("traces", self._traces.run))
            yield

    @asynccontextmanager
    async def helping(self) -> AsyncIterator[None]:
        """What may begin later."""
        async with AsyncExitStack() as open_parts:
            for name, work in self._carriers().items():
                await open_parts.enter_async_context(self.beside(name, work))
            if self.rt.settings.role in ("all", "worker"):
                await open_parts.enter_async_context(_working(self.rt))
            if self.rt.settings.role in ("all", "web"):
                await open_parts.enter_async_context(self._counting_keys())
            yield

    @asynccontextmanager
    async def _counting_keys(self) -> AsyncIterator[None]:
        usage = self.rt.part(KeyUsage)
        try:
            async with self.beside("key-usage", usage.run):
                yield
        finally:
            with contextlib.suppress(Unavailable):  # counts of the last second, on a database that is away
                await usage.flush()

    def _carriers(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Who brings clicks to the database. Workers do so themselves; other roles hand them to Redis, if there is one.

        The role `redirect` never does by itself: its right to the database may be to read it.
        """
        redis, role = self.rt.part(shared_redis), self.rt.settings.role
        if redis is None:
            return {} if role == "redirect" else {"ingest": _ingester(self.rt).run}
        if role in ("redirect", "web"):
            return {"ship": _shipper(self.rt, redis, writes=role == "web").run}
        carriers: dict[str, Callable[[], Awaitable[None]]]
        carriers = {"ingest": _ingester(self.rt).run, "consume": _consumer(self.rt, redis).run}
        if self.engine is None:
            carriers["news"] = _news(self.rt, redis)
        return carriers

    @asynccontextmanager
    async def beside(self, name: str, run: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Run this for as long as the block, and begin it again should it ever fail."""
        task = asyncio.create_task(self._again_and_again(name, run), name=name)
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _again_and_again(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        errors = ErrorThrottle(self._log, "background_failed", part=name)
        while True:
            try:
                await run()
            except Exception as exc:  # noqa: BLE001 - whatever it was, the work must go on
                errors.report(exc)
            await asyncio.sleep(RESTART_SECONDS)

    def _problems(self) -> list[str]:
        found = [StoreFull().message] if self.rt.db.full else []
        spool = self.engine.spool if self.engine is not None else None
        ailment = spool.ailment() if spool is not None else None
        if ailment is not None:
            found.append(ClicksNotKept(reason=ailment).message)
        if spool is not None and spool.not_kept:
            found.append(f"{spool.not_kept} clicks were answered but not kept.")
        if unattended(self.rt.settings):
            found.append(UnattendedSpool(path=self.rt.settings.effective_spool_dir).message)
        return found


class Bare:
    """Redirects and vitals, without the web app."""

    def __init__(self, vitals: Vitals, redirects: ASGIApp | None) -> None:
        self._vitals = vitals
        self._redirects = redirects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_vital(scope["path"]):
            await self._vitals(scope, receive, send)
        elif scope["path"].startswith("/") and scope["path"].split("/", 2)[1] and self._redirects is not None:
            await self._redirects(scope, receive, send)
        else:
            await problem_response(NoSuchPage())(scope, receive, send)


def _connections(rt: Runtime) -> OpenConnections:
    return OpenConnections(
        proxies=TrustedProxies(rt.settings.trusted_proxies),
        limits=Limits(connections_per_network=rt.settings.connections_per_network),
        count_refusal=rt.metrics.refused,
    )


def _engine(rt: Runtime) -> "Engine":
    from refract.redirect.engine import Engine  # noqa: PLC0415 - not in every role

    return Engine(rt)


def follow(rt: Runtime, engine: "Engine") -> "Follow":
    """What answers for names and codes without the web app."""
    from refract.redirect.alone import follow_alone  # noqa: PLC0415 - not in every role

    return follow_alone(rt, engine, lambda surface: list_pages(rt, engine, surface), templates=("redirect", "lists"))


def list_pages(rt: Runtime, engine: "Engine", surface: "Surface") -> "ListPage":
    """What answers for the names of lists, in whatever role follows names."""
    from refract.listed import ListPages  # noqa: PLC0415 - not in every role

    return ListPages(rt, engine, surface)


def _traces(rt: Runtime) -> "Traces":
    from refract.core.traces import make_traces  # noqa: PLC0415 - only with a collector

    return rt.part(make_traces)


def _traced(app: ASGIApp, traces: "Traces | None") -> ASGIApp:
    if traces is None:
        return app
    from refract.web.traced import Traced  # noqa: PLC0415 - only with a collector

    return Traced(app, traces)


def _probes(engine: "Engine | None") -> dict[str, Probe]:
    if engine is None:
        return {}

    async def spool(rt: Runtime) -> None:  # noqa: ARG001 - every probe has this shape
        ailment = engine.spool.ailment()
        if ailment is not None:
            raise ClicksNotKept(reason=ailment)

    return {"spool": spool}


def _ingester(rt: Runtime) -> "Ingester":
    from refract.analytics.ingest import Ingester  # noqa: PLC0415 - not in every role

    return Ingester(rt)


def _shipper(rt: Runtime, redis: Redis, *, writes: bool) -> "Shipper":
    from refract.analytics.ship import Shipper  # noqa: PLC0415 - only with Redis

    return Shipper(rt, redis, instead=_ingester(rt) if writes else None)


def _consumer(rt: Runtime, redis: Redis) -> "Consumer":
    from refract.analytics.consume import Consumer  # noqa: PLC0415 - only with Redis

    return Consumer(rt, redis, _ingester(rt))


def _news(rt: Runtime, redis: Redis) -> Callable[[], Awaitable[None]]:
    """A worker changes links too, and keeps none ready itself."""
    from refract.redirect.news import News  # noqa: PLC0415 - only with Redis
    from refract.redirect.shared import SharedLinks  # noqa: PLC0415

    return News(rt, redis, SharedLinks(redis, rt.clock.now, rt.clock.monotonic)).tell


@asynccontextmanager
async def _working(rt: Runtime) -> AsyncIterator[None]:
    from refract.work import worker  # noqa: PLC0415 - not in every role

    jobs = worker(rt)
    await jobs.start()
    try:
        yield
    finally:
        await jobs.stop()
