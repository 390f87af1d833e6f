"""Background work: clicks on their way to the database, and jobs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from refract.core.error_throttle import ErrorThrottle
from refract.core.redis import RedisClient, create_redis
from refract.core.runtime import Runtime
from refract.registry import build_worker

if TYPE_CHECKING:
    from refract.clicks.ingest.consumer import StreamConsumer
    from refract.clicks.ingest.ingester import Ingester
    from refract.clicks.ingest.shipper import SpoolShipper

RESTART_INTERVAL = 1.0

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
