"""Jobs of imports and their roll-backs."""

from datetime import timedelta
from typing import ClassVar

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.imports.models import ImportRun, ImportStatus, ImportSubject
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue

ABANDONED_AFTER = timedelta(days=1)
"""No command takes that long: an import that has not ended by then was killed."""


class RunImport(JobPayload):
    """Import the rows of an import into the library."""

    kind: ClassVar[str] = "library.import"
    import_id: Id


class RollBackImport(JobPayload):
    """Remove what an import created in the library."""

    kind: ClassVar[str] = "library.roll_back_import"
    import_id: Id


class RunLinkImport(JobPayload):
    """Import the rows of an import of links, or try them."""

    kind: ClassVar[str] = "links.import"
    import_id: Id


class RollBackLinkImport(JobPayload):
    """Remove the links that an import created."""

    kind: ClassVar[str] = "links.roll_back_import"
    import_id: Id


class EndImport(JobPayload):
    """Stop an import, unless it has ended already."""

    kind: ClassVar[str] = "library.end_import"
    import_id: Id


class StopStuckImports(JobPayload):
    """Stop imports and roll-backs whose job is dead."""

    kind: ClassVar[str] = "library.stop_stuck_imports"


_RUNS: dict[str, type[RunImport | RunLinkImport]] = {
    ImportSubject.LIBRARY: RunImport,
    ImportSubject.LINKS: RunLinkImport,
}
_ROLLBACKS: dict[str, type[RollBackImport | RollBackLinkImport]] = {
    ImportSubject.LIBRARY: RollBackImport,
    ImportSubject.LINKS: RollBackLinkImport,
}
STATUS_OF_JOB: dict[str, ImportStatus] = {
    **{payload.kind: ImportStatus.RUNNING for payload in _RUNS.values()},
    **{payload.kind: ImportStatus.ROLLING_BACK for payload in _ROLLBACKS.values()},
}
"""The status of an import while a job of this kind works on it."""


async def enqueue_import(session: WriteSession, rt: Runtime, import_run: ImportRun) -> None:
    payload = _RUNS[import_run.subject](import_id=import_run.id)
    await enqueue(session, rt, payload, share=import_run.user_id)


async def enqueue_rollback(session: WriteSession, rt: Runtime, import_run: ImportRun) -> None:
    payload = _ROLLBACKS[import_run.subject](import_id=import_run.id)
    await enqueue(session, rt, payload, share=import_run.user_id)


async def enqueue_abandoned_import_check(
    session: WriteSession, rt: Runtime, import_run: ImportRun
) -> None:
    """Enqueue a job that stops the import of a command if the command was killed."""
    run_at = rt.clock.now() + ABANDONED_AFTER
    payload = EndImport(import_id=import_run.id)
    await enqueue(session, rt, payload, run_at=run_at, share=import_run.user_id)
