"""Whole files, as the API and the pages take them: tried out, begun, watched, stopped and taken back."""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from refract.core.db import ReadSession, WriteSession
from refract.core.page import Cursors, Page, after
from refract.core.runtime import Runtime
from refract.core.text import shown
from refract.identity import audit
from refract.identity.models import User
from refract.library.errors import ImportNotFound
from refract.library.import_jobs import roll_back_later, run_later
from refract.library.import_models import Import, ImportRow, RowOutcome
from refract.library.importing.bring import add_rows, begin, try_out
from refract.library.importing.formats import Kind, open_rows
from refract.library.importing.judging import Earlier
from refract.library.importing.rollback import begin_rollback
from refract.library.importing.rows import Row

MOST_TOLD = 1_000
_SLICE = 500


@dataclass(frozen=True, slots=True)
class File:
    """What is in a file, and what wrote it."""

    rows: Sequence[Row]
    kind: Kind


@dataclass(frozen=True, slots=True)
class TriedRow:
    """What would become of a row."""

    number: int
    place: str
    shown: str
    outcome: RowOutcome
    why: str | None
    item_id: int | None


@dataclass(frozen=True, slots=True)
class Trial:
    """What would become of a file; of its rows the first thousand, or of those that would not come."""

    kind: Kind
    total: int
    created: int
    existing: int
    refused: int
    rows: Sequence[TriedRow]


async def read_file(body: bytes, kind: Kind) -> File:
    """The rows of a file; `UnreadableFile` when it is none of those that we know."""

    def read() -> File:
        rows = open_rows(io.BytesIO(body), kind)
        return File(list(rows), rows.kind)

    return await asyncio.to_thread(read)


async def try_file(session: ReadSession, user_id: int, file: File, now: datetime, *, left_out: bool = False) -> Trial:
    """With `left_out`, the trial tells of rows that would not come and of no others."""
    earlier = Earlier()
    told: list[TriedRow] = []
    outcomes: list[RowOutcome] = []
    for start in range(0, len(file.rows), _SLICE):
        some = file.rows[start : start + _SLICE]
        verdicts = await try_out(session, user_id, some, earlier, now)
        outcomes += [verdict.outcome for verdict in verdicts]
        for number, (row, verdict) in enumerate(zip(some, verdicts, strict=True), start=start + 1):
            if len(told) < MOST_TOLD and not (left_out and verdict.outcome is RowOutcome.CREATED):
                told.append(TriedRow(number, row.where, shown(row.text, 200), verdict.outcome, verdict.why, verdict.item_id))
    created, existing, refused = (outcomes.count(one) for one in (RowOutcome.CREATED, RowOutcome.EXISTS, RowOutcome.REFUSED))
    return Trial(file.kind, len(file.rows), created, existing, refused, told)


async def begin_file(session: WriteSession, rt: Runtime, user: User, file: File, name: str | None) -> Import:
    """Take the rows in; a worker makes items of them."""
    one = await begin(session, rt, user.id, file.kind, name)
    for start in range(0, len(file.rows), _SLICE):
        await add_rows(session, one, file.rows[start : start + _SLICE])
    await run_later(session, rt, one.id)
    await audit.note(session, rt, "library.import", actor=user, target=str(one.id))
    return one


async def take_back(session: WriteSession, rt: Runtime, user: User, import_id: int) -> Import:
    """Remove what an import brought; a worker does so."""
    one = await begin_rollback(session, await my_import(session, user.id, import_id), rt.clock.now())
    await roll_back_later(session, rt, import_id)
    await audit.note(session, rt, "library.import_rolled_back", actor=user, target=str(import_id))
    return one


async def my_import(session: ReadSession, user_id: int, import_id: int) -> Import:
    one = await session.scalar(select(Import).where(Import.id == import_id, Import.user_id == user_id))
    if one is None:
        raise ImportNotFound
    return one


async def my_imports(session: ReadSession, cursors: Cursors, user_id: int, limit: int, cursor: str | None) -> Page[Import]:
    """The latest first."""
    question = ["imports", user_id]
    wanted = select(Import).where(Import.user_id == user_id)
    if cursor:
        wanted = wanted.where(after([Import.id], cursors.read(question, cursor), descending=True))
    rows = list(await session.scalars(wanted.order_by(Import.id.desc()).limit(limit + 1)))
    return cursors.page(question, rows, limit, lambda one: [one.id])


async def rows_of(
    session: ReadSession, cursors: Cursors, import_id: int, outcome: RowOutcome | None, limit: int, cursor: str | None
) -> Page[ImportRow]:
    """What became of each row, in the order of the file."""
    question = ["import", import_id, outcome]
    wanted = select(ImportRow).where(ImportRow.import_id == import_id)
    if outcome is not None:
        wanted = wanted.where(ImportRow.outcome == outcome)
    if cursor:
        wanted = wanted.where(after([ImportRow.number], cursors.read(question, cursor), descending=False))
    rows = list(await session.scalars(wanted.order_by(ImportRow.number).limit(limit + 1)))
    return cursors.page(question, rows, limit, lambda row: [row.number])
