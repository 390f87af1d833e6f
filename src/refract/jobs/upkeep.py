"""The outbox's own periodic work."""

from datetime import timedelta
from typing import ClassVar

from sqlalchemy import delete, select

from refract.core.runtime import Runtime
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import Payload
from refract.jobs.queue import now
from refract.jobs.registry import handles
from refract.jobs.schedule import Every

KEPT = timedelta(days=1)
SLICE = 500


class ForgetDoneJobs(Payload):
    """Delete jobs that were done more than a day ago."""

    kind: ClassVar[str] = "jobs.forget_done"


@handles(ForgetDoneJobs)
async def forget_done_jobs(rt: Runtime, job: ForgetDoneJobs) -> None:  # noqa: ARG001 - every handler has this shape
    """In slices with a pause between them, so that nobody waits long for a lock."""
    async with rt.db.read() as session:
        before = await now(session, rt.clock) - KEPT
    while True:
        async with rt.db.read() as session:
            old = (
                select(Job.id).where(Job.status == JobStatus.DONE, Job.finished_at < before).order_by(Job.finished_at, Job.id).limit(SLICE)
            )
            ids = (await session.scalars(old)).all()
        if not ids:
            return
        async with rt.db.write() as session:
            await session.execute(delete(Job).where(Job.id.in_(ids)).execution_options(synchronize_session=False))
        await rt.clock.sleep(0.01)


HANDLERS = (forget_done_jobs,)
PERIODIC = (Every(ForgetDoneJobs(), seconds=3600),)
