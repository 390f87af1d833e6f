"""Takes jobs and does them, until it is told to stop."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.listen import listen
from refract.core.runtime import Runtime
from refract.jobs import claims, leases, metrics, queue
from refract.jobs.models import MAINTENANCE
from refract.jobs.payload import Claim
from refract.jobs.registry import Dead, Done, Failed, Lost, Outcome, Registry, Released
from refract.jobs.schedule import Every, Scheduler

RECOVERY_SECONDS = 2.0
"""How often leases that ran out are looked for: a dead worker's job is free again well within lease + 5 s."""

CROWDED_SECONDS = 0.05
"""A pause when others took what was due, so that workers do not spin around each other's locks."""

RESERVED_PLACES = 1
"""Places beside `job_concurrency` that only maintenance may take: it never waits behind people's jobs."""

TROUBLE_SECONDS = 1.0
GRACE_SECONDS = 10.0
CANCEL_SECONDS = 5.0


@dataclass(slots=True, eq=False)
class _Running:
    """A job in our hands. It can be cancelled while its handler works, not while its end is being written down."""

    claim: Claim
    task: asyncio.Task[None] | None = None
    working: bool = False
    ended_by: Released | Lost | None = None

    def end(self, why: Released | Lost) -> None:
        if self.ended_by is None:
            self.ended_by = why
            if self.working and self.task is not None:
                self.task.cancel()


@dataclass(frozen=True, slots=True)
class _FreePlaces:
    """How many jobs can begin: those of people, and all together."""

    for_people: int
    in_all: int


class Worker:
    """One per process. Several may share a database; a job is done by one of them."""

    def __init__(
        self, rt: Runtime, registry: Registry, *, periodic: Sequence[Every] = (), concurrency: int | None = None, name: str | None = None
    ) -> None:
        self.name = name or f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._rt = rt
        self._registry = registry
        self._tries = registry.tries
        self._scheduler = Scheduler(rt, periodic)
        self._concurrency = concurrency or rt.settings.job_concurrency
        self._running: set[_Running] = set()
        self._turn = claims.Turn()
        self._wake = asyncio.Event()
        self._stopping = False
        self._claiming: asyncio.Task[None] | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._open = contextlib.ExitStack()
        self._log = structlog.get_logger("refract.jobs").bind(worker=self.name)
        self._errors: dict[str, ErrorThrottle] = {}

    async def start(self) -> None:
        """Begin: at once with whatever is waiting, and with whatever a dead worker left behind."""
        self._open.enter_context(self._rt.signals.listening(queue.TOPIC, self._wake))
        self._claiming = asyncio.create_task(self._claim_until_stopped(), name="jobs-claim")
        beats = {"renew": self._renew, "recover": self._recover, "schedule": self._schedule}
        self._loops = [asyncio.create_task(self._repeat(name, step), name=f"jobs-{name}") for name, step in beats.items()]
        if self._rt.db.dialect == "postgresql":
            self._loops.append(asyncio.create_task(listen(self._rt.db, queue.TOPIC, self._wake.set), name="jobs-listen"))

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Claim nothing more, let what runs come to its end, and after the grace period give the rest back at once."""
        self._stopping = True
        self._wake.set()
        if self._claiming is not None:
            await asyncio.wait([self._claiming])  # a claim under way is finished, so that its jobs are known and can be given back
        await self._finished(grace)
        for running in self._running:
            running.end(Released())
        await self._finished(CANCEL_SECONDS)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._open.close()

    async def run_due(self) -> int:
        """Do everything that is due, and end: for tests and commands. The answer is how many jobs were taken."""
        taken = 0
        while taking := await self._claim(self._free_places()):
            taken += len(taking)
            for claim in taking:
                self._begin(claim)
            await self._finished(None)
        return taken

    # -- the loops

    async def _claim_until_stopped(self) -> None:
        while not self._stopping:
            self._wake.clear()
            pause = await self._outlive("claim", self._take)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)

    async def _repeat(self, name: str, step: Callable[[], Awaitable[float]]) -> None:
        while True:  # noqa: ASYNC110 - the step itself says how long to pause
            await asyncio.sleep(await self._outlive(name, step))

    async def _outlive(self, name: str, step: Callable[[], Awaitable[float]]) -> float:
        """Take a step, whose answer is the pause until the next. A worker outlives whatever happens to its database."""
        errors = self._errors.setdefault(name, ErrorThrottle(self._log, "jobs_loop_failed", loop=name))
        try:
            pause = await step()
        except Exception as exc:  # noqa: BLE001 - a loop that ended would stop all background work without a word
            errors.report(exc)
            return TROUBLE_SECONDS
        errors.clear()
        return pause

    async def _take(self) -> float:
        """Fill the free places; the answer is how long to wait for more."""
        poll = self._rt.settings.job_poll_seconds
        free = self._free_places()
        if free.in_all <= 0:
            return poll
        async with self._rt.db.read() as session:
            due = await claims.due_in(session, self._rt, list(self._tries), maintenance_only=free.for_people <= 0)
        if due is None or due > 0:
            return poll if due is None else min(poll, due)
        taking = await self._claim(free)
        for claim in taking:
            self._begin(claim)
        return 0 if taking else CROWDED_SECONDS

    async def _renew(self) -> float:
        """Renew at a third of the lease; a handler whose lease is gone, or was not renewed for two thirds, is stopped."""
        lease = self._rt.settings.job_lease_seconds
        held = [running for running in self._running if running.ended_by is None]
        lost: list[Claim] = []
        pause = lease / 3
        try:
            if held:
                async with asyncio.timeout(lease / 3), self._rt.db.write() as session:
                    lost = await leases.renew(session, self._rt, [running.claim for running in held])
        except (Unavailable, TimeoutError) as error:
            self._log.warning("jobs_not_renewed", reason=str(error))
            pause = lease / 12
        at = self._rt.clock.monotonic()
        for running in held:
            if running.claim in lost or at - running.claim.renewed_at >= lease * 2 / 3:
                running.end(Lost())
        return pause

    async def _recover(self) -> float:
        for kind, dead in await leases.recover(self._rt):
            metrics.count(self._rt, kind, "dead" if dead else "expired")
            self._log.warning("job_lease_expired", kind=kind, dead=dead)
        return RECOVERY_SECONDS

    async def _schedule(self) -> float:
        remaining = await self._scheduler.tick()
        poll = self._rt.settings.job_poll_seconds
        return poll if remaining is None else min(poll, max(0.01, remaining))

    # -- one job

    def _free_places(self) -> "_FreePlaces":
        for_people = self._concurrency - sum(running.claim.share != MAINTENANCE for running in self._running)
        return _FreePlaces(for_people, self._concurrency + RESERVED_PLACES - len(self._running))

    async def _claim(self, free: "_FreePlaces") -> list[Claim]:
        """Take maintenance first, into any place, then people's jobs into theirs."""
        async with self._rt.db.write() as session:
            taken = await claims.claim_maintenance(session, self._rt, self.name, self._tries, free.in_all)
            left = min(free.for_people, free.in_all - len(taken))
            if left > 0:
                taken += await claims.claim(session, self._rt, self.name, self._tries, left, self._turn)
            return taken

    def _begin(self, claim: Claim) -> None:
        running = _Running(claim)
        self._running.add(running)
        running.task = asyncio.create_task(self._work(running), name=f"job-{claim.kind}-{claim.job_id}")

    async def _work(self, running: _Running) -> None:
        claim = running.claim
        try:
            with bound_contextvars(job=str(claim.job_id), kind=claim.kind, attempt=claim.attempt):
                outcome = await self._perform(running)
                if not claim.finished and not await self._settle(claim, outcome):
                    outcome = Lost()
                metrics.count(self._rt, claim.kind, type(outcome).__name__.lower())
                if isinstance(outcome, Lost):
                    self._log.warning("job_lease_lost")
        finally:
            self._running.discard(running)
            self._wake.set()

    async def _perform(self, running: _Running) -> Outcome:
        claim = running.claim
        handling = self._registry[claim.kind]
        try:
            if running.ended_by is not None:
                return running.ended_by  # before it began
            running.working = True
            payload = handling.read(claim)
            async with asyncio.timeout(handling.budget):
                with _traced(self._rt, claim.kind):
                    await handling.run(self._rt, payload)
        except asyncio.CancelledError:
            if running.ended_by is None:  # it was not us: something inside the handler was cancelled
                return handling.judge(TimeoutError("The work was interrupted."), claim.attempt)
            return running.ended_by
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is this job's end, not the worker's
            outcome = handling.judge(error, claim.attempt)
            self._report(outcome, error)
            return outcome
        finally:
            running.working = False
        return Done()

    def _report(self, outcome: Outcome, error: Exception) -> None:
        if isinstance(outcome, Dead):
            self._log.error("job_dead", code=outcome.code, exc_info=error)
        elif isinstance(outcome, Failed):
            self._log.warning("job_failed", code=outcome.code, reason=outcome.message, again_in=outcome.delay)

    async def _settle(self, claim: Claim, outcome: Outcome) -> bool:
        """Write the outcome down; when the database is away, for as long as the lease may still be ours."""
        pause = 0.1
        errors = self._errors.setdefault("settle", ErrorThrottle(self._log, "job_not_settled"))
        while True:
            try:
                async with self._rt.db.write() as session:
                    settled = await leases.settle(session, self._rt, claim, outcome)
                errors.clear()
                return settled
            except Unavailable as exc:
                errors.report(exc)
                if self._rt.clock.monotonic() - claim.renewed_at >= self._rt.settings.job_lease_seconds:
                    return False
            await asyncio.sleep(pause)
            pause = min(2.0, pause * 2)

    async def _finished(self, seconds: float | None) -> None:
        """Wait until nothing runs, but no longer than this."""
        tasks: list[Any] = [running.task for running in self._running if running.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


def _traced(rt: Runtime, kind: str) -> AbstractContextManager[object]:
    if rt.settings.otlp_url is None:
        return nullcontext()
    from refract.core.traces import make_traces  # noqa: PLC0415 - only with a collector

    return rt.part(make_traces).span(f"job {kind}", "consumer")
