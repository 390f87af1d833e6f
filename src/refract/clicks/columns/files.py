"""Tables of archived clicks: one file beside each Parquet file, derived from it.

A Parquet file never changes, so its table is valid as long as both exist. A missing table is built
when it is needed, and by the nightly job of the archive before that.
"""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from refract.clicks.archive.parquet import (
    COLUMN_LIST,
    UNFINISHED_SUFFIX,
    build_source,
    get_table_name,
    load_events,
    open_connection,
    sync_path,
)
from refract.clicks.columns.dimensions import COLUMN_DIMENSIONS, FILE_EXPRESSIONS
from refract.clicks.columns.table import (
    ClickTable,
    ClickTableBuilder,
    ValueNumbering,
    decode_table,
)

MAX_CACHED_BYTES: Final = 192 * 1024 * 1024
"""Bytes of tables that are kept in memory; others are read again. Twelve million clicks or so."""
_ROWS_PER_FETCH: Final = 20_000
_VISITOR: Final = "hash(coalesce(network, ''), coalesce(user_agent, ''))"
_SELECT_LIST: Final = ", ".join(
    (
        "kind",
        "target_id",
        'epoch_us("at") // 900000000 % 96',
        f"CASE WHEN bot THEN 0 ELSE greatest({_VISITOR}, 1) END",
        *(FILE_EXPRESSIONS[name] for name in COLUMN_DIMENSIONS),
    )
)


def collect_clicks(
    directory: Path, names: Sequence[str], late: Sequence[tuple[Any, ...]] = ()
) -> ClickTableBuilder:
    """Return the clicks of a day, from its Parquet files and late ones from the database.

    Raises FileNotFoundError if a file is missing.
    """
    for name in names:
        (directory / name).stat()
    source = f"SELECT {COLUMN_LIST} FROM {build_source(directory, names)}"  # noqa: S608 - our words
    if late:
        source += f" UNION ALL SELECT {COLUMN_LIST} FROM events"  # noqa: S608
    builder = ClickTableBuilder()
    with open_connection(directory) as connection:
        if late:
            load_events(connection, late)
        question = f"SELECT {_SELECT_LIST} FROM ({source}) WHERE NOT private"  # noqa: S608
        cursor = connection.execute(question)
        while rows := cursor.fetchmany(_ROWS_PER_FETCH):
            builder.add_rows(rows)
    return builder


def write_table(directory: Path, name: str) -> None:
    """Write the table of a Parquet file beside it, synced to disk."""
    _save_table(directory, name, collect_clicks(directory, [name]).encode())


def _save_table(directory: Path, name: str, content: bytes) -> None:
    path = directory / get_table_name(name)
    unfinished = path.with_name(f"{path.name}{UNFINISHED_SUFFIX}-{secrets.token_hex(4)}")
    unfinished.touch(mode=0o600)
    unfinished.write_bytes(content)
    sync_path(unfinished)
    unfinished.rename(path)


class FileTables:
    """The tables of archived days. Those used last are kept in memory."""

    def __init__(self, directory: Path, numbering: ValueNumbering) -> None:
        self._directory, self._numbering = directory, numbering
        self._tables: OrderedDict[tuple[Any, ...], ClickTable] = OrderedDict()
        self._bytes = 0

    def load(self, names: Sequence[str], late: Sequence[tuple[Any, ...]]) -> ClickTable:
        """Return the table of a day.

        Raises FileNotFoundError if a Parquet file is missing whose table is missing too.
        """
        key = (*names, *(event[:3] for event in late))
        table = self._tables.get(key)
        if table is not None:
            self._tables.move_to_end(key)
            return table
        if len(names) == 1 and not late:
            table = self._read(names[0])
        else:  # each table has its own visitors, so that two of a day cannot be added up
            table = collect_clicks(self._directory, names, late).build(self._numbering)
        self._tables[key] = table
        self._bytes += table.byte_count
        while self._bytes > MAX_CACHED_BYTES and len(self._tables) > 1:
            _, oldest = self._tables.popitem(last=False)
            self._bytes -= oldest.byte_count
        return table

    def _read(self, name: str) -> ClickTable:
        with suppress(OSError, ValueError):
            content = (self._directory / get_table_name(name)).read_bytes()
            return decode_table(content, self._numbering)
        content = collect_clicks(self._directory, [name]).encode()
        with suppress(OSError):  # a full disk, or one that may only be read
            _save_table(self._directory, name, content)
        return decode_table(content, self._numbering)
