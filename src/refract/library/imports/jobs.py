"""Imports and their roll-backs, batch by batch. Killed half-way, either goes on where it was."""

from datetime import timedelta
from typing import ClassVar

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue
from refract.jobs.schedule import PeriodicJob
from refract.library.imports.importer import import_batch, stop_running_import
from refract.library.imports.models import LibraryImport
from refract.library.imports.rollback import roll_back_batch

YIELD_SECONDS = 0.01
ABANDONED_AFTER = timedelta(days=1)
"""No command takes that long: whatever did not end by then was killed."""


class RunImport(JobPayload):
    """Make items of the rows of an import."""

    kind: ClassVar[str] = "library.import"
    import_id: Id


class RollBackImport(JobPayload):
    """Remove what an import brought."""

    kind: ClassVar[str] = "library.roll_back_import"
    import_id: Id


class EndImport(JobPayload):
    """Say of an import that it goes no further, unless it has ended already."""

    kind: ClassVar[str] = "library.end_import"
    import_id: Id


async def enqueue_import(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    await enqueue(session, rt, RunImport(import_id=import_id), share=user_id)


async def enqueue_rollback(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    await enqueue(session, rt, RollBackImport(import_id=import_id), share=user_id)


async def enqueue_abandoned_import_check(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    """An import that no worker goes on with, but a command that may be killed."""
    await enqueue(session, rt, EndImport(import_id=import_id), run_at=rt.clock.now() + ABANDONED_AFTER, share=user_id)


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
        one = await session.get(LibraryImport, job.import_id)
        if one is not None:
            await stop_running_import(session, one, rt.clock.now())


HANDLERS = (run_import, roll_back_import, end_import)
PERIODIC: tuple[PeriodicJob, ...] = ()
