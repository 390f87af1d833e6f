"""Imports of whole files for the API and pages: preview, start, list, roll back."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

from sqlalchemy import select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User
from refract.library.errors import ImportNotFound
from refract.library.imports.decisions import SeenRows, decide_rows
from refract.library.imports.formats import BookmarkFileFormat
from refract.library.imports.importer import add_stored_rows, create_import
from refract.library.imports.models import ImportRow, LibraryImport, RowOutcome
from refract.library.imports.payloads import enqueue_import, enqueue_rollback
from refract.library.imports.rollback import mark_rolling_back
from refract.library.imports.upload import UploadedRows

MAX_PREVIEW_ROWS = 1_000
_BATCH_SIZE = 200
"""Rows that are handled between two turns of the event loop."""
UploadRowT = TypeVar("UploadRowT")


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """The outcome that a row would have."""

    number: int
    place: str
    shown: str
    outcome: RowOutcome
    why: str | None
    item_id: int | None


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """The outcome that a file would have, with its first thousand rows or the first to skip."""

    kind: BookmarkFileFormat
    total: int
    created: int
    existing: int
    refused: int
    rows: Sequence[PreviewRow]


async def preview_file(
    session: ReadSession,
    user_id: int,
    file: UploadedRows,
    now: datetime,
    *,
    only_left_out: bool = False,
) -> ImportPreview:
    """Return what an import would do.

    With `only_left_out`, it has only rows that would be skipped.
    """
    earlier = SeenRows()
    preview_rows: list[PreviewRow] = []
    outcomes: Counter[RowOutcome] = Counter()
    number = 0
    for batch in _iter_batches(file.iter_rows()):
        decisions = await decide_rows(
            session,
            user_id,
            {index: row.classified for index, row in enumerate(batch)},
            earlier,
            now,
        )
        for index, row in enumerate(batch):
            decision = decisions[index]
            number += 1
            outcomes[decision.outcome] += 1
            if len(preview_rows) < MAX_PREVIEW_ROWS and not (
                only_left_out and decision.outcome is RowOutcome.CREATED
            ):
                preview_rows.append(
                    PreviewRow(
                        number,
                        row.place,
                        row.shown,
                        decision.outcome,
                        decision.why,
                        decision.item_id,
                    )
                )
        await asyncio.sleep(0)
    created, existing, refused = (
        outcomes[outcome] for outcome in (RowOutcome.CREATED, RowOutcome.EXISTS, RowOutcome.REFUSED)
    )
    return ImportPreview(file.kind, number, created, existing, refused, preview_rows)


async def start_import(
    session: WriteSession, rt: Runtime, user: User, file: UploadedRows, name: str | None
) -> LibraryImport:
    """Store the rows of a file; a worker imports them."""
    library_import = await create_import(session, rt, user.id, file.kind, name)
    for batch in _iter_batches(file.iter_stored_rows()):
        await add_stored_rows(session, library_import, batch)
        await asyncio.sleep(0)
    await enqueue_import(session, rt, user.id, library_import.id)
    await audit.record_event(
        session, rt, "library.import", actor=user, target=str(library_import.id)
    )
    return library_import


def _iter_batches(rows: Iterator[UploadRowT]) -> Iterator[list[UploadRowT]]:
    while batch := list(islice(rows, _BATCH_SIZE)):
        yield batch


async def start_rollback(
    session: WriteSession, rt: Runtime, user: User, import_id: int
) -> LibraryImport:
    """Remove what an import created; a worker does so."""
    library_import = await mark_rolling_back(
        session, await get_own_import(session, user.id, import_id), rt.clock.now()
    )
    await enqueue_rollback(session, rt, user.id, import_id)
    await audit.record_event(
        session, rt, "library.import_rolled_back", actor=user, target=str(import_id)
    )
    return library_import


async def get_own_import(session: ReadSession, user_id: int, import_id: int) -> LibraryImport:
    library_import = await session.scalar(
        select(LibraryImport).where(LibraryImport.id == import_id, LibraryImport.user_id == user_id)
    )
    if library_import is None:
        raise ImportNotFound
    return library_import


async def list_own_imports(
    session: ReadSession, cursors: CursorCodec, user_id: int, limit: int, cursor: str | None
) -> Page[LibraryImport]:
    """Return the user's imports, newest first."""
    binding = ["imports", user_id]
    query = select(LibraryImport).where(LibraryImport.user_id == user_id)
    if cursor:
        query = query.where(
            build_after_clause([LibraryImport.id], cursors.decode(binding, cursor), descending=True)
        )
    rows = list(await session.scalars(query.order_by(LibraryImport.id.desc()).limit(limit + 1)))
    return cursors.build_page(binding, rows, limit, lambda library_import: [library_import.id])


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
