"""The life of an import: create it, store rows, stop, roll back, list. Callers commit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import select, update

from refract.core.db.bulk import insert_rows
from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User
from refract.imports.errors import ImportClosed, ImportNotFound
from refract.imports.models import ImportRow, ImportRun, ImportStatus, ImportSubject, RowOutcome
from refract.imports.payloads import enqueue_rollback
from refract.records.stored_rows import StoredRow

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


async def create_import(
    session: WriteSession,
    rt: Runtime,
    user_id: int,
    kind: str,
    name: str | None,
    subject: ImportSubject = ImportSubject.LIBRARY,
    options: dict[str, Any] | None = None,
) -> ImportRun:
    """Create an import without rows."""
    import_run = ImportRun(
        id=rt.ids.next_id(),
        user_id=user_id,
        kind=kind,
        name=name[:255] if name else None,
        status=ImportStatus.RUNNING,
        total=0,
        created=0,
        existing=0,
        skipped=0,
        refused=0,
        kept=0,
        made_tags={"made": [], "revived": []},
        created_at=rt.clock.now(),
        finished_at=None,
        subject=subject.value,
        options=options,
        dry_run=False,
    )
    session.add(import_run)
    await session.flush()
    return import_run


async def add_stored_rows(
    session: WriteSession, import_run: ImportRun, rows: Sequence[StoredRow]
) -> None:
    """Store rows until they are imported."""
    waiting = {
        "import_id": import_run.id,
        "outcome": RowOutcome.WAITING,
        "item_id": None,
        "version": None,
    }
    numbered = [
        {**waiting, "number": number, **row._asdict()}
        for number, row in enumerate(rows, start=import_run.total + 1)
    ]
    await insert_rows(session, ImportRow, numbered)
    import_run.total += len(rows)
    await session.flush()


async def lock_import(session: WriteSession, import_id: int) -> ImportRun | None:
    """Return the import, locked until the transaction ends."""
    row = (
        select(ImportRun)
        .where(ImportRun.id == import_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return cast("ImportRun | None", await session.scalar(row))


async def stop_running_import(
    session: WriteSession, import_run: ImportRun, now: datetime
) -> ImportRun:
    """Stop an import; what it made stays."""
    locked = await lock_import(session, import_run.id) or import_run
    if locked.status == ImportStatus.RUNNING:
        await stop_import(session, locked, now)
    return locked


async def stop_import(session: WriteSession, locked: ImportRun, now: datetime) -> None:
    """Mark a locked import as stopped and erase rows that are not imported yet."""
    locked.status, locked.finished_at = ImportStatus.STOPPED, now
    if locked.options:  # without a source, which holds a key
        locked.options = {name: value for name, value in locked.options.items() if name != "source"}
    statement = (
        update(ImportRow)
        .where(ImportRow.import_id == locked.id, ImportRow.outcome == RowOutcome.WAITING)
        .values(content=None)
    )
    await session.execute(statement.execution_options(**_NO_SYNC))


async def mark_rolling_back(
    session: WriteSession, import_run: ImportRun, now: datetime
) -> ImportRun:
    """Mark an import as rolling back.

    Nothing is added to it any more, and what it made is removed in batches.
    """
    stopped = await stop_running_import(session, import_run, now)
    if stopped.status == ImportStatus.ROLLED_BACK:
        raise ImportClosed
    stopped.status = ImportStatus.ROLLING_BACK
    return stopped


async def start_rollback(
    session: WriteSession, rt: Runtime, user: User, subject: ImportSubject, import_id: int
) -> ImportRun:
    """Remove what an import created; a worker does so."""
    import_run = await mark_rolling_back(
        session, await get_own_import(session, user.id, subject, import_id), rt.clock.now()
    )
    await enqueue_rollback(session, rt, import_run)
    await audit.record_event(
        session, rt, f"{subject}.import_rolled_back", actor=user, target=str(import_id)
    )
    return import_run


async def get_own_import(
    session: ReadSession, user_id: int, subject: ImportSubject | None, import_id: int
) -> ImportRun:
    """Return an import of a user; None stands for any subject."""
    import_run = await session.get(ImportRun, import_id)
    if (
        import_run is None
        or import_run.user_id != user_id
        or subject not in (None, import_run.subject)
    ):
        raise ImportNotFound
    return import_run


async def list_own_imports(
    session: ReadSession,
    cursors: CursorCodec,
    user_id: int,
    subject: ImportSubject,
    limit: int,
    cursor: str | None,
) -> Page[ImportRun]:
    """Return the user's imports, newest first."""
    binding = ["imports", user_id, subject]
    query = select(ImportRun).where(ImportRun.user_id == user_id, ImportRun.subject == subject)
    if cursor:
        query = query.where(
            build_after_clause([ImportRun.id], cursors.decode(binding, cursor), descending=True)
        )
    rows = list(await session.scalars(query.order_by(ImportRun.id.desc()).limit(limit + 1)))
    return cursors.build_page(binding, rows, limit, lambda import_run: [import_run.id])


async def list_rows(
    session: ReadSession,
    cursors: CursorCodec,
    import_id: int,
    outcome: RowOutcome | None,
    limit: int,
    cursor: str | None,
) -> Page[ImportRow]:
    """Return the rows of an import with their outcome, in the order of the file."""
    binding = ["import", import_id, outcome]
    query = select(ImportRow).where(ImportRow.import_id == import_id)
    if outcome is not None:
        query = query.where(ImportRow.outcome == outcome)
    if cursor:
        query = query.where(
            build_after_clause(
                [ImportRow.number], cursors.decode(binding, cursor), descending=False
            )
        )
    rows = list(await session.scalars(query.order_by(ImportRow.number).limit(limit + 1)))
    return cursors.build_page(binding, rows, limit, lambda row: [row.number])
