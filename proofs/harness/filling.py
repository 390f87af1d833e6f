"""Rows that a schema accepts, made without knowing what they are for.

In nearly every table, with every kind of value.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    insert,
    select,
)
from sqlalchemy.exc import StatementError
from sqlalchemy.types import TypeDecorator

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.rollups.breakdowns import encode_counts
from refract.clicks.rollups.sketches import encode_visitors
from refract.core.db.session import Database
from refract.migrations.tables import metadata
from refract.transfer.row_format import TableCodec, list_tables
from refract.transfer.table_io import compute_checksum, open_snapshot

ROWS = 3
WORDS = "żółw 你好 'quoted\" \\ \u2028 😀 =1+1"

ENCODED = {
    ("open_rollups", "visitors"): encode_visitors([b"guest"]),
    ("open_rollups", "parts"): encode_counts({}, pack=False),
    ("click_packs", "data"): b"",
}
"""Values that a downgrade decodes. A pack without entries leaves roll-ups as they are."""


class Filler:
    """Rows that a schema accepts, table by table, so that tables which come later are tried as
    well.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._made: dict[str, list[dict[str, Any]]] = {}
        self._number = 1000

    async def fill(self) -> set[str]:
        """The names of the tables that have rows now."""
        async with self._db.engine.connect() as connection:
            for model in metadata.sorted_tables:
                for turn in range(ROWS):
                    row = self._row(model, turn)
                    try:
                        await connection.execute(insert(model).values(row))
                        await connection.commit()
                        self._made.setdefault(model.name, []).append(row)
                    except (StatementError, ValueError):
                        await connection.rollback()
        return set(self._made)

    def _row(self, model: Table, turn: int) -> dict[str, Any]:
        """Where the database counts by itself it goes on doing so.

        A number of ours would be in its way sooner or later.
        """
        return {
            column.name: self._value(model, column, turn)
            for column in model.columns
            if column.autoincrement is not True
        }

    def _value(self, model: Table, column: Column[Any], turn: int) -> Any:
        if (model.name, column.name) in ENCODED:
            return ENCODED[model.name, column.name]
        for key in column.foreign_keys:
            parents = self._made.get(key.column.table.name, [])
            return parents[turn % len(parents)][key.column.name] if parents else None
        if column.nullable and turn == 0:
            return None
        if (words := _allowed(model, column.name)) is not None:
            return words[turn % len(words)]
        self._number += 1
        return self._of_type(column, turn)

    def _of_type(self, column: Column[Any], turn: int) -> Any:  # noqa: PLR0911 - one per kind
        kind = column.type.impl if isinstance(column.type, TypeDecorator) else column.type
        if isinstance(kind, Boolean):
            return bool(turn % 2)
        if isinstance(kind, Integer) and isinstance(column.type, TypeDecorator):
            return datetime(
                2026, 6, 1, 12, 0, turn, tzinfo=UTC
            )  # a moment that is kept as a number
        if isinstance(kind, Integer):
            return self._number % 30_000 if isinstance(kind, SmallInteger) else self._number
        if isinstance(kind, Float):
            return self._number / 7
        if isinstance(kind, DateTime):
            return datetime(2026, 6, 1, 12, 0, 0, 123456 + turn, tzinfo=UTC) + timedelta(
                seconds=self._number
            )
        if isinstance(kind, Date):
            return datetime(2026, 6, 1 + turn, tzinfo=UTC).date()
        if isinstance(kind, LargeBinary):
            return bytes(range(256)) + bytes([turn])
        if isinstance(kind, JSON):
            return {"b": [1, 2.5, None, WORDS], "a": {"z": True, "y": turn}}
        length = getattr(kind, "length", None) or 200
        return f"{self._number}{WORDS}"[:length]


def _allowed(model: Table, name: str) -> list[str] | None:
    for constraint in model.constraints:
        found = re.search(rf"\b{name} IN \(([^)]*)\)", str(getattr(constraint, "sqltext", "")))
        if found:
            return re.findall(r"'([^']*)'", found[1]) or None
    return None


async def sums(db: Database, without: Collection[str] = ()) -> dict[str, str]:
    """Return the sum of every table."""
    async with open_snapshot(db) as connection:
        return {
            model.name: (await compute_checksum(connection, TableCodec(model))).text
            for model in list_tables(without)
        }


async def fill_archive(db: Database, directory: Path) -> None:
    """Make the files that the rows of `click_archives` name.

    A backup without them would not be one.
    """
    async with db.engine.connect() as connection:
        names = list((await connection.execute(select(ArchiveFile.name))).scalars())
    _write_files(directory, names)


def _write_files(directory: Path, names: list[str]) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text(f"clicks of {name}")
