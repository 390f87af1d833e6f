"""Jobs that import and roll back in batches. A killed job resumes where it stopped."""

from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.schedule import PeriodicJob
from refract.library.imports.importer import import_batch, stop_running_import
from refract.library.imports.models import LibraryImport
from refract.library.imports.payloads import EndImport, RollBackImport, RunImport
from refract.library.imports.rollback import roll_back_batch

YIELD_SECONDS = 0.01


@handles(RunImport)
async def run_import(rt: Runtime, job: RunImport) -> None:
    while await import_batch(rt, job.import_id):
        await rt.clock.sleep(YIELD_SECONDS)


@handles(RollBackImport)
async def roll_back_import(rt: Runtime, job: RollBackImport) -> None:
    while await roll_back_batch(rt, job.import_id):
        await rt.clock.sleep(YIELD_SECONDS)


@handles(EndImport)
async def end_import(rt: Runtime, job: EndImport) -> None:
    async with rt.db.write() as session:
        library_import = await session.get(LibraryImport, job.import_id)
        if library_import is not None:
            await stop_running_import(session, library_import, rt.clock.now())


HANDLERS = (run_import, roll_back_import, end_import)
PERIODIC: tuple[PeriodicJob, ...] = ()
