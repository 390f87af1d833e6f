"""Numbers under which processes write open roll-ups at the same time.

A writer holds the lock of its number's row while it writes, and writes only rows with this number.
So no writer waits for another one, and none overwrites what another one has written. Nothing has to
be released: the lock ends with the transaction, also if the process dies.

A process keeps its number for as long as no other process uses it. So it need not read what it has
written itself: `turn` tells whether its rows have changed since.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Table, func, select, update

from refract.clicks.models import RollupWriter
from refract.clicks.rollups.granularity import to_datetime, to_seconds
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.settings.model import Dialect

MAX_WRITERS: Final[dict[Dialect, int]] = {"sqlite": 1, "postgresql": 16, "mysql": 16}
"""Processes that write at the same time; more take turns. SQLite has one writer anyway."""
_TABLE: Table = RollupWriter.__table__  # type: ignore[assignment]
_NEVER: Final = to_datetime(2**33)  # later than any open roll-up


@dataclass(frozen=True, slots=True)
class LockedWriter:
    """The locked row of a number."""

    number: int
    holder: int
    turn: int
    oldest: int


class WriterClaim:
    """A process's claim to a number."""

    def __init__(self) -> None:
        self._holder = secrets.randbits(62)
        self._number: int | None = None
        self._turn = -1

    @property
    def number(self) -> int | None:
        """Return the number that this process used last."""
        return self._number

    async def lock(self, session: WriteSession) -> LockedWriter:
        """Lock this process's number, or another one, until the transaction ends.

        It never waits for a number while it holds the lock of another one: `lock_all_writers`
        waits for the numbers one after the other, and both would wait for ever.
        """
        if self._number is not None:
            holder = select(_TABLE.c.holder).where(_TABLE.c.number == self._number)
            if await session.scalar(holder) == self._holder:
                return await lock_writer(session, self._number)
        return await _lock_least_used(session)

    def is_current(self, writer: LockedWriter) -> bool:
        """Return whether the rows of this number are unchanged since `save`."""
        return (writer.number, writer.holder, writer.turn) == (
            self._number,
            self._holder,
            self._turn,
        )

    async def save(self, session: WriteSession, writer: LockedWriter, oldest: int) -> None:
        """Keep this number, after writing rows that begin at `oldest` or later."""
        self._number, self._turn = writer.number, writer.turn + 1
        await save_writer(session, writer, min(oldest, writer.oldest), holder=self._holder)


async def create_writers(session: WriteSession) -> None:
    """Create the numbers, if they are missing, before the transactions that lock them.

    Another process that creates them waits for the end of this transaction.
    """
    count = select(func.count()).select_from(_TABLE)
    if (await session.scalar(count) or 0) < MAX_WRITERS[session.dialect]:
        await _create_numbers(session)


async def lock_writer(session: WriteSession, number: int) -> LockedWriter:
    """Wait for the lock of an existing number."""
    writer = await _lock(session, number, skip=False)
    assert writer is not None  # noqa: S101 - numbers are never deleted
    return writer


async def lock_all_writers(session: WriteSession) -> list[LockedWriter]:
    """Wait for the locks of all numbers, which excludes all writers of open roll-ups.

    The caller holds the lock of the state, since folding locks a number after it.
    """
    query = select(_TABLE).order_by(_TABLE.c.number).with_for_update()
    rows = (await session.execute(query)).all()
    if len(rows) < MAX_WRITERS[session.dialect]:
        await _create_numbers(session)
        rows = (await session.execute(query)).all()
    return [_to_writer(row) for row in rows]


async def save_writer(
    session: WriteSession, writer: LockedWriter, oldest: int, *, holder: int | None = None
) -> None:
    """Save that the rows of a locked number have changed, and that none is older than `oldest`."""
    values = {"turn": writer.turn + 1, "oldest": to_datetime(oldest)}
    if holder is not None:
        values["holder"] = holder
    await session.execute(update(_TABLE).where(_TABLE.c.number == writer.number).values(values))


async def list_writers(session: ReadSession, before: int) -> list[int]:
    """Return the numbers that may have rows which begin before this moment."""
    stale = select(_TABLE.c.number).where(_TABLE.c.oldest < to_datetime(before))
    return list(await session.scalars(stale.order_by(_TABLE.c.number)))


async def _lock(session: WriteSession, number: int, *, skip: bool) -> LockedWriter | None:
    query = select(_TABLE).where(_TABLE.c.number == number).with_for_update(skip_locked=skip)
    row = (await session.execute(query)).one_or_none()
    return None if row is None else _to_writer(row)


def _to_writer(row: Any) -> LockedWriter:
    return LockedWriter(row.number, row.holder, row.turn, to_seconds(row.oldest))


async def _lock_least_used(session: WriteSession) -> LockedWriter:
    """Lock the least used number that is free. Active processes use theirs every second."""
    candidates = select(_TABLE.c.number).order_by(_TABLE.c.turn, _TABLE.c.number)
    rows = (await session.execute(candidates)).all()
    if len(rows) < MAX_WRITERS[session.dialect]:
        await _create_numbers(session)
        rows = (await session.execute(candidates)).all()
    for row in rows:
        writer = await _lock(session, row.number, skip=True)
        if writer is not None:
            return writer
    return await lock_writer(session, rows[0].number)  # all are in use: take turns


async def _create_numbers(session: WriteSession) -> None:
    fresh = {"holder": 0, "turn": 0, "oldest": _NEVER}
    numbers = range(1, MAX_WRITERS[session.dialect] + 1)
    await insert_if_absent(session, _TABLE, [{"number": number, **fresh} for number in numbers])
