"""A portable form of rows: one line of JSON each, and an order-independent checksum."""

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Select,
    Table,
    Text,
    bindparam,
    column,
    func,
    select,
    table,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.expression import Insert, TableClause, insert
from sqlalchemy.types import TypeEngine

from refract.core.db.full_text import TextSearchVector
from refract.migrations.tables import metadata

EXCLUDED_TABLES: Final = frozenset({"visitor_salts"})
"""Secrets that are destroyed on purpose: a copy would outlive that."""

_MODULUS = 1 << 128
_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]  # not annotated


def list_tables(exclude: Collection[str] = ()) -> list[Table]:
    """Return the tables to copy, each after those it references."""
    return [
        model
        for model in metadata.sorted_tables
        if model.name not in EXCLUDED_TABLES and model.name not in exclude
    ]


@dataclass(slots=True)
class TableChecksum:
    """Number and checksum of rows: equal for equal rows in any order, different otherwise."""

    rows: int = 0
    total: int = 0

    def add(self, line: bytes) -> None:
        self.rows += 1
        self.total = (
            self.total + int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())
        ) % _MODULUS

    @property
    def text(self) -> str:
        return f"{self.rows}:{self.total:032x}"


class TableCodec:
    """Encoding, decoding, select and insert of a table with some of its columns."""

    def __init__(self, model: Table, columns: Sequence[str] | None = None) -> None:
        self.name = model.name
        self.columns = (
            list(columns)
            if columns is not None
            else [model_column.name for model_column in model.columns]
        )
        self.keys = [model_column.name for model_column in model.primary_key.columns]
        self.serial_column = (
            model.autoincrement_column.name
            if model.autoincrement_column is not None and _has_serial_column(model)
            else None
        )
        self._kinds = [_get_column_kind(model.columns[name].type) for name in self.columns]
        self.table: TableClause = table(
            self.name, *(column(name, model.columns[name].type) for name in self.columns)
        )
        self._nullable_json = {
            name
            for name in self.columns
            if isinstance(model.columns[name].type, JSON) and model.columns[name].nullable
        }

    @property
    def order(self) -> list[ColumnElement[Any]]:
        return [self.table.c[name] for name in self.keys]

    def build_select(self, dialect: str) -> Select[Any]:
        """Return a query for the columns, ordered by primary key."""
        return select(
            *(
                self._select_column(name, kind, dialect)
                for name, kind in zip(self.columns, self._kinds, strict=True)
            )
        ).order_by(*self.order)

    def build_insert(self, dialect: str) -> Insert:
        """Return the insert. None in a nullable JSON column is SQL NULL, not JSON null."""
        return insert(self.table).values(
            {
                name: self._bind_value(name, kind, dialect)
                for name, kind in zip(self.columns, self._kinds, strict=True)
            }
        )

    def encode_row(self, row: Sequence[Any]) -> bytes:
        values = [_ENCODERS[kind](value) for kind, value in zip(self._kinds, row, strict=True)]
        return json.dumps(
            values, ensure_ascii=False, sort_keys=True, separators=(",", ":")
        ).encode()

    def decode_row(self, line: bytes, dialect: str) -> dict[str, Any]:
        values = json.loads(line)
        lists = dialect == "postgresql"
        return {
            name: (
                value.split()
                if kind == "words" and lists and value is not None
                else _from_json_value(kind, value)
            )
            for name, kind, value in zip(self.columns, self._kinds, values, strict=True)
        }

    def _select_column(self, name: str, kind: str, dialect: str) -> ColumnElement[Any]:
        chosen: ColumnElement[Any] = self.table.c[name]
        return (
            func.tsvector_to_array(chosen, type_=ARRAY(Text))
            if kind == "words" and dialect == "postgresql"
            else chosen
        )

    def _bind_value(self, name: str, kind: str, dialect: str) -> ColumnElement[Any]:
        if kind == "words" and dialect == "postgresql":
            return func.array_to_tsvector(bindparam(name, type_=ARRAY(Text)))
        if kind == "json":
            return bindparam(name, type_=JSON(none_as_null=name in self._nullable_json))
        return bindparam(name)


def _has_serial_column(model: Table) -> bool:
    """Return whether the database numbers the rows of this table."""
    first = model.autoincrement_column
    return first is not None and first.autoincrement is True


def _get_column_kind(kind: TypeEngine[Any]) -> str:
    if isinstance(kind.dialect_impl(_POSTGRESQL), TextSearchVector):
        return "words"  # a set on PostgreSQL, text with spaces elsewhere
    return "json" if isinstance(kind, JSON) else "plain"


def _sort_words(value: Any) -> str | None:
    """Return the words sorted, since a set has no order."""
    return (
        None
        if value is None
        else " ".join(sorted(set(value.split() if isinstance(value, str) else value)))
    )


def _to_json_value(value: Any) -> Any:
    """Return a JSON value; datetimes, dates and bytes become objects that name their type.

    The type is that of the Python value: a column may store a datetime as a number.
    """
    if isinstance(value, datetime):
        return {"moment": value.astimezone(UTC).isoformat(timespec="microseconds")}
    if isinstance(value, date):
        return {"day": value.isoformat()}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    return value


def _from_json_value(kind: str, value: Any) -> Any:
    if kind == "json" or not isinstance(value, dict):
        return value
    ((type_name, encoded),) = value.items()
    if type_name == "moment":
        return datetime.fromisoformat(encoded)
    return date.fromisoformat(encoded) if type_name == "day" else base64.b64decode(encoded)


_ENCODERS: dict[str, Callable[[Any], Any]] = {
    "words": _sort_words,
    "json": lambda value: value,
    "plain": _to_json_value,
}
