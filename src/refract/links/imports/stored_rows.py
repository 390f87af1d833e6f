"""Rows of links as they are stored in the database until they are imported. Pure."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from refract.core.extraction.tasks import TaskRefused
from refract.links.imports.formats import LinkFileFormat, open_link_file
from refract.links.imports.rows import Candidate, LinkRow
from refract.records.errors import UnreadableFile
from refract.records.reader import MAX_SHOWN, UnreadableRow
from refract.records.stored_rows import StoredRow, format_stored_row, write_rows

MAX_PLACE = 40
MAX_WHY = 1000
MAX_COLUMNS = 50
"""Columns that are not imported and are named."""


def summarize_row(row: LinkRow) -> StoredRow:
    """Return what is stored of a row that was imported: its place and an excerpt."""
    return StoredRow(row.where[:MAX_PLACE], clean_text(describe_row(row), MAX_SHOWN), None, None)


def to_stored_row(row: LinkRow) -> StoredRow:
    """Return a row as it is stored until it is imported."""
    place, shown, *_ = summarize_row(row)
    if isinstance(row, UnreadableRow):
        return StoredRow(place, shown, clean_text(row.why, MAX_WHY), None)
    given = {name: value for name, value in asdict(row).items() if value not in (None, "", (), [])}
    content = json.dumps(given, default=_to_json_value, ensure_ascii=False)
    return StoredRow(place, shown, None, content)


def from_stored_row(place: str, shown: str, why: str | None, content: str | None) -> LinkRow:
    """Return the row that was stored."""
    if content is None:
        return UnreadableRow(place, why or "", shown)
    given: dict[str, Any] = json.loads(content)
    if made := given.get("created_at"):
        given["created_at"] = datetime.fromisoformat(made)
    return Candidate(**given)


def describe_row(row: LinkRow) -> str:
    """Return the names of a row and its destination."""
    names = ", ".join(row.names)
    return f"{names} → {row.text}" if names else row.text


def clean_text(text: str, limit: int) -> str:
    """Return text that every database takes."""
    return text[:limit].encode("utf-8", "replace").decode().replace("\0", "")


def _to_json_value(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def write_stored_rows(
    body: bytes, *, kind: str, now: str, mapping: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield rows to store, and the format. Runs in the extraction process."""
    moment = datetime.fromisoformat(now).astimezone(UTC)
    try:
        rows = open_link_file(io.BytesIO(body), moment, LinkFileFormat(kind), mapping=mapping)
    except UnreadableFile as exc:
        raise TaskRefused(exc.code, problem=exc.message) from exc
    return write_rows(
        rows,
        lambda row: format_stored_row(to_stored_row(row)),
        lambda: {
            "kind": rows.kind,
            "unread": list(rows.unread)[:MAX_COLUMNS],
            "columns": dict(rows.mapping),
        },
    )
