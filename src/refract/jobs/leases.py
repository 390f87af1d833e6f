"""Leases of claimed jobs: renewal, outcome, recovery from dead workers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, or_, select, update

from refract.core.db.bulk import get_rowcount
from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.jobs.handlers import JobDead, JobDone, JobFailed, JobLost, JobOutcome, JobReleased
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import JobClaim
from refract.jobs.queue import build_claim_conditions, get_database_time, wake_workers

RECOVERY_BATCH_SIZE = 100
LEASE_EXPIRED = "LEASE_EXPIRED"
LEASE_EXPIRED_MESSAGE = Phrase("The worker stopped before the job was done.")


async def renew_leases(
    session: WriteSession, rt: Runtime, claims: Sequence[JobClaim]
) -> list[JobClaim]:
    """Renew the leases; return the claims that are no longer valid.

    A row that its own handler has locked for a fenced write is skipped: the claim is valid, and the
    next round renews it.
    """
    if not claims:
        return []
    started_at = rt.clock.monotonic()
    at = await get_database_time(session, rt.clock)
    ours = select(Job.id, Job.locked_by).where(
        or_(*(and_(*build_claim_conditions(claim, at)) for claim in claims))
    )
    kept = {(row.id, row.locked_by) for row in await session.execute(ours)}
    free = {
        (row.id, row.locked_by)
        for row in await session.execute(ours.with_for_update(skip_locked=True))
    }
    if free:
        prolonged = update(Job).where(Job.id.in_([job_id for job_id, _ in free]))
        expires = at + timedelta(seconds=rt.settings.job_lease_seconds)
        await session.execute(
            prolonged.values(lease_expires_at=expires).execution_options(synchronize_session=False)
        )
    renewed = [claim for claim in claims if (claim.job_id, claim.locked_by) in free]
    session.after_commit(lambda: _mark_renewed(renewed, started_at))
    return [claim for claim in claims if (claim.job_id, claim.locked_by) not in kept]


def _mark_renewed(claims: Sequence[JobClaim], started_at: float) -> None:
    for claim in claims:
        claim.renewed_at = started_at


async def record_outcome(
    session: WriteSession, rt: Runtime, claim: JobClaim, outcome: JobOutcome
) -> bool:
    """Record how a job ended; return False, writing nothing, if the claim is no longer valid."""
    if isinstance(outcome, JobLost):
        return False
    at = await get_database_time(session, rt.clock)
    ending = (
        update(Job)
        .where(*build_claim_conditions(claim, at))
        .values(lease_expires_at=None, **_build_outcome_values(outcome, at))
    )
    kept = (
        get_rowcount(await session.execute(ending.execution_options(synchronize_session=False)))
        == 1
    )
    if kept and isinstance(outcome, JobReleased | JobFailed):
        await wake_workers(session)
    return kept


def _build_outcome_values(
    outcome: JobDone | JobFailed | JobDead | JobReleased, at: datetime
) -> dict[str, Any]:
    match outcome:
        case JobDone():
            return {"status": JobStatus.DONE, "dedup": None, "finished_at": at}
        case JobFailed(code, message, delay):
            requeued = at + timedelta(seconds=delay)
            return {
                "status": JobStatus.FAILED,
                "run_at": requeued,
                "locked_by": None,
                "last_error_code": code,
                "last_error_message": message,
            }
        case JobDead(code, message):
            return {
                "status": JobStatus.DEAD,
                "dedup": None,
                "finished_at": at,
                "last_error_code": code,
                "last_error_message": message,
            }
        case JobReleased():
            return {
                "status": JobStatus.PENDING,
                "run_at": at,
                "locked_by": None,
                "attempt_count": Job.attempt_count - 1,
            }


async def recover_expired_jobs(
    rt: Runtime, *, page: int = RECOVERY_BATCH_SIZE
) -> list[tuple[str, bool]]:
    """Free the jobs whose lease has expired, in batches.

    Return the kind of each, and whether it is dead because of it. Only reads until there is
    something to do, since every worker calls this every few seconds.
    """
    freed: list[tuple[str, bool]] = []
    while True:
        async with rt.db.read() as read_session:
            at = await get_database_time(read_session, rt.clock)
            expired = (Job.status == JobStatus.IN_PROGRESS, Job.lease_expires_at <= at)
            if (await read_session.scalar(select(Job.id).where(*expired).limit(1))) is None:
                return freed
        async with rt.db.write() as session:
            rows = (
                await session.execute(
                    select(Job.id, Job.kind, Job.attempt_count, Job.max_tries)
                    .where(*expired)
                    .order_by(Job.lease_expires_at)
                    .limit(page)
                    .with_for_update(skip_locked=True)
                )
            ).all()
            await _requeue(
                session, [row.id for row in rows if row.attempt_count < row.max_tries], at
            )
            await _mark_dead(
                session, [row.id for row in rows if row.attempt_count >= row.max_tries], at
            )
        freed += [(row.kind, row.attempt_count >= row.max_tries) for row in rows]
        if len(rows) < page:
            return freed


_EXPIRED_VALUES = {
    "lease_expires_at": None,
    "last_error_code": LEASE_EXPIRED,
    "last_error_message": LEASE_EXPIRED_MESSAGE.template,
}


async def _requeue(session: WriteSession, ids: Sequence[int], at: datetime) -> None:
    if ids:
        requeued = (
            update(Job)
            .where(Job.id.in_(ids))
            .values(status=JobStatus.PENDING, run_at=at, locked_by=None, **_EXPIRED_VALUES)
        )
        await session.execute(requeued.execution_options(synchronize_session=False))
        await wake_workers(session)


async def _mark_dead(session: WriteSession, ids: Sequence[int], at: datetime) -> None:
    if ids:
        dead = (
            update(Job)
            .where(Job.id.in_(ids))
            .values(status=JobStatus.DEAD, dedup=None, finished_at=at, **_EXPIRED_VALUES)
        )
        await session.execute(dead.execution_options(synchronize_session=False))
