"""Bulk statements at driver level: few statements, rows in a fixed order."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from refract.clicks.ingest.batch import TotalsDelta, make_time_formatter
from refract.core.db.bulk import get_driver_connection, iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import build_conflict_clause

_KEY_COLUMNS: Final = ("target_id", "kind", "grain", "start")
_OPEN_KEY_COLUMNS: Final = ("writer", "target_id", "kind", "start")
_VALUE_COLUMNS: Final = ("people", "bots", "private", "uniques", "visitors", "parts")
_VALUE_TYPES: Final = ("bigint", "bigint", "bigint", "bigint", "bytea", "bytea")
_TYPES: Final = ("bigint", "smallint", "smallint", "bigint", *_VALUE_TYPES)
_OPEN_TYPES: Final = ("smallint", "bigint", "smallint", "bigint", *_VALUE_TYPES)

ROWS_PER_STATEMENT: Final = (500, 50)
"""Rows in a statement: as many as fit, in few sizes, so that prepared statements are reused.

SQLite takes 32,766 values in one statement.
"""

_KEYS_PER_STATEMENT: Final = 500
_PACK_KEY_COLUMNS: Final = ("start", "target_id", "kind")
_PACK_VALUE_COLUMNS: Final = ("people", "bots", "data")
_PACK_TYPES: Final = ("bigint", "bigint", "smallint", "integer", "integer", "bytea")

RollupKey = tuple[int, int, int, int]
"""Target, kind, grain, start."""


async def load_rollups(
    session: ReadSession, kind: int, grain: int, keys: Sequence[tuple[int, int]]
) -> list[tuple[Any, ...]]:
    """Return the rows of these starts and targets: start and target, then the counts."""
    same = {"kind": kind, "grain": grain}
    return await _load_rows(session, "click_rollups", _VALUE_COLUMNS, same, keys)


async def load_open_rollups(
    session: ReadSession, writer: int, kind: int, keys: Sequence[tuple[int, int]]
) -> list[tuple[Any, ...]]:
    """Return the open rows of a writer like `load_rollups`."""
    same = {"kind": kind, "writer": writer}
    return await _load_rows(session, "open_rollups", _VALUE_COLUMNS, same, keys)


async def load_packs(
    session: ReadSession, kind: int, keys: Sequence[tuple[int, int]]
) -> list[tuple[Any, ...]]:
    """Return the packs of these months and targets: month, target, people, bots, data."""
    return await _load_rows(session, "click_packs", _PACK_VALUE_COLUMNS, {"kind": kind}, keys)


async def _load_rows(
    session: ReadSession,
    table: str,
    columns: Sequence[str],
    same: Mapping[str, int],
    keys: Sequence[tuple[int, int]],
) -> list[tuple[Any, ...]]:
    loaded = ", ".join(("start", "target_id", *columns))
    if session.dialect == "postgresql":
        driver, arrays = await get_driver_connection(session), zip(*keys, strict=True)
        # Row by row, along the primary key: a join would follow statistics that are out of date.
        fixed = " AND ".join(f"{name} = ${place}" for place, name in enumerate(same, 3))
        statement = (
            f"SELECT {loaded} FROM unnest($1::bigint[], $2::bigint[])"  # noqa: S608 - our words
            " AS wanted (its_start, its_target) CROSS JOIN LATERAL"
            f" (SELECT * FROM {table} WHERE target_id = its_target AND start = its_start"
            f" AND {fixed} LIMIT 1) AS found"
        )
        return [tuple(row) for row in await driver.fetch(statement, *arrays, *same.values())]
    connection, mark = await session.connection(), _get_placeholder(session)
    rows: list[tuple[Any, ...]] = []
    for batch in iter_batches(keys, _KEYS_PER_STATEMENT):
        # As a list of rows, MariaDB and MySQL would write it differently. As a condition with OR,
        # MariaDB would read all rows of the grain.
        wanted = " UNION ALL ".join([f"SELECT {mark}, {mark}"] * len(batch))
        if session.dialect == "sqlite":
            wanted = f"VALUES {', '.join(['(?, ?)'] * len(batch))}"
        fixed = " AND ".join(f"{name} = {mark}" for name in same)
        statement = f"{_build_join(table, loaded, wanted)} AND {fixed}"
        values = (*chain.from_iterable(batch), *same.values())
        rows += [tuple(row) for row in await connection.exec_driver_sql(statement, values)]
    return rows


def _build_join(table: str, loaded: str, wanted: str) -> str:
    """Return a query that looks up each wanted row in the index."""
    return (
        f"WITH wanted (its_start, its_target) AS ({wanted})"  # noqa: S608 - our words
        f" SELECT {loaded} FROM {table}"
        " JOIN wanted ON start = its_start AND target_id = its_target"
    )


async def save_rollups(session: WriteSession, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert or overwrite whole rows.

    The caller must hold the lock of the state and have read what it overwrites.
    """
    await _save_rows(session, "click_rollups", _KEY_COLUMNS, _VALUE_COLUMNS, rows, _TYPES)


async def save_open_rollups(session: WriteSession, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert or overwrite open rows, for the holder of their writer's lock."""
    await _save_rows(session, "open_rollups", _OPEN_KEY_COLUMNS, _VALUE_COLUMNS, rows, _OPEN_TYPES)


async def save_packs(session: WriteSession, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert or overwrite packs, for the holder of the lock of the state."""
    await _save_rows(
        session, "click_packs", _PACK_KEY_COLUMNS, _PACK_VALUE_COLUMNS, rows, _PACK_TYPES
    )


async def _save_rows(
    session: WriteSession,
    table: str,
    key: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    types: Sequence[str],
) -> None:
    end = build_conflict_clause(session.dialect, table, key, dict.fromkeys(columns, "{new}"))
    insert = f"INSERT INTO {table} ({', '.join((*key, *columns))})"
    await _insert_rows(session, insert, rows, end, types)


async def add_totals(
    session: WriteSession, table: str, key: str, totals: Mapping[int, TotalsDelta]
) -> None:
    """Add a batch to the totals of a table, in the order of `key`, which prevents deadlocks."""
    if not totals:
        return
    format_time = make_time_formatter(session.dialect)
    rows = [
        (target, people, bots, format_time(*divmod(last, 1_000_000)))
        for target, (people, bots, last) in sorted(totals.items())
    ]
    greatest = "MAX" if session.dialect == "sqlite" else "GREATEST"
    changes = {
        "total_clicks": "{old} + {new}",
        "bot_clicks": "{old} + {new}",
        "last_clicked_at": greatest + "(COALESCE({old}, {new}), {new})",
    }
    end = build_conflict_clause(session.dialect, table, [key], changes)
    insert = f"INSERT INTO {table} ({key}, {', '.join(changes)})"
    types = ("bigint", "bigint", "bigint", "timestamptz")
    await _insert_rows(session, insert, rows, end, types)


async def _insert_rows(
    session: WriteSession,
    insert: str,
    rows: Sequence[tuple[Any, ...]],
    end: str = "",
    types: Sequence[str] = (),
) -> None:
    """Insert many rows with few statements.

    PostgreSQL takes one array per column, of these types. SQLite takes many rows in a statement:
    its driver releases the interpreter's lock at every statement and must wait to get it back, and
    each statement is a round trip to another thread.
    """
    if session.dialect == "postgresql":
        arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(types, 1))
        statement = f"{insert} SELECT * FROM unnest({arrays}) {end}"  # noqa: S608 - no value in it
        await (await get_driver_connection(session)).execute(statement, *zip(*rows, strict=True))
        return
    connection = await session.connection()
    placeholders = f"({_build_placeholders(session, len(rows[0]))})"
    if session.dialect == "mysql":
        await connection.exec_driver_sql(f"{insert} VALUES {placeholders} {end}", list(rows))
        return
    for batch in _split_rows(rows):
        await connection.exec_driver_sql(
            f"{insert} VALUES {', '.join([placeholders] * len(batch))} {end}",
            tuple(chain.from_iterable(batch)),
        )


def _split_rows(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    done = 0
    for length in ROWS_PER_STATEMENT:
        while len(rows) - done >= length:
            yield rows[done : done + length]
            done += length
    if done < len(rows):
        yield rows[done:]


def _get_placeholder(session: ReadSession) -> str:
    return "?" if session.dialect == "sqlite" else "%s"


def _build_placeholders(session: WriteSession, number: int) -> str:
    return ", ".join([_get_placeholder(session)] * number)
