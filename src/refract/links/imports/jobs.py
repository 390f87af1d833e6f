"""Jobs that import links and roll imports back in batches. A killed job resumes where it stopped.

What became of a row is committed with its link, so that no row is imported twice.
"""

from functools import partial

from refract.core.runtime import Runtime
from refract.imports.payloads import RollBackLinkImport, RunLinkImport
from refract.jobs.handlers import handles
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import run_in_slices
from refract.links.imports.remote import fetch_next_page
from refract.links.imports.rollback import roll_back_batch
from refract.links.imports.runs import LinkImportJob

REMOTE_TRIES = 12
"""Moments at which another system may be away until an import from it is given up."""


@handles(RunLinkImport, tries=REMOTE_TRIES)
async def run_link_import(rt: Runtime, job: RunLinkImport) -> None:
    await run_in_slices(rt, partial(fetch_next_page, rt, job.import_id))
    turn = await LinkImportJob.begin(rt, job.import_id)
    if turn is not None:
        await run_in_slices(rt, turn.import_batch)


@handles(RollBackLinkImport)
async def roll_back_link_import(rt: Runtime, job: RollBackLinkImport) -> None:
    await run_in_slices(rt, partial(roll_back_batch, rt, job.import_id))


HANDLERS = (run_link_import, roll_back_link_import)
PERIODIC: tuple[PeriodicJob, ...] = ()
