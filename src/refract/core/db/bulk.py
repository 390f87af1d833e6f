"""Bulk inserts, the same on three databases."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import Column, CursorResult, Insert, Result, Table, insert, update
from sqlalchemy import Dialect as Driver
from sqlalchemy.orm import make_transient_to_detached

from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.sqlite_driver import DriverCall
from refract.core.db.types import Model

MAX_PARAMETERS = 1_000
"""Values in one IN list: far below every driver's limit, with few shapes for a statement cache."""

MIN_ARRAY_ROWS = 16
"""Number of rows from which a separate statement pays."""

BatchItemT = TypeVar("BatchItemT")
ModelT = TypeVar("ModelT", bound=Model)


def iter_batches(
    items: Sequence[BatchItemT], size: int = MAX_PARAMETERS
) -> Iterator[Sequence[BatchItemT]]:
    """Yield the items in batches of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def build_loaded_instance(model: type[ModelT], row: Mapping[str, Any]) -> ModelT:
    """Return an object like one loaded from this row, for rows inserted at driver level.

    Costs a tenth of the constructor.
    """
    instance = model.__mapper__.class_manager.new_instance()
    instance.__dict__.update(row)
    return cast("ModelT", instance)


def get_table(model: Table | type[Model]) -> Table:
    """Return the table of a model, or the table itself."""
    return model if isinstance(model, Table) else cast("Table", model.__table__)


def get_rowcount(result: Result[Any]) -> int:
    """Return how many rows an insert, update or delete matched."""
    return cast("CursorResult[Any]", result).rowcount


async def get_driver_connection(session: ReadSession) -> Any:
    """Return the driver's own connection, inside the transaction of this session."""
    if isinstance(session, WriteSession):
        await session.take_lock()
    raw = await (await session.connection()).get_raw_connection()
    return raw.driver_connection


async def insert_instance(session: WriteSession, instance: Model) -> None:
    """Insert a new instance like `insert_rows`. Then it belongs to the session, as after a flush.

    Costs a third of a flush. Columns without a value get their default, or NULL.
    """
    values = instance.__dict__
    for column in instance.__mapper__.column_attrs:
        if column.key not in values:
            setattr(instance, column.key, _get_value_or_default(column.columns[0]))
    keys = [column.key for column in instance.__mapper__.column_attrs]
    await insert_rows(session, type(instance), [{key: values[key] for key in keys}])
    make_transient_to_detached(instance)
    session.add(instance)


def _get_value_or_default(column: Any) -> Any:
    return None if column.default is None else _get_default(column)


async def insert_rows(
    session: WriteSession, into: Table | type[Model], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows at driver level, without the cost of objects.

    Every row must name the same columns.
    """
    table = get_table(into)
    await execute_insert(session, table, rows, insert(table))


async def execute_insert(
    session: WriteSession,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    statement: Insert,
    *,
    end: str = "",
) -> None:
    """Execute an insert of many rows.

    `end` is the part of `statement` after a plain INSERT, as PostgreSQL and SQLite write it:
    PostgreSQL takes many rows as one array per column, which costs either side half of a message
    per row; SQLite takes a text that is built once.
    """
    if not rows:
        return
    dialect = session.dialect
    if dialect == "sqlite":
        plain = _build_row_insert(table, session.get_bind().dialect, tuple(rows[0]))
        values = list(zip(*(read(rows) for read in plain.columns), strict=True))
        many = len(values) > 1
        await session.execute_later(
            DriverCall(f"{plain.statement} {end}", values if many else values[0], many=many)
        )
        return
    connection = await session.connection()
    if dialect == "postgresql" and len(rows) >= MIN_ARRAY_ROWS:
        arrays = _build_array_insert(table, connection.dialect, tuple(rows[0]))
        await connection.exec_driver_sql(
            f"{arrays.statement} {end}", tuple(read(rows) for read in arrays.columns)
        )
    else:
        await connection.execute(statement, list(rows))


class _DriverStatement(NamedTuple):
    """A statement at driver level, and how the values of each column are read from the rows."""

    statement: str
    columns: Sequence[Callable[[Sequence[Mapping[str, Any]]], list[Any]]]


async def update_row(
    session: WriteSession,
    into: Table | type[Model],
    key: Mapping[str, Any],
    values: Mapping[str, Any],
) -> None:
    """Update the row with this key, without asking whether there is one."""
    table = get_table(into)
    if session.dialect == "sqlite":
        dialect = session.get_bind().dialect
        plain = _build_row_update(table, dialect, tuple(values), tuple(key))
        (row,) = zip(*(read([{**values, **key}]) for read in plain.columns), strict=True)
        await session.execute_later(DriverCall(plain.statement, row))
    else:
        where = [table.c[name] == value for name, value in key.items()]
        connection = await session.connection()
        await connection.execute(update(table).where(*where).values(**values))


@lru_cache(maxsize=64)
def _build_row_update(
    table: Table, driver: Driver, changed: tuple[str, ...], key: tuple[str, ...]
) -> _DriverStatement:
    columns = [table.c[name] for name in (*changed, *key)]
    equal = [f"{driver.identifier_preparer.format_column(column)} = ?" for column in columns]
    changes, condition = equal[: len(changed)], equal[len(changed) :]
    name = driver.identifier_preparer.format_table(table)
    statement = (
        f"UPDATE {name} SET {', '.join(changes)}"  # noqa: S608 - contains no values
        f" WHERE {' AND '.join(condition)}"
    )
    readers = [_build_column_reader(column, driver, (*changed, *key)) for column in columns]
    return _DriverStatement(statement, readers)


@lru_cache(maxsize=128)
def _build_row_insert(table: Table, driver: Driver, given: tuple[str, ...]) -> _DriverStatement:
    """Return the statement that inserts one value per column."""
    columns = _get_inserted_columns(table, given)
    marks = ", ".join("?" for _ in columns)
    statement = f"{_build_insert_head(columns, table, driver)} VALUES ({marks})"
    return _DriverStatement(
        statement, [_build_column_reader(column, driver, given) for column in columns]
    )


def _get_inserted_columns(table: Table, given: tuple[str, ...]) -> list[Column[Any]]:
    return [column for column in table.columns if column.key in given or column.default is not None]


def _build_insert_head(columns: Sequence[Column[Any]], table: Table, driver: Driver) -> str:
    names = ", ".join(driver.identifier_preparer.format_column(column) for column in columns)
    return f"INSERT INTO {driver.identifier_preparer.format_table(table)} ({names})"


@lru_cache(maxsize=64)
def _build_array_insert(table: Table, driver: Driver, given: tuple[str, ...]) -> _DriverStatement:
    """Return the statement that inserts one array per column."""
    columns = _get_inserted_columns(table, given)
    marks = ", ".join(
        f"${number}::{_get_column_type(column, driver)}[]"
        for number, column in enumerate(columns, 1)
    )
    head = _build_insert_head(columns, table, driver)
    statement = f"{head} SELECT * FROM unnest({marks})"  # noqa: S608 - contains no values
    return _DriverStatement(
        statement, [_build_column_reader(column, driver, given) for column in columns]
    )


def _get_column_type(column: Column[Any], driver: Driver) -> str:
    """Return the type without its length.

    A cast would cut off long values that an insert rejects.
    """
    return column.type.compile(driver).partition(" COLLATE ")[0].partition("(")[0]


def _build_column_reader(
    column: Column[Any], driver: Driver, given: tuple[str, ...]
) -> Callable[[Sequence[Mapping[str, Any]]], list[Any]]:
    key, process = column.key, column.type.dialect_impl(driver).bind_processor(driver)
    if key not in given:
        return lambda rows: [
            process(_get_default(column)) if process else _get_default(column) for _ in rows
        ]
    if process is None:
        return lambda rows: [row[key] for row in rows]
    return lambda rows: [process(row[key]) for row in rows]


def _get_default(column: Column[Any]) -> Any:
    """Return the default of a column that no row names, as for an object."""
    default = cast("Any", column.default)
    return default.arg(None) if default.is_callable else default.arg
