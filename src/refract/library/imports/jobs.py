"""Jobs that import and roll back in batches. A killed job resumes where it stopped."""

from datetime import timedelta
from functools import partial

from sqlalchemy import ColumnElement, select

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.models import WAITING_STATUSES, Job, JobStatus
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import run_in_slices
from refract.library.imports.importer import (
    import_batch,
    lock_import,
    stop_import,
    stop_running_import,
)
from refract.library.imports.models import ImportStatus, LibraryImport
from refract.library.imports.payloads import (
    EndImport,
    RollBackImport,
    RunImport,
    StopStuckImports,
)
from refract.library.imports.rollback import roll_back_batch

_STATUSES = {
    RunImport.kind: ImportStatus.RUNNING,
    RollBackImport.kind: ImportStatus.ROLLING_BACK,
}


@handles(RunImport)
async def run_import(rt: Runtime, job: RunImport) -> None:
    await run_in_slices(rt, partial(import_batch, rt, job.import_id))


@handles(RollBackImport)
async def roll_back_import(rt: Runtime, job: RollBackImport) -> None:
    await run_in_slices(rt, partial(roll_back_batch, rt, job.import_id))


@handles(EndImport)
async def end_import(rt: Runtime, job: EndImport) -> None:
    async with rt.db.write() as session:
        library_import = await session.get(LibraryImport, job.import_id)
        if library_import is not None:
            await stop_running_import(session, library_import, rt.clock.now())


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
            library_import = await lock_import(session, import_id)
            if library_import is not None and library_import.status == _STATUSES[kind]:
                await stop_import(session, library_import, rt.clock.now())


async def _find_imports(
    session: ReadSession, *conditions: ColumnElement[bool]
) -> set[tuple[int, str]]:
    """Return the imports with such jobs, and the kind of job."""
    jobs = select(Job.kind, Job.payload).where(Job.kind.in_(_STATUSES), *conditions)
    rows = (await session.execute(jobs)).all()
    return {(int(payload["import_id"]), kind) for kind, payload in rows}


HANDLERS = (run_import, roll_back_import, end_import, stop_stuck_imports)
PERIODIC = (PeriodicJob(StopStuckImports(), seconds=60),)
