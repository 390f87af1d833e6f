"""Events as Parquet files, compressed with zstd, written and read by DuckDB.

Everything here blocks: call it in a thread. DuckDB is imported where a connection is opened, since
a process that only redirects never needs its forty megabytes. A connection lives in memory, may use
a quarter of a gigabyte and one core, sees only the directories it was given, and loads no
extension.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import BigInteger, Boolean, Double, Integer, SmallInteger, String

from refract.clicks.models import ClickEvent
from refract.clicks.queries import EVENT_COLUMNS
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.types import UtcDateTime

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARQUET_SUFFIX: Final = ".parquet"
UNFINISHED_SUFFIX: Final = ".unfinished"
TABLE_SUFFIX: Final = ".columns"
"""Suffix of the table of a Parquet file, see `clicks.columns`."""
MEMORY_LIMIT: Final = "256MB"
SORT_COLUMNS: Final = ("at", "spool_id", "segment", "place")
# Rows per call: the interpreter is blocked by DuckDB for as long as a call takes.
_ROWS_PER_INSERT: Final = 500
_SQL_TYPES: Final = (
    (BigInteger, "BIGINT"), (SmallInteger, "SMALLINT"), (Integer, "INTEGER"), (Boolean, "BOOLEAN"),
    (Double, "DOUBLE"), (UtcDateTime, "TIMESTAMPTZ"), (String, "VARCHAR"),
)  # fmt: skip


def _get_sql_type(kind: object) -> str:
    return next(name for python, name in _SQL_TYPES if isinstance(kind, python))


COLUMN_TYPES: Final[dict[str, str]] = {
    name: _get_sql_type(ClickEvent.__table__.c[name].type) for name in EVENT_COLUMNS
}
"""Every column of an event with its type in a file."""
COLUMN_LIST: Final = ", ".join(f'"{name}"' for name in COLUMN_TYPES)
_INSERT_QUERY = (
    "INSERT INTO events SELECT"
    f" {', '.join(f'unnest(?::{kind}[])' for kind in COLUMN_TYPES.values())}"
)
_CREATE_QUERY = "CREATE TEMP TABLE events ({})".format(
    ", ".join(f'"{name}" {kind}' for name, kind in COLUMN_TYPES.items())
)
_NO_EVENTS = "SELECT {} WHERE false".format(
    ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in COLUMN_TYPES.items())
)
_SORT_CLAUSE = 'ORDER BY target_id, "at", spool_id, segment, place'
# The largest column by far repeats from day to day: a higher level pays.
_COPY_OPTIONS = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE 100000)"

ParquetRow = Sequence[Any]


class ParquetFile(NamedTuple):
    """A file on disk and a summary of its events."""

    name: str
    events: int
    link_events: int
    size: int
    first_at: datetime
    last_at: datetime


@contextmanager
def open_connection(*directories: Path) -> "Iterator[DuckDBPyConnection]":
    """Yield a connection that sees only these directories; it spills to the first of them."""
    import duckdb  # noqa: PLC0415 - heavy, and not needed to redirect

    # Its own: two connections would take each other's files.
    aside = directories[0] / f".aside-{secrets.token_hex(4)}"
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": str(aside),
        },
    )
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET allowed_directories = {_quote_paths(directories)}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def write_rows(directory: Path, stem: str, rows: Sequence[ParquetRow]) -> ParquetFile:
    """Write events to a new file, synced to disk before this returns.

    Rows have their columns in the order of `COLUMN_TYPES`.
    """
    with open_connection(directory) as connection:
        load_events(connection, rows)
        return _write_file(
            connection,
            directory,
            stem,
            f"SELECT * FROM events {_SORT_CLAUSE}",  # noqa: S608 - no user input, here and below
            len(rows),
        )


def merge_files(directory: Path, stem: str, names: Sequence[str]) -> ParquetFile:
    """Write a new file with all events of the named ones, which stay."""
    with open_connection(directory) as connection:
        source = build_source(directory, names)
        (expected,) = _fetch_one(connection, f"SELECT count(*) FROM {source}")  # noqa: S608
        return _write_file(
            connection,
            directory,
            stem,
            f"SELECT {COLUMN_LIST} FROM {source} {_SORT_CLAUSE}",  # noqa: S608
            int(expected),
        )


def load_events(connection: "DuckDBPyConnection", rows: Sequence[ParquetRow]) -> None:
    """Put events into the newly created table `events` of a connection."""
    connection.execute("DROP TABLE IF EXISTS events")
    connection.execute(_CREATE_QUERY)
    for begin in range(0, len(rows), _ROWS_PER_INSERT):
        connection.execute(
            _INSERT_QUERY,
            [list(values) for values in zip(*rows[begin : begin + _ROWS_PER_INSERT], strict=True)],
        )


def build_source(directory: Path, names: Sequence[str]) -> str:
    """Return the FROM expression that reads the events of these files.

    A column that an old file lacks is NULL.
    """
    scan = build_scan(directory, names)
    return f"({_NO_EVENTS} UNION ALL BY NAME SELECT * FROM {scan})"  # noqa: S608


def build_scan(directory: Path, names: Sequence[str]) -> str:
    """Return the FROM expression that reads these files, with the columns that they have."""
    return f"read_parquet({_quote_paths(directory / name for name in names)}, union_by_name = true)"


def iter_batches(
    connection: "DuckDBPyConnection", query: str, values: Sequence[object], size: int
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a query in batches; datetimes are aware, in UTC."""
    cursor = connection.execute(query, list(values))
    while found := cursor.fetchmany(size):
        yield [
            tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row)
            for row in found
        ]


def _write_file(
    connection: "DuckDBPyConnection", directory: Path, stem: str, query: str, expected: int
) -> ParquetFile:
    name = f"{stem}-{secrets.token_hex(4)}{PARQUET_SUFFIX}"
    unfinished = directory / (name + UNFINISHED_SUFFIX)
    connection.execute(f"COPY ({query}) TO {quote_path(unfinished)} {_COPY_OPTIONS}")
    unfinished.chmod(0o600)
    sync_path(unfinished)
    path = unfinished.rename(directory / name)
    sync_path(directory)
    about = (
        f"SELECT count(*), count(*) FILTER (kind = {LINK_CLICK}),"  # noqa: S608
        f' min("at"), max("at") FROM {build_scan(directory, [name])}'
    )
    events, link_events, first, last = _fetch_one(connection, about)
    if events != expected:
        problem = f"{path} holds {events} events instead of {expected}"
        raise OSError(problem)
    return ParquetFile(
        name, events, link_events, path.stat().st_size, first.astimezone(UTC), last.astimezone(UTC)
    )


def get_table_name(name: str) -> str:
    """Return the name of the table of a Parquet file."""
    return name.removesuffix(PARQUET_SUFFIX) + TABLE_SUFFIX


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a directory, to disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _quote_paths(paths: Iterable[Path]) -> str:
    return f"[{', '.join(map(quote_path, paths))}]"


def quote_path(path: Path) -> str:
    """Quote a path as a SQL string."""
    return "'{}'".format(str(path.absolute()).replace("'", "''"))


def _fetch_one(connection: "DuckDBPyConnection", query: str) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()
    assert found is not None  # noqa: S101 - an aggregate has one row
    return tuple(found)
