"""Keeping a claimed job, giving it back, and taking it from a worker that died."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, or_, select, update

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import Claim
from refract.jobs.queue import changed, held, now, wake
from refract.jobs.registry import Dead, Done, Failed, Lost, Outcome, Released

RECOVERY_PAGE = 100
LEASE_EXPIRED = "LEASE_EXPIRED"


async def renew(session: WriteSession, rt: Runtime, claims: Sequence[Claim]) -> list[Claim]:
    """Prolong the leases; the answer is the claims that no longer hold.

    A row that its own handler has locked to write behind the fence is passed over: it is ours, and the next round renews it.
    """
    if not claims:
        return []
    asked_at = rt.clock.monotonic()
    at = await now(session, rt.clock)
    ours = select(Job.id, Job.locked_by).where(or_(*(and_(*held(claim, at)) for claim in claims)))
    kept = {(row.id, row.locked_by) for row in await session.execute(ours)}
    free = {(row.id, row.locked_by) for row in await session.execute(ours.with_for_update(skip_locked=True))}
    if free:
        prolonged = update(Job).where(Job.id.in_([job_id for job_id, _ in free]))
        expires = at + timedelta(seconds=rt.settings.job_lease_seconds)
        await session.execute(prolonged.values(lease_expires_at=expires).execution_options(synchronize_session=False))
    renewed = [claim for claim in claims if (claim.job_id, claim.locked_by) in free]
    session.after_commit(lambda: _renewed(renewed, asked_at))
    return [claim for claim in claims if (claim.job_id, claim.locked_by) not in kept]


def _renewed(claims: Sequence[Claim], asked_at: float) -> None:
    for claim in claims:
        claim.renewed_at = asked_at


async def settle(session: WriteSession, rt: Runtime, claim: Claim, outcome: Outcome) -> bool:
    """Write down how a job ended; False when the claim no longer holds, and then nothing was written."""
    if isinstance(outcome, Lost):
        return False
    at = await now(session, rt.clock)
    ending = update(Job).where(*held(claim, at)).values(lease_expires_at=None, **_ending(outcome, at))
    kept = changed(await session.execute(ending.execution_options(synchronize_session=False))) == 1
    if kept and isinstance(outcome, Released | Failed):
        await wake(session)
    return kept


def _ending(outcome: Done | Failed | Dead | Released, at: datetime) -> dict[str, Any]:
    match outcome:
        case Done():
            return {"status": JobStatus.DONE, "dedup": None, "finished_at": at}
        case Failed(code, message, delay):
            again = at + timedelta(seconds=delay)
            return {"status": JobStatus.FAILED, "run_at": again, "locked_by": None, "last_error_code": code, "last_error_message": message}
        case Dead(code, message):
            return {"status": JobStatus.DEAD, "dedup": None, "finished_at": at, "last_error_code": code, "last_error_message": message}
        case Released():
            return {"status": JobStatus.PENDING, "run_at": at, "locked_by": None, "attempt_count": Job.attempt_count - 1}


async def recover(rt: Runtime, *, page: int = RECOVERY_PAGE) -> list[tuple[str, bool]]:
    """Free the jobs whose worker let its lease run out, page by page; the answer is each one's kind, and whether it died of it.

    It only looks until there is something to do, since every worker asks every few seconds.
    """
    freed: list[tuple[str, bool]] = []
    while True:
        async with rt.db.read() as reading:
            at = await now(reading, rt.clock)
            expired = (Job.status == JobStatus.IN_PROGRESS, Job.lease_expires_at <= at)
            if (await reading.scalar(select(Job.id).where(*expired).limit(1))) is None:
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
            await _free(session, [row.id for row in rows if row.attempt_count < row.max_tries], at)
            await _bury(session, [row.id for row in rows if row.attempt_count >= row.max_tries], at)
        freed += [(row.kind, row.attempt_count >= row.max_tries) for row in rows]
        if len(rows) < page:
            return freed


_EXPIRED = {
    "lease_expires_at": None,
    "last_error_code": LEASE_EXPIRED,
    "last_error_message": "The worker stopped before it was done.",
}


async def _free(session: WriteSession, ids: Sequence[int], at: datetime) -> None:
    if ids:
        again = update(Job).where(Job.id.in_(ids)).values(status=JobStatus.PENDING, run_at=at, locked_by=None, **_EXPIRED)
        await session.execute(again.execution_options(synchronize_session=False))
        await wake(session)


async def _bury(session: WriteSession, ids: Sequence[int], at: datetime) -> None:
    if ids:
        dead = update(Job).where(Job.id.in_(ids)).values(status=JobStatus.DEAD, dedup=None, finished_at=at, **_EXPIRED)
        await session.execute(dead.execution_options(synchronize_session=False))
