"""Imports of whole files for the API and pages: preview, start, list, roll back."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User
from refract.imports.models import ImportRun, RowOutcome
from refract.imports.payloads import enqueue_import
from refract.imports.service import add_stored_rows, create_import
from refract.library.imports.decisions import SeenRows, decide_rows
from refract.library.imports.formats import BookmarkFileFormat
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
) -> ImportRun:
    """Store the rows of a file; a worker imports them."""
    import_run = await create_import(session, rt, user.id, file.kind, name)
    for batch in _iter_batches(file.iter_stored_rows()):
        await add_stored_rows(session, import_run, batch)
        await asyncio.sleep(0)
    await enqueue_import(session, rt, import_run)
    await audit.record_event(session, rt, "library.import", actor=user, target=str(import_run.id))
    return import_run


def _iter_batches(rows: Iterator[UploadRowT]) -> Iterator[list[UploadRowT]]:
    while batch := list(islice(rows, _BATCH_SIZE)):
        yield batch
