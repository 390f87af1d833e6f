"""Events as column files: Parquet, compressed with zstd, written and read by DuckDB.

Everything here blocks: call it in a thread. DuckDB is imported where a connection is opened, since a process that only serves never
needs its forty megabytes. A connection lives in memory, may use a quarter of a gigabyte and one core, sees no directory but the ones it
was given, and loads no extension.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import BigInteger, Boolean, Double, Integer, SmallInteger, String

from refract.analytics.frames import LINK_CLICK
from refract.analytics.models import ClickEvent
from refract.core.types import Moment

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SUFFIX: Final = ".parquet"
UNFINISHED: Final = ".unfinished"
MEMORY: Final = "256MB"
ORDER: Final = ("at", "spool_id", "segment", "place")
_SLICE: Final = 500  # rows handed over at a time: the interpreter belongs to DuckDB for as long as that takes
_SQL_TYPES: Final = (
    (BigInteger, "BIGINT"), (SmallInteger, "SMALLINT"), (Integer, "INTEGER"), (Boolean, "BOOLEAN"), (Double, "DOUBLE"),
    (Moment, "TIMESTAMPTZ"), (String, "VARCHAR"),
)  # fmt: skip


def _sql_type(kind: object) -> str:
    return next(name for python, name in _SQL_TYPES if isinstance(kind, python))


COLUMNS: Final[dict[str, str]] = {column.name: _sql_type(column.type) for column in ClickEvent.__table__.columns}
"""Every column of an event, and what it is in a file."""
NAMES: Final = ", ".join(f'"{name}"' for name in COLUMNS)
_INTO = f"INSERT INTO events SELECT {', '.join(f'unnest(?::{kind}[])' for kind in COLUMNS.values())}"
_TABLE = "CREATE TEMP TABLE events ({})".format(", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items()))
_SORTED = 'ORDER BY target_id, "at", spool_id, segment, place'
# The largest column by far repeats itself from day to day: a higher level pays.
_FORMAT = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE 100000)"

Row = Sequence[Any]


class Written(NamedTuple):
    """A file on disk, and what it holds."""

    name: str
    events: int
    link_events: int
    size: int
    first_at: datetime
    last_at: datetime


@contextmanager
def opened(*directories: Path) -> "Iterator[DuckDBPyConnection]":
    """A connection that sees these directories; what does not fit into memory is put aside in the first of them."""
    import duckdb  # noqa: PLC0415 - heavy, and no business of a process that serves

    aside = directories[0] / f".aside-{secrets.token_hex(4)}"  # its own: two would take each other's files
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": MEMORY,
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": str(aside),
        },
    )
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET allowed_directories = {_paths(directories)}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def write_rows(directory: Path, stem: str, rows: Sequence[Row]) -> Written:
    """A new file with these events, safe on disk before this returns. Rows have the columns in the order of `COLUMNS`."""
    with opened(directory) as connection:
        load(connection, rows)
        return _write(connection, directory, stem, f"SELECT * FROM events {_SORTED}", len(rows))  # noqa: S608 - our own words, here and below


def merge_files(directory: Path, stem: str, names: Sequence[str]) -> Written:
    """A new file with everything the named ones hold; those stay."""
    with opened(directory) as connection:
        source = source_of(directory, names)
        (expected,) = _one(connection, f"SELECT count(*) FROM {source}")  # noqa: S608
        return _write(connection, directory, stem, f"SELECT {NAMES} FROM {source} {_SORTED}", int(expected))  # noqa: S608


def load(connection: "DuckDBPyConnection", rows: Sequence[Row]) -> None:
    """Put events into the table `events` of a connection, which is made anew."""
    connection.execute("DROP TABLE IF EXISTS events")
    connection.execute(_TABLE)
    for begin in range(0, len(rows), _SLICE):
        connection.execute(_INTO, [list(values) for values in zip(*rows[begin : begin + _SLICE], strict=True)])


def source_of(directory: Path, names: Sequence[str]) -> str:
    """What stands after FROM to read these files; a column that an old file does not have is empty."""
    return f"read_parquet({_paths(directory / name for name in names)}, union_by_name = true)"


def batches(connection: "DuckDBPyConnection", query: str, values: Sequence[object], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """The answer of a query, some rows at a time; moments are aware, in UTC."""
    cursor = connection.execute(query, list(values))
    while found := cursor.fetchmany(size):
        yield [tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row) for row in found]


def _write(connection: "DuckDBPyConnection", directory: Path, stem: str, query: str, expected: int) -> Written:
    name = f"{stem}-{secrets.token_hex(4)}{SUFFIX}"
    unfinished = directory / (name + UNFINISHED)
    connection.execute(f"COPY ({query}) TO {text_of(unfinished)} {_FORMAT}")
    unfinished.chmod(0o600)
    sync(unfinished)
    path = unfinished.rename(directory / name)
    sync(directory)
    about = f'SELECT count(*), count(*) FILTER (kind = {LINK_CLICK}), min("at"), max("at") FROM {source_of(directory, [name])}'  # noqa: S608
    events, link_events, first, last = _one(connection, about)
    if events != expected:
        problem = f"{path} holds {events} events instead of {expected}"
        raise OSError(problem)
    return Written(name, events, link_events, path.stat().st_size, first.astimezone(UTC), last.astimezone(UTC))


def sync(path: Path) -> None:
    """Have the disk confirm a file, or the names in a directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _paths(paths: Iterable[Path]) -> str:
    return f"[{', '.join(map(text_of, paths))}]"


def text_of(path: Path) -> str:
    """A path as SQL writes text."""
    return "'{}'".format(str(path.absolute()).replace("'", "''"))


def _one(connection: "DuckDBPyConnection", query: str) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()
    assert found is not None  # noqa: S101 - an aggregate has one row
    return tuple(found)
