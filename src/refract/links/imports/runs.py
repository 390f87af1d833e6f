"""Imports of links as objects: what became of each row is stored with the links it made."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import func, select, update

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.core.errors import Conflict
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User, UserRole
from refract.imports.models import ImportRow, ImportRun, ImportStatus, ImportSubject, RowOutcome
from refract.imports.payloads import enqueue_abandoned_import_check, enqueue_import
from refract.imports.service import add_stored_rows, create_import, lock_import
from refract.imports.upload import build_task, read_rows
from refract.jobs.cleanup import enqueue_statistics
from refract.limits.service import charge
from refract.links.imports.formats import LinkFileFormat
from refract.links.imports.importer import (
    LinkImporter,
    LinkImportOutcome,
    LinkImportResult,
    NameConflictPolicy,
)
from refract.links.imports.stored_rows import (
    MAX_WHY,
    clean_text,
    from_stored_row,
    summarize_row,
)
from refract.links.service.create import creation_limit
from refract.names.service import namespace_of
from refract.records.stored_rows import StoredRow, parse_stored_rows, split_end

BATCH_SIZE = 250
"""Rows of a transaction in a job, so that other writers never wait long."""
REMARK_SEPARATOR = "; "
IMPORTED_PER_CREATED = 100
"""Rows of uploads per hour, for each link that may be created per hour."""
STORE_ROWS_TASK = build_task("link_import", "refract.links.imports.stored_rows:write_stored_rows")

_OUTCOMES = {
    LinkImportOutcome.CREATED: RowOutcome.CREATED,
    LinkImportOutcome.EXISTS: RowOutcome.EXISTS,
    LinkImportOutcome.SKIPPED: RowOutcome.SKIPPED,
    LinkImportOutcome.REFUSED: RowOutcome.REFUSED,
}


class ImportEnded(Conflict):
    """This import was stopped or undone meanwhile."""


class ImportNotTried(Conflict):
    """Only a dry run that is done can be run. Upload the file again."""


class UploadedLinks:
    """The rows of an uploaded file as bytes, with its format."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces, end = split_end(pieces)
        self.kind = LinkFileFormat(end["kind"])
        self.unread: Sequence[str] = end["unread"]
        self.columns: Mapping[str, str] = end["columns"]

    @property
    def rows(self) -> Iterator[StoredRow]:
        return parse_stored_rows(self._pieces)


async def read_link_upload(
    rt: Runtime,
    user_id: int,
    body: bytes,
    kind: LinkFileFormat,
    mapping: Mapping[str, str] | None = None,
) -> UploadedLinks:
    """Return the rows of a file. Raises `UnreadableFile` or `ImportsBusy`.

    `mapping` names the headings of a table that mean our fields.
    """
    arguments = {"kind": kind.value, "now": rt.clock.now().isoformat(), "mapping": mapping or {}}
    return UploadedLinks(await read_rows(rt, STORE_ROWS_TASK, user_id, body, **arguments))


async def start_link_import(
    session: WriteSession,
    rt: Runtime,
    user: User,
    file: UploadedLinks,
    name: str | None,
    *,
    conflict: NameConflictPolicy,
    dry_run: bool,
) -> ImportRun:
    """Store the rows of a file; a worker imports or tries them."""
    options = {
        "conflict": conflict.value,
        "keep_ids": user.role == UserRole.ADMIN,
        "unread": list(file.unread),
        "columns": dict(file.columns),
    }
    import_run = await create_import(
        session, rt, user.id, file.kind, name, ImportSubject.LINKS, options
    )
    import_run.dry_run = dry_run
    rows = file.rows
    while batch := list(islice(rows, BATCH_SIZE)):
        await add_stored_rows(session, import_run, batch)
    await charge_rows(session, rt, user, import_run.total)
    await enqueue_import(session, rt, import_run)
    await audit.record_event(session, rt, "links.import", actor=user, target=str(import_run.id))
    return import_run


async def charge_rows(session: WriteSession, rt: Runtime, user: User, rows: int) -> None:
    """Charge rows that were uploaded or fetched. Raises `RateLimited`."""
    limit = creation_limit(rt, user)
    per_hour = None if limit is None else limit * IMPORTED_PER_CREATED
    await charge(session, f"imports:{user.id}", rows, per_hour=per_hour, now=rt.clock.now())


async def run_tried_import(session: WriteSession, rt: Runtime, import_run: ImportRun) -> ImportRun:
    """Import the rows of a dry run."""
    locked = await lock_import(session, import_run.id) or import_run
    if locked.status != ImportStatus.DONE or not locked.dry_run:
        raise ImportNotTried
    locked.dry_run, locked.status, locked.finished_at = False, ImportStatus.RUNNING, None
    await _reset_rows(session, locked)
    await enqueue_import(session, rt, locked)
    return locked


async def _reset_rows(session: WriteSession, locked: ImportRun) -> None:
    """Let all rows wait again, as before a dry run. Unreadable ones keep their outcome."""
    readable = update(ImportRow).where(
        ImportRow.import_id == locked.id, ImportRow.content.is_not(None)
    )
    await session.execute(
        readable.values(outcome=RowOutcome.WAITING, why=None).execution_options(
            synchronize_session=False
        )
    )
    counted = select(func.count()).where(
        ImportRow.import_id == locked.id, ImportRow.outcome == RowOutcome.REFUSED
    )
    locked.created = locked.existing = locked.skipped = 0
    locked.refused = await session.scalar(counted) or 0
    await session.flush()


class LinkImportJob:
    """A worker's turn at an import whose rows are stored."""

    def __init__(self, rt: Runtime, import_run: ImportRun, owner: User) -> None:
        options = import_run.options or {}
        self._rt = rt
        self._id = import_run.id
        self._dry_run = import_run.dry_run
        self._importer = LinkImporter(
            rt,
            namespace_of(rt),
            owner,
            conflict=NameConflictPolicy(options.get("conflict", NameConflictPolicy.SKIP)),
            dry_run=self._dry_run,
            keep_ids=bool(options.get("keep_ids")),
        )

    @classmethod
    async def begin(cls, rt: Runtime, import_id: int) -> "LinkImportJob | None":
        """Return the import to work on, or None if it is not running any more.

        A dry run starts again, because names that its first rows took are only in memory.
        """
        async with rt.db.write() as session:
            locked = await lock_import(session, import_id)
            if locked is None or locked.status != ImportStatus.RUNNING:
                return None
            if locked.dry_run and locked.done:
                await _reset_rows(session, locked)
            return cls(rt, locked, await session.get_one(User, locked.user_id))

    async def import_batch(self) -> int:
        """Import the next rows with their outcome and commit; return how many there were."""
        async with self._rt.db.read() as session:
            waiting = select(ImportRow).where(
                ImportRow.import_id == self._id, ImportRow.outcome == RowOutcome.WAITING
            )
            batch = list(
                await session.scalars(waiting.order_by(ImportRow.number).limit(BATCH_SIZE))
            )
        if not batch:
            await self._finish()
            return 0
        numbers = [row.number for row in batch]
        rows = [from_stored_row(row.place, row.shown, row.why, row.content) for row in batch]

        async def record(session: WriteSession, results: Sequence[LinkImportResult]) -> None:
            await self._record(session, dict(zip(numbers, results, strict=True)))

        try:
            await self._importer.import_batch(rows, record)
        except ImportEnded:
            return 0
        return len(batch)

    async def _record(self, session: WriteSession, results: Mapping[int, LinkImportResult]) -> None:
        locked = await lock_import(session, self._id)
        waiting = select(func.count()).where(
            ImportRow.import_id == self._id,
            ImportRow.number.in_(results),
            ImportRow.outcome == RowOutcome.WAITING,
        )
        still = locked is not None and locked.status == ImportStatus.RUNNING
        if locked is None or not still or await session.scalar(waiting) != len(results):
            raise ImportEnded  # stopped, or done by another worker
        keep = {} if self._dry_run else {"content": None}
        changes = [
            {"import_id": self._id, "number": number, **_describe_result(result), **keep}
            for number, result in results.items()
        ]
        await session.execute(update(ImportRow), changes)
        _count_results(locked, list(results.values()))

    async def _finish(self) -> None:
        async with self._rt.db.write() as session:
            locked = await lock_import(session, self._id)
            if locked is not None and locked.status == ImportStatus.RUNNING:
                locked.status, locked.finished_at = ImportStatus.DONE, self._rt.clock.now()
                await enqueue_statistics(session, self._rt, locked.total)


class LinkImportRecorder:
    """The import of a command, whose rows are stored with their outcome."""

    def __init__(self, rt: Runtime, user_id: int, name: str | None) -> None:
        self._rt, self._user_id, self._name = rt, user_id, name
        self.import_id: int | None = None
        self._pending_id: int | None = None

    def build_record(self, kind: str) -> Any:
        """Return what `LinkImporter.import_batch` calls inside its transaction."""

        async def record(session: WriteSession, results: Sequence[LinkImportResult]) -> None:
            locked = await self._open(session, kind)
            rows = [
                {
                    "import_id": locked.id,
                    "number": number,
                    **summarize_row(result.row)._asdict(),
                    **_describe_result(result),
                }
                for number, result in enumerate(results, start=locked.total + 1)
            ]
            await insert_rows(session, ImportRow, rows)
            locked.total += len(rows)
            _count_results(locked, results)
            await session.flush()
            self._pending_id = locked.id

        return record

    def confirm(self) -> None:
        """Note that the transaction of the last record was committed."""
        self.import_id = self._pending_id

    async def _open(self, session: WriteSession, kind: str) -> ImportRun:
        if self.import_id is None:
            made = await create_import(
                session, self._rt, self._user_id, kind, self._name, ImportSubject.LINKS
            )
            await enqueue_abandoned_import_check(session, self._rt, made)
            return made
        locked = await lock_import(session, self.import_id)
        if locked is None or locked.status != ImportStatus.RUNNING:
            raise ImportEnded
        return locked

    async def end(self, *, complete: bool) -> None:
        """Mark the import as done, or as stopped."""
        if self.import_id is None:
            return
        async with self._rt.db.write() as session:
            locked = await lock_import(session, self.import_id)
            if locked is not None and locked.status == ImportStatus.RUNNING:
                locked.status = ImportStatus.DONE if complete else ImportStatus.STOPPED
                locked.finished_at = self._rt.clock.now()


def _describe_result(result: LinkImportResult) -> dict[str, Any]:
    """Return the columns of a row that tell what became of it."""
    said = [text for text in (result.why, *result.remarks) if text]
    return {
        "outcome": _OUTCOMES[result.outcome].value,
        "why": clean_text(REMARK_SEPARATOR.join(said), MAX_WHY) or None,
        "item_id": result.link_id,
        "version": result.version,
    }


def _count_results(locked: ImportRun, results: Sequence[LinkImportResult]) -> None:
    counts = Counter(result.outcome for result in results)
    locked.created += counts[LinkImportOutcome.CREATED]
    locked.existing += counts[LinkImportOutcome.EXISTS]
    locked.skipped += counts[LinkImportOutcome.SKIPPED]
    locked.refused += counts[LinkImportOutcome.REFUSED]
