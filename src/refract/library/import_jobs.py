"""Imports and their roll-backs, batch by batch. Killed half-way, either goes on where it was."""

from datetime import timedelta
from typing import ClassVar

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.jobs.payload import Payload
from refract.jobs.queue import enqueue
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.library.import_models import Import
from refract.library.importing.bring import bring_batch, stop
from refract.library.importing.rollback import roll_back_slice

BREATH_SECONDS = 0.01
ABANDONED = timedelta(days=1)
"""No command takes that long: whatever did not end by then was killed."""


class RunImport(Payload):
    """Make items of the rows of an import."""

    kind: ClassVar[str] = "library.import"
    import_id: Id


class RollBackImport(Payload):
    """Remove what an import brought."""

    kind: ClassVar[str] = "library.roll_back_import"
    import_id: Id


class EndImport(Payload):
    """Say of an import that it goes no further, unless it has ended already."""

    kind: ClassVar[str] = "library.end_import"
    import_id: Id


async def run_later(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    await enqueue(session, rt, RunImport(import_id=import_id), share=user_id)


async def roll_back_later(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    await enqueue(session, rt, RollBackImport(import_id=import_id), share=user_id)


async def end_if_abandoned(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    """An import that no worker goes on with, but a command that may be killed."""
    await enqueue(session, rt, EndImport(import_id=import_id), run_at=rt.clock.now() + ABANDONED, share=user_id)


@handles(RunImport)
async def run_import(rt: Runtime, job: RunImport) -> None:
    while await bring_batch(rt, job.import_id):
        await rt.clock.sleep(BREATH_SECONDS)


@handles(RollBackImport)
async def roll_back_import(rt: Runtime, job: RollBackImport) -> None:
    while await roll_back_slice(rt, job.import_id):
        await rt.clock.sleep(BREATH_SECONDS)


@handles(EndImport)
async def end_import(rt: Runtime, job: EndImport) -> None:
    async with rt.db.write() as session:
        one = await session.get(Import, job.import_id)
        if one is not None:
            await stop(session, one, rt.clock.now())


HANDLERS = (run_import, roll_back_import, end_import)
PERIODIC: tuple[Every, ...] = ()
