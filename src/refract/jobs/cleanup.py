"""Periodic cleanup of done jobs."""

from datetime import timedelta
from typing import ClassVar

from sqlalchemy import delete, select

from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import JobPayload
from refract.jobs.queue import get_database_time
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import run_in_slices

DONE_JOB_RETENTION = timedelta(days=1)
BATCH_SIZE = 500


class DeleteDoneJobs(JobPayload):
    """Delete jobs that were done more than a day ago."""

    kind: ClassVar[str] = "jobs.forget_done"


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


HANDLERS = (delete_done_jobs,)
PERIODIC = (PeriodicJob(DeleteDoneJobs(), seconds=3600),)
