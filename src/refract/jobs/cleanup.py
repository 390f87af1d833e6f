"""Maintenance: done jobs are deleted, statistics of the database are updated."""

from datetime import time, timedelta
from typing import ClassVar

from sqlalchemy import delete, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import JobPayload
from refract.jobs.queue import JobSource, enqueue, get_database_time
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import run_in_slices

DONE_JOB_RETENTION = timedelta(days=1)
BATCH_SIZE = 500
MIN_BULK_ROWS = 1_000
"""Inserted rows after which statistics are updated immediately, not at night."""


class DeleteDoneJobs(JobPayload):
    """Delete jobs that were done more than a day ago."""

    kind: ClassVar[str] = "jobs.forget_done"


class UpdateStatistics(JobPayload):
    """Update the statistics of SQLite's query planner."""

    kind: ClassVar[str] = "database.update_statistics"


async def enqueue_statistics(session: WriteSession, rt: JobSource, rows: int) -> None:
    """Update the statistics after many rows were inserted."""
    if session.dialect == "sqlite" and rows >= MIN_BULK_ROWS:
        await enqueue(session, rt, UpdateStatistics(), dedup=UpdateStatistics.kind)


@handles(UpdateStatistics)
async def update_statistics(rt: Runtime, _job: UpdateStatistics) -> None:
    await rt.db.update_statistics()


@handles(DeleteDoneJobs)
async def delete_done_jobs(rt: Runtime, _job: DeleteDoneJobs) -> None:
    async with rt.db.read() as session:
        before = await get_database_time(session, rt.clock) - DONE_JOB_RETENTION
    old = (
        select(Job.id)
        .where(Job.status == JobStatus.DONE, Job.finished_at < before)
        .order_by(Job.finished_at, Job.id)
        .limit(BATCH_SIZE)
    )

    async def delete_batch() -> int:
        async with rt.db.read() as session:
            ids = (await session.scalars(old)).all()
        if ids:
            async with rt.db.write() as session:
                await session.execute(
                    delete(Job).where(Job.id.in_(ids)).execution_options(synchronize_session=False)
                )
        return len(ids)

    await run_in_slices(rt, delete_batch)


HANDLERS = (delete_done_jobs, update_statistics)
PERIODIC = (
    PeriodicJob(DeleteDoneJobs(), seconds=3600),
    PeriodicJob(UpdateStatistics(), daily=time(3, 40)),
)
