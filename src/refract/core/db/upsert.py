"""Inserts that may meet existing rows, on three databases."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from sqlalchemy import ColumnElement, Insert, Table, func, literal_column

from refract.core.db.bulk import execute_insert, get_table
from refract.core.db.session import WriteSession
from refract.core.db.types import Model
from refract.core.settings.model import Dialect

_KEY_TAKEN: Final = 2**62
"""The last id that MariaDB reports for a taken key; no autoincrement reaches it."""
_MARK_TAKEN: Final[ColumnElement[int]] = literal_column(f"LAST_INSERT_ID({_KEY_TAKEN})")
"""A literal, because a parameter here would keep the driver from sending many rows together."""


async def insert_if_absent(
    session: WriteSession, into: Table | type[Model], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert the rows whose primary and unique keys are free; leave out the others.

    The database decides row by row, and waits for a row that another transaction is about to
    commit. Sort the rows by key, so that two callers cannot wait for each other. A value that does
    not fit is an error, as in every insert.
    """
    table = get_table(into)
    statement = _build_insert_if_absent(session.dialect, table)
    await execute_insert(session, table, rows, statement, end="ON CONFLICT DO NOTHING")


async def try_insert(
    session: WriteSession, into: Table | type[Model], row: Mapping[str, Any]
) -> bool:
    """Insert one row like `insert_if_absent`; return whether it was inserted.

    The unique keys decide: reading first would race.
    """
    connection = await session.connection()
    statement = _build_insert_if_absent(session.dialect, get_table(into))
    result = await connection.execute(statement, dict(row))
    return result.lastrowid != _KEY_TAKEN if session.dialect == "mysql" else result.rowcount == 1


async def upsert(
    session: WriteSession,
    into: Table | type[Model],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
) -> None:
    """Insert the rows; where a primary key is taken, overwrite `columns` with the new values."""
    table = get_table(into)
    end = build_conflict_clause(
        session.dialect,
        table.name,
        [key.name for key in table.primary_key],
        dict.fromkeys(columns, "{new}"),
    )
    statement = build_upsert(session.dialect, table, columns)
    await execute_insert(session, table, rows, statement, end=end)


def build_upsert(dialect: Dialect, into: Table | type[Model], columns: Sequence[str]) -> Insert:
    """Return the statement behind `upsert`, for callers whose values are expressions."""
    table = get_table(into)
    added = _create_insert(dialect, table)
    statement: Insert
    if dialect == "mysql":
        statement = added.on_duplicate_key_update({name: added.inserted[name] for name in columns})
    else:
        statement = added.on_conflict_do_update(
            index_elements=list(table.primary_key),
            set_={name: added.excluded[name] for name in columns},
        )
    return statement


def build_conflict_clause(
    dialect: Dialect, table: str, key: Sequence[str], columns: Mapping[str, str]
) -> str:
    """Return the end of an INSERT at driver level that updates `columns` where `key` is taken.

    Their expressions may use the stored value as `{old}` and the value to be inserted as `{new}`.
    """
    is_mysql = dialect == "mysql"
    old, new = ("{0}", "VALUES({0})") if is_mysql else (table + ".{0}", "excluded.{0}")
    changes = ", ".join(
        f"{name} = {expression.format(old=old.format(name), new=new.format(name))}"
        for name, expression in columns.items()
    )
    if is_mysql:
        return f"ON DUPLICATE KEY UPDATE {changes}"
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


def _build_insert_if_absent(dialect: Dialect, table: Table) -> Insert:
    added = _create_insert(dialect, table)
    statement: Insert
    if dialect != "mysql":
        statement = added.on_conflict_do_nothing()
        return statement
    # INSERT IGNORE would also hide values that do not fit, and its shared locks invite deadlocks.
    # The row count cannot distinguish the two outcomes, since connections count rows found.
    key = next(iter(table.primary_key.columns))
    statement = added.on_duplicate_key_update({key.name: func.if_(_MARK_TAKEN, key, key)})
    return statement


def _create_insert(dialect: Dialect, table: Table) -> Any:
    """Return the dialect's own INSERT.

    The engine has loaded its module; the others stay unloaded.
    """
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
