"""Rows in a form that means the same on every database: one line of JSON each, and a sum that does not depend on their order."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlalchemy import JSON, ColumnElement, Date, DateTime, LargeBinary, Table, bindparam, column, table
from sqlalchemy.sql.expression import Insert, TableClause, insert
from sqlalchemy.types import TypeDecorator, TypeEngine

from refract.migrations.tables import metadata

LEFT_OUT: Final = frozenset({"visitor_salts"})
"""Secrets that are to be forgotten: a copy of them would outlive their destruction."""

_MODULUS = 1 << 128


def tables() -> list[Table]:
    """Every table that is carried over, each after the ones it refers to."""
    return [one for one in metadata.sorted_tables if one.name not in LEFT_OUT]


@dataclass(slots=True)
class Sum:
    """How many rows, and what they add up to: equal for equal rows in any order, and for nothing else that would happen by accident."""

    rows: int = 0
    total: int = 0

    def add(self, line: bytes) -> None:
        self.rows += 1
        self.total = (self.total + int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())) % _MODULUS

    @property
    def spelled(self) -> str:
        return f"{self.rows}:{self.total:032x}"


class Form:
    """A table, seen through some of its columns: what a row of it looks like as a line, and how it is inserted."""

    def __init__(self, model: Table, columns: Sequence[str] | None = None) -> None:
        self.name = model.name
        self.columns = list(columns) if columns is not None else [one.name for one in model.columns]
        self.keys = [one.name for one in model.primary_key.columns]
        self.counted = model.autoincrement_column.name if model.autoincrement_column is not None and _counts(model) else None
        self._kinds = [_kind(model.columns[name].type) for name in self.columns]
        self.table: TableClause = table(self.name, *(column(name, model.columns[name].type) for name in self.columns))
        empty = {name for name in self.columns if isinstance(model.columns[name].type, JSON) and model.columns[name].nullable}
        self._values = {
            name: bindparam(name, type_=JSON(none_as_null=name in empty)) if self._is_json(name) else bindparam(name)
            for name in self.columns
        }

    def _is_json(self, name: str) -> bool:
        return self._kinds[self.columns.index(name)] == "json"

    @property
    def order(self) -> list[ColumnElement[Any]]:
        return [self.table.c[name] for name in self.keys]

    @property
    def insertion(self) -> Insert:
        """A missing JSON value is missing, not the word null; SQLAlchemy would write the latter."""
        return insert(self.table).values(self._values)

    def line(self, row: Sequence[Any]) -> bytes:
        values = [_plain(value) for value in row]
        return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    def read(self, line: bytes) -> dict[str, Any]:
        values = json.loads(line)
        return {name: _rich(kind, value) for name, kind, value in zip(self.columns, self._kinds, values, strict=True)}


def _counts(model: Table) -> bool:
    """Whether the database itself numbers the rows of this table."""
    first = model.autoincrement_column
    return first is not None and first.autoincrement is True


def _kind(kind: TypeEngine[Any]) -> str:
    base = kind.impl if isinstance(kind, TypeDecorator) else kind
    if isinstance(base, DateTime):
        return "moment"
    if isinstance(base, Date):
        return "day"
    if isinstance(base, LargeBinary):
        return "bytes"
    return "json" if isinstance(base, JSON) else "plain"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    return value


def _rich(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "moment":
        return datetime.fromisoformat(value)
    if kind == "day":
        return date.fromisoformat(value)
    return base64.b64decode(value) if kind == "bytes" else value
