"""The worker that claims and runs jobs until it is stopped."""

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
"""Pause between checks for expired leases: a dead worker's job is free well within lease + 5 s."""

CONTENTION_PAUSE_SECONDS = 0.05
"""Pause when other workers claimed the due jobs, so that workers do not spin on locks."""

RESERVED_SLOTS = 1
"""Slots besides `job_concurrency` that only maintenance may use: it never waits for users' jobs."""

ERROR_PAUSE_SECONDS = 1.0
STOP_GRACE_SECONDS = 10.0
CANCEL_TIMEOUT = 5.0


@dataclass(slots=True, eq=False)
class _RunningJob:
    """A claimed job.

    It can be cancelled while its handler runs, not while its outcome is recorded.
    """

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
    """The number of jobs that can start: those of users, and in total."""

    for_users: int
    total: int


class JobWorker:
    """The worker of a process. Several may share a database; each job is run by one of them."""

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
        """Start with the jobs that are waiting or were left behind by a dead worker."""
        self._exit_stack.enter_context(self._rt.signals.listen(queue.JOBS_TOPIC, self._wake))
        self._claiming = asyncio.create_task(self._claim_until_stopped(), name="jobs-claim")
        steps = {"renew": self._renew, "recover": self._recover, "schedule": self._schedule}
        self._loops = [
            asyncio.create_task(self._repeat(name, step), name=f"jobs-{name}")
            for name, step in steps.items()
        ]
        if self._rt.db.dialect == "postgresql":
            self._loops.append(
                asyncio.create_task(
                    listen_for_notifications(self._rt.db, queue.JOBS_TOPIC, self._wake.set),
                    name="jobs-listen",
                )
            )

    async def stop(self, grace: float = STOP_GRACE_SECONDS) -> None:
        """Stop claiming, let running jobs finish, and release the rest after the grace period."""
        self._stopping = True
        self._wake.set()
        if self._claiming is not None:
            # A claim in progress is finished, so that its jobs are known and can be released.
            await asyncio.wait([self._claiming])
        await self._wait_for_running(grace)
        for running in self._running:
            running.end(JobReleased())
        await self._wait_for_running(CANCEL_TIMEOUT)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._exit_stack.close()

    async def run_due_jobs(self) -> int:
        """Run all due jobs and return how many there were. For tests, which start no loops."""
        count = 0
        while claimed := await self._claim_jobs(self._count_free_slots()):
            count += len(claimed)
            for claim in claimed:
                self._start_job(claim)
            await self._wait_for_running(None)
        return count

    # Loops

    async def _claim_until_stopped(self) -> None:
        while not self._stopping:
            self._wake.clear()
            pause = await self._run_step("claim", self._claim_due_jobs)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)

    async def _repeat(self, name: str, step: Callable[[], Awaitable[float]]) -> None:
        while True:  # noqa: ASYNC110 - the step returns the pause
            await asyncio.sleep(await self._run_step(name, step))

    async def _run_step(self, name: str, step: Callable[[], Awaitable[float]]) -> float:
        """Run a step and return the pause until the next. Database errors do not end a worker."""
        errors = self._errors.setdefault(
            name, ErrorThrottle(self._log, "job_loop_failed", loop=name)
        )
        try:
            pause = await step()
        except Exception as exc:  # noqa: BLE001 - an ended loop would silently stop background work
            errors.report(exc)
            return ERROR_PAUSE_SECONDS
        errors.clear()
        return pause

    async def _claim_due_jobs(self) -> float:
        """Claim jobs for the free slots; return how long to wait for more."""
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
        claimed = await self._claim_jobs(free)
        for claim in claimed:
            self._start_job(claim)
        return 0 if claimed else CONTENTION_PAUSE_SECONDS

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

    # Jobs

    def _count_free_slots(self) -> "_FreeSlots":
        for_people = self._concurrency - sum(
            running.claim.share != MAINTENANCE_SHARE for running in self._running
        )
        return _FreeSlots(for_people, self._concurrency + RESERVED_SLOTS - len(self._running))

    async def _claim_jobs(self, free: "_FreeSlots") -> list[JobClaim]:
        """Claim maintenance jobs for any slot, then users' jobs for theirs."""
        async with self._rt.db.write() as session:
            claimed_jobs = await claims.claim_maintenance_jobs(
                session, self._rt, self.name, self._tries, free.total
            )
            left = min(free.for_users, free.total - len(claimed_jobs))
            if left > 0:
                claimed_jobs += await claims.claim_jobs(
                    session, self._rt, self.name, self._tries, left, self._share_cursor
                )
            return claimed_jobs

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
        spec = self._registry[claim.kind]
        try:
            if running.ended_by is not None:
                return running.ended_by  # before it began
            running.is_working = True
            payload = spec.parse_payload(claim)
            async with asyncio.timeout(spec.timeout):
                with job_span(self._rt, claim.kind):
                    await spec.run(self._rt, payload)
        except asyncio.CancelledError:
            # Not cancelled by the worker: something inside the handler was.
            if running.ended_by is None:
                return spec.decide_outcome(TimeoutError("The work was interrupted."), claim.attempt)
            return running.ended_by
        except Exception as exc:  # noqa: BLE001 - ends this job, not the worker
            outcome = spec.decide_outcome(exc, claim.attempt)
            self._report(outcome, exc)
            return outcome
        finally:
            running.is_working = False
        return JobDone()

    def _report(self, outcome: JobOutcome, error: Exception) -> None:
        if isinstance(outcome, JobDead):
            self._log.error("job_died", code=outcome.code, exc_info=error)
        elif isinstance(outcome, JobFailed):
            self._log.warning(
                "job_failed", code=outcome.code, reason=outcome.message, again_in=outcome.delay
            )

    async def _record_outcome(self, claim: JobClaim, outcome: JobOutcome) -> bool:
        """Record the outcome; while the database is unavailable, retry until the lease ends."""
        pause = 0.1
        errors = self._errors.setdefault("settle", ErrorThrottle(self._log, "job_outcome_delayed"))
        while True:
            try:
                async with self._rt.db.write() as session:
                    recorded = await leases.record_outcome(session, self._rt, claim, outcome)
                errors.clear()
                return recorded
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
        """Wait until no job runs, at most this long."""
        tasks: list[Any] = [running.task for running in self._running if running.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
