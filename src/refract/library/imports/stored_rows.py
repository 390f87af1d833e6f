"""Rows as they are stored in the database until they are imported, with their saved pages. Pure."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from refract.core.extraction.tasks import TaskRefused
from refract.library.imports.formats import BookmarkFileFormat, open_rows
from refract.library.imports.rows import Bookmark, BookmarkRow, TagRow
from refract.library.sanitizer import sanitize_html
from refract.records.errors import BadRecord, UnreadableFile
from refract.records.reader import MAX_SHOWN, UnreadableRow
from refract.records.stored_rows import StoredRow, format_stored_row, write_rows
from refract.records.values import guess_moment, to_plain_text


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


def write_stored_rows(body: bytes, *, kind: str) -> Iterator[bytes]:
    """Yield rows to store. Runs in the extraction process."""
    return write_bookmark_rows(body, kind, lambda row: format_stored_row(to_stored_row(row)))


def write_bookmark_rows(
    body: bytes, kind: str, write: Callable[[BookmarkRow], tuple[str, str]]
) -> Iterator[bytes]:
    """Yield two lines per row, and at last the format. Runs in the extraction process.

    This module loads no more than that process needs: it is started anew for most files.
    """
    try:
        rows = open_rows(io.BytesIO(body), BookmarkFileFormat(kind))
    except UnreadableFile as exc:
        raise TaskRefused(exc.code, problem=exc.message) from exc
    return write_rows(rows, write, lambda: rows.kind)


# The saved page of an item, in files of Refract.

PAGE_FIELDS = (
    "url",
    "canonical_url",
    "title",
    "description",
    "author",
    "site",
    "language",
    "published_at",
    "image_url",
    "keywords",
    "text",
    "html",
    "fetched_at",
)
_MAX_LENGTHS = {"title": 255, "author": 255, "site": 255, "language": 10}
_MAX_TEXT_LENGTH = 2_000_000


_SANITISED_KEY = "sanitised"
"""Marks a page whose HTML was sanitised when the row was stored, in an extraction process."""


def clean_page(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a page that are imported, with its HTML sanitised."""
    html = page.get("html")
    fields = {name: page[name] for name in PAGE_FIELDS if name in page}
    return {
        **fields,
        "html": sanitize_html(html[:_MAX_TEXT_LENGTH]) if isinstance(html, str) else html,
        _SANITISED_KEY: True,
    }


def build_page_row(item_id: int, row: Bookmark, now: datetime) -> dict[str, Any] | None:
    """Return a row of `item_pages`, or None if the file has no valid page.

    Its HTML is sanitised, now or before.
    """
    if not isinstance(row.page, Mapping):
        return None
    page = row.page
    try:
        words = {
            name: to_plain_text(page.get(name))[: _MAX_LENGTHS.get(name, _MAX_TEXT_LENGTH)] or None
            for name in PAGE_FIELDS
            if name != "keywords"
        }
    except BadRecord:
        return None
    keywords = page.get("keywords")
    html = words["html"] or ""
    clean = html if page.get(_SANITISED_KEY) is True else sanitize_html(html)
    return {
        **words,
        "item_id": item_id,
        "url": words["url"] or row.text,
        "text": words["text"] or "",
        "html": clean,
        "keywords": [str(word)[:50] for word in keywords[:50]]
        if isinstance(keywords, list)
        else [],
        "published_at": guess_moment(page.get("published_at")),
        "fetched_at": guess_moment(page.get("fetched_at")) or now,
    }
