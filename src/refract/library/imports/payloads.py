"""Jobs of imports and their roll-backs."""

from datetime import timedelta
from typing import ClassVar

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue

ABANDONED_AFTER = timedelta(days=1)
"""No command takes that long: an import that has not ended by then was killed."""


class RunImport(JobPayload):
    """Import the rows of an import."""

    kind: ClassVar[str] = "library.import"
    import_id: Id


class RollBackImport(JobPayload):
    """Remove what an import created."""

    kind: ClassVar[str] = "library.roll_back_import"
    import_id: Id


class EndImport(JobPayload):
    """Stop an import, unless it has ended already."""

    kind: ClassVar[str] = "library.end_import"
    import_id: Id


class StopStuckImports(JobPayload):
    """Stop imports and roll-backs whose job is dead."""

    kind: ClassVar[str] = "library.stop_stuck_imports"


async def enqueue_import(session: WriteSession, rt: Runtime, user_id: int, import_id: int) -> None:
    await enqueue(session, rt, RunImport(import_id=import_id), share=user_id)


async def enqueue_rollback(
    session: WriteSession, rt: Runtime, user_id: int, import_id: int
) -> None:
    await enqueue(session, rt, RollBackImport(import_id=import_id), share=user_id)


async def enqueue_abandoned_import_check(
    session: WriteSession, rt: Runtime, user_id: int, import_id: int
) -> None:
    """Enqueue a job that stops the import of a command if the command was killed."""
    await enqueue(
        session,
        rt,
        EndImport(import_id=import_id),
        run_at=rt.clock.now() + ABANDONED_AFTER,
        share=user_id,
    )
