"""Whole files, as the API and the pages take them: tried out, begun, watched, stopped and taken back."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

from sqlalchemy import select

from refract.core.db import ReadSession, WriteSession
from refract.core.page import Cursors, Page, after
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User
from refract.library.errors import ImportNotFound
from refract.library.import_jobs import roll_back_later, run_later
from refract.library.import_models import Import, ImportRow, RowOutcome
from refract.library.importing.bring import add_kept_rows, begin
from refract.library.importing.formats import Kind
from refract.library.importing.judging import Earlier, judge
from refract.library.importing.reading import FileRows
from refract.library.importing.rollback import begin_rollback

MOST_TOLD = 1_000
_SLICE = 200
"""Rows that are taken in between two turns of the event loop."""
Item = TypeVar("Item")


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


async def try_file(session: ReadSession, user_id: int, file: FileRows, now: datetime, *, left_out: bool = False) -> Trial:
    """With `left_out`, the trial tells of rows that would not come and of no others."""
    earlier = Earlier()
    told: list[TriedRow] = []
    outcomes: Counter[RowOutcome] = Counter()
    number = 0
    for some in _batches(file.weighed()):
        verdicts = await judge(session, user_id, {at: row.weighed for at, row in enumerate(some)}, earlier, now)
        for at, row in enumerate(some):
            verdict = verdicts[at]
            number += 1
            outcomes[verdict.outcome] += 1
            if len(told) < MOST_TOLD and not (left_out and verdict.outcome is RowOutcome.CREATED):
                told.append(TriedRow(number, row.place, row.shown, verdict.outcome, verdict.why, verdict.item_id))
        await asyncio.sleep(0)
    created, existing, refused = (outcomes[outcome] for outcome in (RowOutcome.CREATED, RowOutcome.EXISTS, RowOutcome.REFUSED))
    return Trial(file.kind, number, created, existing, refused, told)


async def begin_file(session: WriteSession, rt: Runtime, user: User, file: FileRows, name: str | None) -> Import:
    """Take the rows in; a worker makes items of them."""
    one = await begin(session, rt, user.id, file.kind, name)
    for some in _batches(file.kept()):
        await add_kept_rows(session, one, some)
        await asyncio.sleep(0)
    await run_later(session, rt, user.id, one.id)
    await audit.note(session, rt, "library.import", actor=user, target=str(one.id))
    return one


def _batches(rows: Iterator[Item]) -> Iterator[list[Item]]:
    while some := list(islice(rows, _SLICE)):
        yield some


async def take_back(session: WriteSession, rt: Runtime, user: User, import_id: int) -> Import:
    """Remove what an import brought; a worker does so."""
    one = await begin_rollback(session, await my_import(session, user.id, import_id), rt.clock.now())
    await roll_back_later(session, rt, user.id, import_id)
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
