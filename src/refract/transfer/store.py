"""Reading all rows of a database as it was at one moment, and writing them into another."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import delete, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.core.db import Database, dialect_of
from refract.core.errors import Conflict
from refract.core.faults import meaning
from refract.transfer.rows import Form, Sum, tables

CHUNK = 2000


class DoesNotFit(Conflict):
    """The table {table} could not be written: {reason}."""


class NotTheSame(Conflict):
    """The table {table} differs after the copy: {here} there, {wanted} expected."""


@asynccontextmanager
async def snapshot(db: Database, *, alone: bool = False) -> AsyncIterator[AsyncConnection]:
    """A connection that sees the database as it was at one moment; `alone` keeps everybody else from writing meanwhile (SQLite only)."""
    engine = db.engine if alone or db.dialect != "sqlite" else db.reading_engine
    async with engine.connect() as connection:
        if db.dialect != "sqlite":
            connection = await connection.execution_options(isolation_level="REPEATABLE READ")  # noqa: PLW2901 - the same one
        await connection.execute(text("SELECT 1"))  # SQLite's BEGIN, and with it the lock
        yield connection
        await connection.rollback()


async def lines(connection: AsyncConnection, form: Form) -> AsyncIterator[list[bytes]]:
    """The rows of a table in the order of its key, some at a time."""
    result = await connection.stream(form.question(_dialect(connection)))
    async for some in result.partitions(CHUNK):
        yield [form.line(row) for row in some]


def _dialect(connection: AsyncConnection) -> str:
    return dialect_of(connection.dialect.name)


async def count(connection: AsyncConnection, form: Form) -> int:
    return int((await connection.execute(select(func.count()).select_from(form.table))).scalar_one())


async def add_up(connection: AsyncConnection, form: Form) -> Sum:
    found = Sum()
    async for some in lines(connection, form):
        for line in some:
            found.add(line)
    return found


async def write(connection: AsyncConnection, form: Form, some: Sequence[bytes]) -> None:
    """Insert rows and commit them."""
    if not some:
        return
    try:
        dialect = _dialect(connection)
        await connection.execute(form.insertion(dialect), [form.read(line, dialect) for line in some])
        await connection.commit()
    except DBAPIError as error:
        if (word := meaning(error)) is not None:
            raise word from error
        reason = " ".join(str(error.orig).split())[:300]
        raise DoesNotFit(table=form.name, reason=reason) from error


async def empty(connection: AsyncConnection) -> None:
    """Remove every row of every table, those last that others refer to."""
    for model in reversed(tables()):
        await connection.execute(delete(Form(model).table))
    await connection.commit()


async def filled(connection: AsyncConnection) -> list[str]:
    """Tables that hold anything but what a migration puts there."""
    found = []
    for model in tables():
        number = await count(connection, Form(model))
        if number > 1 or (number and model.name not in ("block_epoch", "rollup_state")):
            found.append(model.name)
    return found


async def go_on_counting(db: Database, connection: AsyncConnection) -> None:
    """Let the database number new rows behind the ones that came with their numbers; only PostgreSQL has to be told."""
    if db.dialect != "postgresql":
        return
    for model in tables():
        form = Form(model)
        if form.counted:
            highest: Any = func.coalesce(func.max(form.table.c[form.counted]), 0)
            newest = int((await connection.execute(select(highest))).scalar_one())
            await connection.execute(
                text("SELECT setval(pg_get_serial_sequence(:name, :field), :newest, :used)"),
                {"name": form.name, "field": form.counted, "newest": max(1, newest), "used": newest > 0},
            )
    await connection.commit()
