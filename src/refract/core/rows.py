"""Many rows in one go, the same on three databases."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import Insert, Table, insert
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from refract.core.db import WriteSession
from refract.core.settings import Dialect
from refract.core.types import Model

MOST_PARAMETERS = 1_000
"""Values in one IN list: far below every driver's limit, and few enough shapes for a statement cache."""

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)


def slices(items: Sequence[Item], size: int = MOST_PARAMETERS) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def as_read(model: type[Row], row: Mapping[str, Any]) -> Row:
    """An object like one that was read from this row, at a tenth of the constructor's cost: for rows inserted at driver level."""
    instance = model.__mapper__.class_manager.new_instance()
    instance.__dict__.update(row)
    return cast("Row", instance)


async def insert_rows(session: WriteSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert at driver level, without the cost of objects. Every row names the same columns."""
    if rows:
        await (await session.connection()).execute(insert(table), list(rows))


async def insert_or_skip(session: WriteSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose primary key or unique key is free; the others are left out in silence.

    The database decides, one row after the other; a row that another transaction is about to commit is waited for.
    Give the rows in one agreed order, so that two callers cannot wait for each other.
    """
    if rows:
        await (await session.connection()).execute(_skipping(session.dialect, table), list(rows))


def _skipping(dialect: Dialect, table: Table) -> Insert:
    if dialect == "postgresql":
        return postgresql_insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite_insert(table).on_conflict_do_nothing()
    key = next(iter(table.primary_key.columns))
    # INSERT IGNORE would also hide values that do not fit, and its shared locks invite deadlocks.
    return mysql_insert(table).on_duplicate_key_update({key.name: key})
