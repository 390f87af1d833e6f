"""Pagination by sealed cursors that belong to one query."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, or_
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.errors import Malformed
from refract.core.secrets import InvalidSeal, Secret

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_CURSOR_LENGTH = 512
_PURPOSE = "cursor"
_BLOCK = 16
RowT = TypeVar("RowT")
CursorValue = str | int | float | datetime | None


class InvalidCursor(Malformed):
    """This cursor is invalid for this list. Start again without one."""


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT]):
    """Some rows, and the cursor of the next ones."""

    items: Sequence[RowT]
    next_cursor: str | None


class CursorCodec:
    """Encodes and decodes cursors.

    `question` is everything that invalidates a cursor when it changes: sort, filters, the user.
    """

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    def encode(self, question: object, position: Sequence[CursorValue]) -> str:
        """Return a sealed position. Equal positions make equal cursors."""
        text = json.dumps(
            [_to_json_value(value) for value in position], separators=(",", ":"), ensure_ascii=False
        ).encode()
        # Its length must not reveal how large a number is.
        payload = text.ljust(-len(text) // _BLOCK * -_BLOCK)
        return self._secret.seal(_PURPOSE, payload, context=_digest_question(question))

    def decode(self, question: object, cursor: str) -> list[Any]:
        """Return the position, or raise `InvalidCursor`."""
        if len(cursor) > MAX_CURSOR_LENGTH:
            raise InvalidCursor
        try:
            payload = self._secret.unseal(_PURPOSE, cursor, context=_digest_question(question))
        except InvalidSeal as exc:
            raise InvalidCursor from exc
        return [_from_json_value(value) for value in json.loads(payload)]

    def build_page(
        self, question: object, rows: Sequence[RowT], limit: int, position: Any
    ) -> Page[RowT]:
        """Cut off the extra row, and create the cursor after the last one kept.

        `position` maps a row to its sort values.
        """
        kept = rows[:limit]
        more = len(rows) > limit and bool(kept)
        return Page(kept, self.encode(question, position(kept[-1])) if more else None)


def _digest_question(question: object) -> bytes:
    return hashlib.blake2b(
        json.dumps(question, sort_keys=True, default=str).encode(), digest_size=32
    ).digest()


def build_after_clause(
    columns: Sequence[ColumnElement[Any] | InstrumentedAttribute[Any]],
    position: Sequence[Any],
    *,
    descending: bool,
) -> ColumnElement[bool]:
    """Return the condition for rows after a position, column by column.

    Row comparisons differ between databases. The bound of the first column follows from the rest,
    but lets every query planner start in the middle of an index.
    """
    alternatives: list[ColumnElement[bool]] = []
    for index, (column, value) in enumerate(zip(columns, position, strict=True)):
        same = [
            earlier == known
            for earlier, known in zip(columns[:index], position[:index], strict=True)
        ]
        alternatives.append(and_(*same, column < value if descending else column > value))
    if len(columns) == 1:
        return or_(*alternatives)
    first = columns[0] <= position[0] if descending else columns[0] >= position[0]
    return and_(first, or_(*alternatives))


def _to_json_value(value: CursorValue) -> object:
    return {"t": value.astimezone(UTC).isoformat()} if isinstance(value, datetime) else value


def _from_json_value(value: object) -> CursorValue:
    if isinstance(value, dict):
        return datetime.fromisoformat(value["t"])
    return value  # type: ignore[return-value]
