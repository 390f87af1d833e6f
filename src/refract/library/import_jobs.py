"""Imports and their roll-backs, batch by batch. Killed half-way, either goes on where it was."""

from typing import ClassVar

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.jobs.payload import Payload
from refract.jobs.queue import enqueue
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.library.importing.bring import bring_batch
from refract.library.importing.rollback import roll_back_slice

BREATH_SECONDS = 0.01


class RunImport(Payload):
    """Make items of the rows of an import."""

    kind: ClassVar[str] = "library.import"
    import_id: Id


class RollBackImport(Payload):
    """Remove what an import brought."""

    kind: ClassVar[str] = "library.roll_back_import"
    import_id: Id


async def run_later(session: WriteSession, rt: Runtime, import_id: int) -> None:
    await enqueue(session, rt, RunImport(import_id=import_id))


async def roll_back_later(session: WriteSession, rt: Runtime, import_id: int) -> None:
    await enqueue(session, rt, RollBackImport(import_id=import_id))


@handles(RunImport)
async def run_import(rt: Runtime, job: RunImport) -> None:
    while await bring_batch(rt, job.import_id):
        await rt.clock.sleep(BREATH_SECONDS)


@handles(RollBackImport)
async def roll_back_import(rt: Runtime, job: RollBackImport) -> None:
    while await roll_back_slice(rt, job.import_id):
        await rt.clock.sleep(BREATH_SECONDS)


HANDLERS = (run_import, roll_back_import)
PERIODIC: tuple[Every, ...] = ()
