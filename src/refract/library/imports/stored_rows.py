"""Rows as they are stored in the database until they are imported. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from refract.library.imports.rows import Bookmark, BookmarkRow, TagRow
from refract.library.imports.saved_pages import clean_page
from refract.records.reader import MAX_SHOWN, UnreadableRow


class StoredRow(NamedTuple):
    """The columns of an `ImportRow` that come from the file."""

    place: str
    shown: str
    why: str | None
    content: str | None


def to_stored_row(row: BookmarkRow) -> StoredRow:
    """Return a row as it is stored; the HTML of a saved page is sanitised with it."""
    shown = row.text[:MAX_SHOWN].encode("utf-8", "replace").decode().replace("\0", "")
    if isinstance(row, UnreadableRow):
        return StoredRow(
            row.where[:40], shown, row.why[:1000].encode("utf-8", "replace").decode(), None
        )
    given = {
        name: value for name, value in asdict(row).items() if value not in (None, "", (), [], False)
    }
    if isinstance(row, Bookmark) and isinstance(row.page, Mapping):
        given["page"] = clean_page(row.page)
    content = json.dumps(
        {"tag": isinstance(row, TagRow), **given}, default=_to_json_value, ensure_ascii=False
    )
    return StoredRow(row.where[:40], shown, None, content)


def from_stored_row(place: str, shown: str, why: str | None, content: str | None) -> BookmarkRow:
    """Return the row that was stored."""
    if content is None:
        return UnreadableRow(place, why or "", shown)
    given: dict[str, Any] = json.loads(content)
    if given.pop("tag"):
        return TagRow(**given)
    for name in ("created_at", "confirmed_at"):
        given[name] = datetime.fromisoformat(given[name]) if given.get(name) else None
    return Bookmark(**given)


def _to_json_value(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
