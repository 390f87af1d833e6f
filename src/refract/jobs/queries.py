"""Queries of operators about jobs, and the retry of dead ones."""

from sqlalchemy import func, select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.runtime import Runtime
from refract.jobs.errors import JobNotDead, JobNotFound
from refract.jobs.models import WAITING_STATUSES, Job, JobStatus
from refract.jobs.queue import get_database_time, wake_workers

_DEAD_JOBS_CURSOR = "jobs:dead"


async def count_open_jobs(session: ReadSession) -> dict[tuple[str, str], int]:
    """Return the number of jobs by (status, kind), without those that are done."""
    open_or_dead = [status for status in JobStatus if status is not JobStatus.DONE]
    counted = (
        select(Job.status, Job.kind, func.count())
        .where(Job.status.in_(open_or_dead))
        .group_by(Job.status, Job.kind)
    )
    return {
        (status, kind): number for status, kind, number in (await session.execute(counted)).all()
    }


async def get_oldest_due_seconds(session: ReadSession, rt: Runtime) -> float:
    """Return how long the oldest due job has been waiting; zero if there is none."""
    first = [
        select(func.min(Job.run_at)).where(Job.status == status).scalar_subquery()
        for status in WAITING_STATUSES
    ]
    found = [
        moment for moment in (await session.execute(select(*first))).one() if moment is not None
    ]
    return (
        max(0.0, (await get_database_time(session, rt.clock) - min(found)).total_seconds())
        if found
        else 0.0
    )


async def list_dead_jobs(
    session: ReadSession, cursors: CursorCodec, *, cursor: str | None, limit: int
) -> Page[Job]:
    """Return dead jobs, latest first."""
    table = Job.__table__
    query = (
        select(Job)
        .where(Job.status == JobStatus.DEAD)
        .order_by(Job.finished_at.desc(), Job.id.desc())
        .limit(limit + 1)
    )
    if cursor is not None:
        query = query.where(
            build_after_clause(
                [table.c.finished_at, table.c.id],
                cursors.decode(_DEAD_JOBS_CURSOR, cursor),
                descending=True,
            )
        )
    rows = (await session.scalars(query)).all()
    return cursors.build_page(_DEAD_JOBS_CURSOR, rows, limit, lambda job: [job.finished_at, job.id])


async def retry_dead_job(session: WriteSession, rt: Runtime, job_id: int) -> Job:
    """Make a dead job pending again, with all its tries.

    Its dedup key, given up when it died, is not restored.
    """
    job = await session.get(Job, job_id, with_for_update=True)
    if job is None:
        raise JobNotFound
    if job.status != JobStatus.DEAD:
        raise JobNotDead(status=job.status)
    job.status = JobStatus.PENDING
    job.attempt_count = 0
    job.run_at = await get_database_time(session, rt.clock)
    job.finished_at = job.locked_by = None
    await wake_workers(session)
    await session.flush()
    return job
