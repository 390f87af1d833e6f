"""Pages of a long list: signed cursors that belong to one question."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, or_
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.errors import Malformed
from refract.core.secrets import Secret

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_CURSOR = 512
_SIGNATURE = 16
Row = TypeVar("Row")
Value = str | int | float | datetime | None


class InvalidCursor(Malformed):
    """This cursor does not belong to this list: start again without one."""


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and where the next ones begin."""

    items: Sequence[Row]
    next_cursor: str | None


class Cursors:
    """Makes and reads cursors. `question` is everything a cursor must not survive: sort, filters, the person asking."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    def make(self, question: object, position: Sequence[Value]) -> str:
        payload = json.dumps([_plain(value) for value in position], separators=(",", ":"), ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(self._sign(question, payload) + payload).rstrip(b"=").decode()

    def read(self, question: object, cursor: str) -> list[Any]:
        """The position, or `InvalidCursor`, whatever was done to the text."""
        try:
            if len(cursor) > MAX_CURSOR or not cursor.isascii():
                raise InvalidCursor
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error) as wrong:
            raise InvalidCursor from wrong
        signature, payload = raw[:_SIGNATURE], raw[_SIGNATURE:]
        canonical = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        if (
            canonical != cursor
            or len(signature) != _SIGNATURE
            or not self._secret.verify("cursor", self._bound(question, payload), signature)
        ):
            raise InvalidCursor
        return [_back(value) for value in json.loads(payload)]

    def page(self, question: object, rows: Sequence[Row], limit: int, position: Any) -> Page[Row]:
        """Cut the extra row that was asked for, and point behind the last one kept. `position` maps a row to its sort values."""
        kept = rows[:limit]
        more = len(rows) > limit and bool(kept)
        return Page(kept, self.make(question, position(kept[-1])) if more else None)

    def _sign(self, question: object, payload: bytes) -> bytes:
        return self._secret.sign("cursor", self._bound(question, payload), size=_SIGNATURE)

    @staticmethod
    def _bound(question: object, payload: bytes) -> bytes:
        asked = json.dumps(question, sort_keys=True, default=str).encode()
        return hashlib.blake2b(asked, digest_size=32).digest() + payload


def after(
    columns: Sequence[ColumnElement[Any] | InstrumentedAttribute[Any]], position: Sequence[Any], *, descending: bool
) -> ColumnElement[bool]:
    """Rows behind a position, spelled out column by column: row comparisons differ between databases."""
    alternatives: list[ColumnElement[bool]] = []
    for index, (column, value) in enumerate(zip(columns, position, strict=True)):
        same = [earlier == known for earlier, known in zip(columns[:index], position[:index], strict=True)]
        alternatives.append(and_(*same, column < value if descending else column > value))
    return or_(*alternatives)


def _plain(value: Value) -> object:
    return {"t": value.astimezone(UTC).isoformat()} if isinstance(value, datetime) else value


def _back(value: object) -> Value:
    return datetime.fromisoformat(value["t"]) if isinstance(value, dict) else value  # type: ignore[return-value]
