"""Takes jobs and does them, until it is told to stop."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from refract.core.db.notifications import listen_for_notifications
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.core.tracing import job_span
from refract.jobs import claims, leases, metrics, queue
from refract.jobs.handlers import (
    HandlerRegistry,
    JobDead,
    JobDone,
    JobFailed,
    JobLost,
    JobOutcome,
    JobReleased,
)
from refract.jobs.models import MAINTENANCE_SHARE
from refract.jobs.payload import JobClaim
from refract.jobs.schedule import JobScheduler, PeriodicJob

RECOVERY_INTERVAL = 2.0
"""How often leases that ran out are looked for: a dead worker's job is free again well within lease + 5 s."""

CONTENTION_PAUSE_SECONDS = 0.05
"""A pause when others took what was due, so that workers do not spin around each other's locks."""

RESERVED_SLOTS = 1
"""Places beside `job_concurrency` that only maintenance may take: it never waits behind people's jobs."""

ERROR_PAUSE_SECONDS = 1.0
STOP_GRACE_SECONDS = 10.0
CANCEL_TIMEOUT = 5.0


@dataclass(slots=True, eq=False)
class _RunningJob:
    """A job in our hands. It can be cancelled while its handler works, not while its end is being written down."""

    claim: JobClaim
    task: asyncio.Task[None] | None = None
    is_working: bool = False
    ended_by: JobReleased | JobLost | None = None

    def end(self, why: JobReleased | JobLost) -> None:
        if self.ended_by is None:
            self.ended_by = why
            if self.is_working and self.task is not None:
                self.task.cancel()


@dataclass(frozen=True, slots=True)
class _FreeSlots:
    """How many jobs can begin: those of people, and all together."""

    for_users: int
    total: int


class JobWorker:
    """One per process. Several may share a database; a job is done by one of them."""

    def __init__(
        self,
        rt: Runtime,
        registry: HandlerRegistry,
        *,
        periodic: Sequence[PeriodicJob] = (),
        concurrency: int | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._rt = rt
        self._registry = registry
        self._tries = registry.tries
        self._scheduler = JobScheduler(rt, periodic)
        self._concurrency = concurrency or rt.settings.job_concurrency
        self._running: set[_RunningJob] = set()
        self._share_cursor = claims.ShareCursor()
        self._wake = asyncio.Event()
        self._stopping = False
        self._claiming: asyncio.Task[None] | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._exit_stack = contextlib.ExitStack()
        self._log = structlog.get_logger("refract.jobs").bind(worker=self.name)
        self._errors: dict[str, ErrorThrottle] = {}

    async def start(self) -> None:
        """Begin: at once with whatever is waiting, and with whatever a dead worker left behind."""
        self._exit_stack.enter_context(self._rt.signals.listen(queue.JOBS_TOPIC, self._wake))
        self._claiming = asyncio.create_task(self._claim_until_stopped(), name="jobs-claim")
        beats = {"renew": self._renew, "recover": self._recover, "schedule": self._schedule}
        self._loops = [
            asyncio.create_task(self._repeat(name, step), name=f"jobs-{name}")
            for name, step in beats.items()
        ]
        if self._rt.db.dialect == "postgresql":
            self._loops.append(
                asyncio.create_task(
                    listen_for_notifications(self._rt.db, queue.JOBS_TOPIC, self._wake.set),
                    name="jobs-listen",
                )
            )

    async def stop(self, grace: float = STOP_GRACE_SECONDS) -> None:
        """Claim nothing more, let what runs come to its end, and after the grace period give the rest back at once."""
        self._stopping = True
        self._wake.set()
        if self._claiming is not None:
            await asyncio.wait(
                [self._claiming]
            )  # a claim under way is finished, so that its jobs are known and can be given back
        await self._wait_for_running(grace)
        for running in self._running:
            running.end(JobReleased())
        await self._wait_for_running(CANCEL_TIMEOUT)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._exit_stack.close()

    async def run_due_jobs(self) -> int:
        """Do everything that is due, and end: for tests and commands. The answer is how many jobs were taken."""
        taken = 0
        while taking := await self._claim_jobs(self._count_free_slots()):
            taken += len(taking)
            for claim in taking:
                self._start_job(claim)
            await self._wait_for_running(None)
        return taken

    # -- the loops

    async def _claim_until_stopped(self) -> None:
        while not self._stopping:
            self._wake.clear()
            pause = await self._run_step("claim", self._claim_due_jobs)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)

    async def _repeat(self, name: str, step: Callable[[], Awaitable[float]]) -> None:
        while True:  # noqa: ASYNC110 - the step itself says how long to pause
            await asyncio.sleep(await self._run_step(name, step))

    async def _run_step(self, name: str, step: Callable[[], Awaitable[float]]) -> float:
        """Take a step, whose answer is the pause until the next. A worker outlives whatever happens to its database."""
        errors = self._errors.setdefault(
            name, ErrorThrottle(self._log, "jobs_loop_failed", loop=name)
        )
        try:
            pause = await step()
        except Exception as exc:  # noqa: BLE001 - a loop that ended would stop all background work without a word
            errors.report(exc)
            return ERROR_PAUSE_SECONDS
        errors.clear()
        return pause

    async def _claim_due_jobs(self) -> float:
        """Fill the free places; the answer is how long to wait for more."""
        poll = self._rt.settings.job_poll_seconds
        free = self._count_free_slots()
        if free.total <= 0:
            return poll
        async with self._rt.db.read() as session:
            due = await claims.get_seconds_until_due(
                session, self._rt, list(self._tries), maintenance_only=free.for_users <= 0
            )
        if due is None or due > 0:
            return poll if due is None else min(poll, due)
        taking = await self._claim_jobs(free)
        for claim in taking:
            self._start_job(claim)
        return 0 if taking else CONTENTION_PAUSE_SECONDS

    async def _renew(self) -> float:
        """Renew the leases every third of a lease; return the pause until the next round.

        A handler whose lease was lost, or could not be renewed for two thirds of its length, is
        stopped: well before another worker may claim its job.
        """
        lease = self._rt.settings.job_lease_seconds
        running_jobs = [running for running in self._running if running.ended_by is None]
        lost: list[JobClaim] = []
        pause = lease / 3
        try:
            if running_jobs:
                limit = min(lease / 3, max(lease / 12, self._get_seconds_to_stop(running_jobs)))
                async with asyncio.timeout(limit), self._rt.db.write() as session:
                    lost = await leases.renew_leases(
                        session, self._rt, [running.claim for running in running_jobs]
                    )
        except (Unavailable, TimeoutError) as exc:
            self._log.warning("job_renewal_failed", reason=str(exc))
            pause = lease / 12
        for running in running_jobs:
            if running.claim in lost or self._get_seconds_to_stop([running]) <= 0:
                running.end(JobLost())
        kept = [running for running in running_jobs if running.ended_by is None]
        return min(pause, self._get_seconds_to_stop(kept)) if kept else pause

    def _get_seconds_to_stop(self, running_jobs: Sequence[_RunningJob]) -> float:
        """Return the seconds until the first of these handlers must have renewed or be stopped."""
        oldest = min(running.claim.renewed_at for running in running_jobs)
        limit = self._rt.settings.job_lease_seconds * 2 / 3
        return oldest + limit - self._rt.clock.monotonic()

    async def _recover(self) -> float:
        for kind, dead in await leases.recover_expired_jobs(self._rt):
            metrics.count_job(self._rt, kind, "dead" if dead else "expired")
            self._log.warning("job_lease_expired", kind=kind, dead=dead)
        return RECOVERY_INTERVAL

    async def _schedule(self) -> float:
        remaining = await self._scheduler.enqueue_due_jobs()
        poll = self._rt.settings.job_poll_seconds
        return poll if remaining is None else min(poll, max(0.01, remaining))

    # -- one job

    def _count_free_slots(self) -> "_FreeSlots":
        for_people = self._concurrency - sum(
            running.claim.share != MAINTENANCE_SHARE for running in self._running
        )
        return _FreeSlots(for_people, self._concurrency + RESERVED_SLOTS - len(self._running))

    async def _claim_jobs(self, free: "_FreeSlots") -> list[JobClaim]:
        """Take maintenance first, into any place, then people's jobs into theirs."""
        async with self._rt.db.write() as session:
            taken = await claims.claim_maintenance_jobs(
                session, self._rt, self.name, self._tries, free.total
            )
            left = min(free.for_users, free.total - len(taken))
            if left > 0:
                taken += await claims.claim_jobs(
                    session, self._rt, self.name, self._tries, left, self._share_cursor
                )
            return taken

    def _start_job(self, claim: JobClaim) -> None:
        running = _RunningJob(claim)
        self._running.add(running)
        running.task = asyncio.create_task(
            self._run_job(running), name=f"job-{claim.kind}-{claim.job_id}"
        )

    async def _run_job(self, running: _RunningJob) -> None:
        claim = running.claim
        try:
            with bound_contextvars(job=str(claim.job_id), kind=claim.kind, attempt=claim.attempt):
                outcome = await self._run_handler(running)
                if not claim.is_finished and not await self._record_outcome(claim, outcome):
                    outcome = JobLost()
                metrics.count_job(
                    self._rt, claim.kind, type(outcome).__name__.removeprefix("Job").lower()
                )
                if isinstance(outcome, JobLost):
                    self._log.warning("job_lease_lost")
        finally:
            self._running.discard(running)
            self._wake.set()

    async def _run_handler(self, running: _RunningJob) -> JobOutcome:
        claim = running.claim
        handling = self._registry[claim.kind]
        try:
            if running.ended_by is not None:
                return running.ended_by  # before it began
            running.is_working = True
            payload = handling.parse_payload(claim)
            async with asyncio.timeout(handling.timeout):
                with job_span(self._rt, claim.kind):
                    await handling.run(self._rt, payload)
        except asyncio.CancelledError:
            if (
                running.ended_by is None
            ):  # it was not us: something inside the handler was cancelled
                return handling.decide_outcome(
                    TimeoutError("The work was interrupted."), claim.attempt
                )
            return running.ended_by
        except Exception as exc:  # noqa: BLE001 - whatever a handler raises is this job's end, not the worker's
            outcome = handling.decide_outcome(exc, claim.attempt)
            self._report(outcome, exc)
            return outcome
        finally:
            running.is_working = False
        return JobDone()

    def _report(self, outcome: JobOutcome, error: Exception) -> None:
        if isinstance(outcome, JobDead):
            self._log.error("job_dead", code=outcome.code, exc_info=error)
        elif isinstance(outcome, JobFailed):
            self._log.warning(
                "job_failed", code=outcome.code, reason=outcome.message, again_in=outcome.delay
            )

    async def _record_outcome(self, claim: JobClaim, outcome: JobOutcome) -> bool:
        """Write the outcome down; when the database is away, for as long as the lease may still be ours."""
        pause = 0.1
        errors = self._errors.setdefault("settle", ErrorThrottle(self._log, "job_not_settled"))
        while True:
            try:
                async with self._rt.db.write() as session:
                    settled = await leases.record_outcome(session, self._rt, claim, outcome)
                errors.clear()
                return settled
            except Unavailable as exc:
                errors.report(exc)
                if (
                    self._rt.clock.monotonic() - claim.renewed_at
                    >= self._rt.settings.job_lease_seconds
                ):
                    return False
            await asyncio.sleep(pause)
            pause = min(2.0, pause * 2)

    async def _wait_for_running(self, seconds: float | None) -> None:
        """Wait until nothing runs, but no longer than this."""
        tasks: list[Any] = [running.task for running in self._running if running.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
