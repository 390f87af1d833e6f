"""Reading tables from a snapshot of one database, and writing them to another."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import delete, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.core.db.errors import translate_db_error
from refract.core.db.session import Database, get_dialect
from refract.core.errors import Conflict
from refract.migrations.models import SchemaRequirement
from refract.transfer.row_format import TableChecksum, TableCodec, list_tables

BATCH_SIZE = 2000


class RowRejected(Conflict):
    """The table {table} couldn't be written: {reason}."""


class CopyMismatch(Conflict):
    """The table {table} differs after the copy: {here} found, {wanted} expected."""


@asynccontextmanager
async def open_snapshot(db: Database, *, alone: bool = False) -> AsyncIterator[AsyncConnection]:
    """Yield a connection with a snapshot of the database; `alone` locks out writers (SQLite)."""
    engine = db.engine if alone or db.dialect != "sqlite" else db.read_engine
    async with engine.connect() as connection:
        if db.dialect != "sqlite":
            connection = await connection.execution_options(  # noqa: PLW2901 - the same one
                isolation_level="REPEATABLE READ"
            )
        await connection.execute(
            text("SELECT 1")
        )  # starts the transaction, on SQLite with the lock
        yield connection
        await connection.rollback()


async def read_lines(connection: AsyncConnection, codec: TableCodec) -> AsyncIterator[list[bytes]]:
    """Yield the encoded rows of a table in batches, ordered by primary key."""
    result = await connection.stream(codec.build_select(_get_dialect(connection)))
    async for batch in result.partitions(BATCH_SIZE):
        yield [codec.encode_row(row) for row in batch]


def _get_dialect(connection: AsyncConnection) -> str:
    return get_dialect(connection.dialect.name)


async def count_rows(connection: AsyncConnection, codec: TableCodec) -> int:
    return int(
        (await connection.execute(select(func.count()).select_from(codec.table))).scalar_one()
    )


async def compute_checksum(connection: AsyncConnection, codec: TableCodec) -> TableChecksum:
    checksum = TableChecksum()
    async for batch in read_lines(connection, codec):
        for line in batch:
            checksum.add(line)
    return checksum


async def write_lines(
    connection: AsyncConnection, codec: TableCodec, lines: Sequence[bytes]
) -> None:
    """Insert rows and commit them."""
    if not lines:
        return
    try:
        dialect = _get_dialect(connection)
        await connection.execute(
            codec.build_insert(dialect), [codec.decode_row(line, dialect) for line in lines]
        )
        await connection.commit()
    except DBAPIError as exc:
        if (error := translate_db_error(exc)) is not None:
            raise error from exc
        reason = " ".join(str(exc.orig).split())[:300]
        raise RowRejected(table=codec.name, reason=reason) from exc


async def empty_tables(connection: AsyncConnection) -> None:
    """Delete all rows, referencing tables first."""
    for model in reversed(list_tables()):
        await connection.execute(delete(TableCodec(model).table))
    await connection.commit()


async def list_filled_tables(connection: AsyncConnection) -> list[str]:
    """Return the tables with rows other than those that migrations insert."""
    found = []
    for model in list_tables():
        if model.name == SchemaRequirement.__tablename__:
            continue
        count = await count_rows(connection, TableCodec(model))
        if count > 1 or (count and model.name not in ("block_epoch", "rollup_state")):
            found.append(model.name)
    return found


async def advance_sequences(db: Database, connection: AsyncConnection) -> None:
    """Set sequences past the copied ids. Only PostgreSQL needs it."""
    if db.dialect != "postgresql":
        return
    for model in list_tables():
        codec = TableCodec(model)
        if codec.serial_column:
            highest: Any = func.coalesce(func.max(codec.table.c[codec.serial_column]), 0)
            newest = int((await connection.execute(select(highest))).scalar_one())
            await connection.execute(
                text("SELECT setval(pg_get_serial_sequence(:name, :field), :newest, :used)"),
                {
                    "name": codec.name,
                    "field": codec.serial_column,
                    "newest": max(1, newest),
                    "used": newest > 0,
                },
            )
    await connection.commit()
