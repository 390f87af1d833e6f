"""Jobs that end abandoned imports."""

from datetime import timedelta

from sqlalchemy import ColumnElement, select

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.imports.models import ImportRun
from refract.imports.payloads import STATUS_OF_JOB, EndImport, StopStuckImports
from refract.imports.service import lock_import, stop_import, stop_running_import
from refract.jobs.handlers import handles
from refract.jobs.models import WAITING_STATUSES, Job, JobStatus
from refract.jobs.schedule import PeriodicJob


@handles(EndImport)
async def end_import(rt: Runtime, job: EndImport) -> None:
    async with rt.db.write() as session:
        import_run = await session.get(ImportRun, job.import_id)
        if import_run is not None:
            await stop_running_import(session, import_run, rt.clock.now())


@handles(StopStuckImports)
async def stop_stuck_imports(rt: Runtime, _job: StopStuckImports) -> None:
    """Stop imports and roll-backs whose job died, so that users can roll back or start again."""
    async with rt.db.read() as session:
        recent = rt.clock.now() - timedelta(days=1)
        stuck = await _find_imports(session, Job.status == JobStatus.DEAD, Job.finished_at > recent)
        if stuck:  # a roll-back that was started again has a new job
            stuck -= await _find_imports(
                session, Job.status.in_((*WAITING_STATUSES, JobStatus.IN_PROGRESS))
            )
    for import_id, kind in stuck:
        async with rt.db.write() as session:
            import_run = await lock_import(session, import_id)
            if import_run is not None and import_run.status == STATUS_OF_JOB[kind]:
                await stop_import(session, import_run, rt.clock.now())


async def _find_imports(
    session: ReadSession, *conditions: ColumnElement[bool]
) -> set[tuple[int, str]]:
    """Return the imports with such jobs, and the kind of job."""
    jobs = select(Job.kind, Job.payload).where(Job.kind.in_(STATUS_OF_JOB), *conditions)
    rows = (await session.execute(jobs)).all()
    return {(int(payload["import_id"]), kind) for kind, payload in rows}


HANDLERS = (end_import, stop_stuck_imports)
PERIODIC = (PeriodicJob(StopStuckImports(), seconds=60),)
