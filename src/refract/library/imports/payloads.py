"""Jobs of imports and their roll-backs, as rows of the queue."""

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


async def enqueue_rollback(
    session: WriteSession, rt: Runtime, user_id: int, import_id: int
) -> None:
    await enqueue(session, rt, RollBackImport(import_id=import_id), share=user_id)


async def enqueue_abandoned_import_check(
    session: WriteSession, rt: Runtime, user_id: int, import_id: int
) -> None:
    """An import that no worker goes on with, but a command that may be killed."""
    await enqueue(
        session,
        rt,
        EndImport(import_id=import_id),
        run_at=rt.clock.now() + ABANDONED_AFTER,
        share=user_id,
    )
