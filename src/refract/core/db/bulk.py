"""Bulk inserts, the same on three databases."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import Column, CursorResult, Insert, Result, Table, insert
from sqlalchemy import Dialect as Driver

from refract.core.db.session import ReadSession, WriteSession
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
    raw = await (await session.connection()).get_raw_connection()
    return raw.driver_connection


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
    connection = await session.connection()
    dialect = session.dialect
    if dialect == "sqlite":
        plain = _build_row_insert(table, connection.dialect, tuple(rows[0]))
        values = list(zip(*(read(rows) for read in plain.columns), strict=True))
        await connection.exec_driver_sql(
            f"{plain.statement} {end}", values if len(values) > 1 else values[0]
        )
    elif dialect == "postgresql" and len(rows) >= MIN_ARRAY_ROWS:
        arrays = _build_array_insert(table, connection.dialect, tuple(rows[0]))
        await connection.exec_driver_sql(
            f"{arrays.statement} {end}", tuple(read(rows) for read in arrays.columns)
        )
    else:
        await connection.execute(statement, list(rows))


class _DriverInsert(NamedTuple):
    """A statement at driver level, and how the values of each column are read from the rows."""

    statement: str
    columns: Sequence[Callable[[Sequence[Mapping[str, Any]]], list[Any]]]


@lru_cache(maxsize=128)
def _build_row_insert(table: Table, driver: Driver, given: tuple[str, ...]) -> _DriverInsert:
    """Return the statement that inserts one value per column."""
    columns = _get_inserted_columns(table, given)
    marks = ", ".join("?" for _ in columns)
    statement = f"{_build_insert_head(columns, table, driver)} VALUES ({marks})"
    return _DriverInsert(
        statement, [_build_column_reader(column, driver, given) for column in columns]
    )


def _get_inserted_columns(table: Table, given: tuple[str, ...]) -> list[Column[Any]]:
    return [column for column in table.columns if column.key in given or column.default is not None]


def _build_insert_head(columns: Sequence[Column[Any]], table: Table, driver: Driver) -> str:
    names = ", ".join(driver.identifier_preparer.format_column(column) for column in columns)
    return f"INSERT INTO {driver.identifier_preparer.format_table(table)} ({names})"


@lru_cache(maxsize=64)
def _build_array_insert(table: Table, driver: Driver, given: tuple[str, ...]) -> _DriverInsert:
    """Return the statement that inserts one array per column."""
    columns = _get_inserted_columns(table, given)
    marks = ", ".join(
        f"${number}::{_get_column_type(column, driver)}[]"
        for number, column in enumerate(columns, 1)
    )
    head = _build_insert_head(columns, table, driver)
    statement = f"{head} SELECT * FROM unnest({marks})"  # noqa: S608 - contains no values
    return _DriverInsert(
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
