"""Background work: clicks on their way to the database, and jobs.

It runs in a process of its own under role `all`, and otherwise in every process whose role has it.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from refract.core.error_throttle import ErrorThrottle
from refract.core.loop_lag import LoopLagProbe
from refract.core.redis import RedisClient, create_redis
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.jobs.queue import JOBS_TOPIC
from refract.migrations.schema_state import require_matching_schema
from refract.registry import build_worker
from refract.server.child_link import ChildLink, freeze_memory, run_child
from refract.server.peers import MetricsPeers
from refract.server.wakeups import receive_wakeups

if TYPE_CHECKING:
    from refract.clicks.ingest.consumer import StreamConsumer
    from refract.clicks.ingest.ingester import Ingester
    from refract.clicks.ingest.shipper import SpoolShipper

RESTART_INTERVAL = 1.0
NICENESS = 5
"""Where cores are scarce, a serving process gets three times as much of them."""

BackgroundTask = Callable[[], Awaitable[None]]


class BackgroundTasks:
    """The background work of a role, without the process it runs in."""

    def __init__(self, rt: Runtime, *, caches_links: bool) -> None:
        self._rt = rt
        self._caches_links = caches_links

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Store or send clicks and run jobs during the block."""
        async with AsyncExitStack() as exit_stack:
            for name, task in self._build_click_tasks().items():
                await exit_stack.enter_async_context(keep_running(name, task))
            if self._rt.settings.role in ("all", "worker"):
                await exit_stack.enter_async_context(_run_worker(self._rt))
            yield

    def _build_click_tasks(self) -> dict[str, BackgroundTask]:
        """Return the tasks that bring clicks to the database.

        Workers write them; other roles send them to Redis, if configured. The role `redirect` never
        writes: it may have read-only access to the database.
        """
        redis, role = self._rt.singleton(create_redis), self._rt.settings.role
        if redis is None:
            return {} if role == "redirect" else {"ingest": _build_ingester(self._rt).run}
        if role in ("redirect", "web"):
            return {"ship": _build_shipper(self._rt, redis, can_write=role == "web").run}
        tasks: dict[str, BackgroundTask]
        tasks = {
            "ingest": _build_ingester(self._rt).run,
            "consume": _build_consumer(self._rt, redis).run,
        }
        if not self._caches_links:
            tasks["news"] = _build_broadcast(self._rt, redis)
        return tasks


@asynccontextmanager
async def keep_running(name: str, run: BackgroundTask) -> AsyncIterator[None]:
    """Run a task during the block, and restart it if it fails."""
    task = asyncio.create_task(_restart_on_failure(name, run), name=name)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _restart_on_failure(name: str, run: BackgroundTask) -> None:
    log = structlog.get_logger("refract.server.background")
    errors = ErrorThrottle(log, "background_failed", part=name)
    while True:
        try:
            await run()
        except Exception as exc:  # noqa: BLE001 - the task must go on
            errors.report(exc)
        await asyncio.sleep(RESTART_INTERVAL)


def _build_ingester(rt: Runtime) -> "Ingester":
    from refract.clicks.ingest.ingester import Ingester  # noqa: PLC0415 - not in every role

    return Ingester(rt)


def _build_shipper(rt: Runtime, redis: RedisClient, *, can_write: bool) -> "SpoolShipper":
    from refract.clicks.ingest.shipper import SpoolShipper  # noqa: PLC0415 - only with Redis

    return SpoolShipper(rt, redis, fallback=_build_ingester(rt) if can_write else None)


def _build_consumer(rt: Runtime, redis: RedisClient) -> "StreamConsumer":
    from refract.clicks.ingest.consumer import StreamConsumer  # noqa: PLC0415 - only with Redis

    return StreamConsumer(rt, redis, _build_ingester(rt))


def _build_broadcast(rt: Runtime, redis: RedisClient) -> BackgroundTask:
    """Return the broadcaster of a process that changes links but caches none."""
    from refract.redirect.invalidation import ChangeBroadcaster  # noqa: PLC0415 - only with Redis
    from refract.redirect.redis_cache import RedisLinkCache  # noqa: PLC0415

    return ChangeBroadcaster(
        rt, redis, RedisLinkCache(redis, rt.clock.now, rt.clock.monotonic)
    ).broadcast


@asynccontextmanager
async def _run_worker(rt: Runtime) -> AsyncIterator[None]:
    jobs = build_worker(rt)
    await jobs.start()
    try:
        yield
    finally:
        await jobs.stop()


async def run_background_process(settings: Settings, link: ChildLink) -> None:
    """Do the background work of this node until a signal, or until the parent is gone."""
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    # A reload, or a closing terminal, may signal every process: leave it to the parent.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    link.stop_with_parent(stop_requested.set)
    async with open_runtime(settings, patient=True) as rt:
        await require_matching_schema(rt)
        async with (
            keep_running("loop-probe", LoopLagProbe(rt).run),
            receive_wakeups(link.directory, lambda: rt.signals.send(JOBS_TOPIC)),
            BackgroundTasks(rt, caches_links=False).run(),
            MetricsPeers(link.directory, link.name).serve(rt.metrics.render),
        ):
            await link.notify_ready()
            freeze_memory()
            await stop_requested.wait()


def yield_to_serving_processes() -> None:
    """Get a core after processes that serve, and never take one from them when waking up.

    A thread that loses its core in the middle may hold the interpreter that a redirect waits for.
    """
    os.nice(NICENESS)
    with contextlib.suppress(AttributeError, OSError):  # Linux has this policy
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main(arguments: list[str], descriptors: list[int]) -> None:
    """Run the background process of a supervisor, after those that serve in getting a core."""
    yield_to_serving_processes()
    run_child(ChildLink(arguments, descriptors), run_background_process)
