"""Jobs that import and roll back in batches. A killed job resumes where it stopped."""

from functools import partial

from refract.core.runtime import Runtime
from refract.imports.payloads import RollBackImport, RunImport
from refract.jobs.handlers import handles
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import run_in_slices
from refract.library.imports.importer import import_batch
from refract.library.imports.rollback import roll_back_batch


@handles(RunImport)
async def run_import(rt: Runtime, job: RunImport) -> None:
    await run_in_slices(rt, partial(import_batch, rt, job.import_id))


@handles(RollBackImport)
async def roll_back_import(rt: Runtime, job: RollBackImport) -> None:
    await run_in_slices(rt, partial(roll_back_batch, rt, job.import_id))


HANDLERS = (run_import, roll_back_import)
PERIODIC: tuple[PeriodicJob, ...] = ()
