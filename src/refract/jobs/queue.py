"""Enqueueing of jobs in the caller's transaction, and the fence for writes of a claimed job."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import func, select, text, update

from refract.core.clock import Clock, SystemClock
from refract.core.db.bulk import insert_rows
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.types import UtcDateTime
from refract.core.db.upsert import try_insert
from refract.core.ids import IdSource
from refract.jobs.errors import LeaseLost
from refract.jobs.models import COMMON_SHARE, DEFAULT_MAX_TRIES, Job, JobStatus
from refract.jobs.payload import JobClaim, JobPayload

JOBS_TOPIC = "refract_jobs"
"""The in-process signal and the PostgreSQL channel."""

MAX_DEDUP_LENGTH = 200


async def get_database_time(session: ReadSession, clock: Clock) -> datetime:
    """Return the database's time, since clocks of machines differ. A test's clock replaces it."""
    if session.dialect == "sqlite" or not isinstance(clock, SystemClock):
        return clock.now()
    now = (
        func.clock_timestamp(type_=UtcDateTime())
        if session.dialect == "postgresql"
        else func.utc_timestamp(text("6"), type_=UtcDateTime())
    )
    return (await session.execute(select(now))).scalar_one()


class JobSource(Protocol):
    """The parts of a runtime that a new job needs; services that create rows have them too."""

    @property
    def ids(self) -> IdSource: ...

    @property
    def clock(self) -> Clock: ...


async def enqueue(
    session: WriteSession,
    rt: JobSource,
    payload: JobPayload,
    *,
    run_at: datetime | None = None,
    dedup: str | None = None,
    share: int = COMMON_SHARE,
) -> int | None:
    """Enqueue a job that commits or vanishes with this transaction; return its id.

    `share` is the user it works for: workers serve shares in turn, however many jobs each has. With
    `dedup`, return None if a job with that key is still open: waiting, running, or about to be
    retried.
    """
    row = _build_row(rt, payload, await get_database_time(session, rt.clock), run_at, share)
    if dedup is None:
        await insert_rows(session, Job, [row])
    elif len(dedup) > MAX_DEDUP_LENGTH:
        problem = f"a dedup key has at most {MAX_DEDUP_LENGTH} characters: {dedup}"
        raise ValueError(problem)
    elif not await try_insert(session, Job, {**row, "dedup": dedup}):
        return None
    await wake_workers(session)
    return int(row["id"])


async def enqueue_all(
    session: WriteSession,
    rt: JobSource,
    payloads: Sequence[JobPayload],
    *,
    run_at: datetime | None = None,
    share: int = COMMON_SHARE,
) -> list[int]:
    """Enqueue many jobs with one statement; return their ids."""
    if not payloads:
        return []
    at = await get_database_time(session, rt.clock)
    rows = [_build_row(rt, payload, at, run_at, share) for payload in payloads]
    await insert_rows(session, Job, rows)
    await wake_workers(session)
    return [int(row["id"]) for row in rows]


def _build_row(
    rt: JobSource, payload: JobPayload, at: datetime, run_at: datetime | None, share: int
) -> dict[str, Any]:
    return {
        "id": rt.ids.next_id(),
        "kind": payload.kind,
        "payload": payload.model_dump(mode="json"),
        "status": JobStatus.PENDING,
        "attempt_count": 0,
        "max_tries": DEFAULT_MAX_TRIES,
        "run_at": run_at or at,
        "created_at": at,
        "share": share,
    }


async def wake_workers(session: WriteSession) -> None:
    """Wake the workers of this process after the commit, and those of others as part of it.

    Once per transaction is enough.
    """
    if JOBS_TOPIC in session.info:
        return
    session.info[JOBS_TOPIC] = True
    if session.dialect == "postgresql":
        await session.execute(select(func.pg_notify(JOBS_TOPIC, "")))
    session.after_commit(lambda: session.signals.send(JOBS_TOPIC))


def build_claim_conditions(claim: JobClaim, at: datetime) -> tuple[Any, ...]:
    """Return the fence: this job, under this claim, with a lease that has not expired."""
    return (
        Job.id == claim.job_id,
        Job.attempt_count == claim.attempt,
        Job.locked_by == claim.locked_by,
        Job.status == JobStatus.IN_PROGRESS,
        Job.lease_expires_at > at,
    )


async def verify_claim(session: WriteSession, job: JobPayload) -> None:
    """Let this transaction commit only while the claim is valid; otherwise raise `LeaseLost`.

    The row stays locked until the commit, so the job cannot be claimed in between. Without a claim
    (a handler called by a command or a test) there is no lease to lose.
    """
    claim = job.claim
    if claim is None:
        return
    at = await get_database_time(session, claim.clock)
    mine = select(Job.id).where(*build_claim_conditions(claim, at)).with_for_update()
    if claim.is_finished or (await session.execute(mine)).scalar_one_or_none() is None:
        raise LeaseLost(job_id=claim.job_id)


async def finish_job(session: WriteSession, job: JobPayload) -> None:
    """Verify the claim and mark the job as done in the same commit.

    So the handler's writes in this transaction happen exactly once.
    """
    await verify_claim(session, job)
    claim = job.claim
    if claim is None:
        return
    at = await get_database_time(session, claim.clock)
    await session.execute(
        update(Job)
        .where(Job.id == claim.job_id)
        .values(status=JobStatus.DONE, dedup=None, finished_at=at, lease_expires_at=None)
        .execution_options(synchronize_session=False)
    )
    session.after_commit(lambda: _mark_finished(claim))


def _mark_finished(claim: JobClaim) -> None:
    claim.is_finished = True
