"""The move from SQLite to a database server: resumable, table by table, with comparison."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from refract import migrations
from refract.core.db.session import Database
from refract.core.errors import Conflict, Invalid
from refract.transfer.row_format import TableChecksum, TableCodec, list_tables
from refract.transfer.table_io import (
    CopyMismatch,
    advance_sequences,
    compute_checksum,
    count_rows,
    empty_tables,
    list_filled_tables,
    open_snapshot,
    read_lines,
    write_lines,
)

MoveProgress = Callable[[str, int, int], None]
"""Called with a table, the number of rows copied, and the number of all its rows."""


class UnsupportedSource(Invalid):
    """Only a SQLite installation can be moved; this one is on {dialect}.

    Use backup and restore instead.
    """


class UnsupportedTarget(Invalid):
    """The target must be a server. Use a URL that begins with postgresql:// or mysql://."""


class TargetNotEmpty(Conflict):
    """The table {table} of the new database has rows that differ from the old.

    Use an empty database, or --again to empty this one.
    """


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of a move."""

    tables: int
    rows: int
    resumed: bool


async def move_database(
    source: Database, target: Database, progress: MoveProgress, *, again: bool = False
) -> MoveResult:
    """Copy and compare. The source is locked against writes and left unchanged."""
    if source.dialect != "sqlite":
        raise UnsupportedSource(dialect=source.dialect)
    if target.dialect == "sqlite":
        raise UnsupportedTarget
    await migrations.upgrade(source)
    fresh = await migrations.get_current_revision(target) is None
    await migrations.upgrade(target)
    rows, resumed = 0, False
    async with open_snapshot(source, alone=True) as old, target.engine.connect() as new:
        if fresh or again or not await list_filled_tables(new):
            await empty_tables(new)
        for model in list_tables():
            codec = TableCodec(model)
            checksum, present = await _copy_table(old, new, codec, progress)
            rows += checksum.rows
            resumed = resumed or present > 0
            if (found := await compute_checksum(new, codec)) != checksum:
                raise CopyMismatch(table=codec.name, here=found.text, wanted=checksum.text)
            await new.rollback()
        await advance_sequences(target, new)
    return MoveResult(len(list_tables()), rows, resumed)


async def _copy_table(
    old: AsyncConnection, new: AsyncConnection, codec: TableCodec, progress: MoveProgress
) -> tuple[TableChecksum, int]:
    """Copy a table; return the checksum of the source, and how many rows were already there."""
    present = await compute_checksum(new, codec)
    await new.rollback()
    all_rows = await count_rows(old, codec)
    seen = TableChecksum()
    if present.rows > all_rows:
        raise TargetNotEmpty(table=codec.name)
    progress(codec.name, 0, all_rows)
    async for batch in read_lines(old, codec):
        start = min(len(batch), max(0, present.rows - seen.rows))
        for line in batch[:start]:
            seen.add(line)
        if start and seen.rows == present.rows and seen != present:
            raise TargetNotEmpty(table=codec.name)
        await write_lines(new, codec, batch[start:])
        for line in batch[start:]:
            seen.add(line)
        progress(codec.name, seen.rows, all_rows)
    return seen, present.rows
