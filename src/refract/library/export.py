"""The library as a file: everything as JSON, or URLs as a bookmark file for browsers.

`library/imports` can read both.
"""

import html
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from sqlalchemy import select

from refract.core.clock import format_utc
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.identity import audit
from refract.library.imports.formats import NOTE_URL_PREFIX
from refract.library.imports.stored_rows import PAGE_FIELDS
from refract.library.item_tags import get_item_tags
from refract.library.models import READING_STATES, Item, ItemStatus, SavedPage
from refract.tags.models import Tag
from refract.tags.personal_tags import list_aliases

BATCH_SIZE = 200
PAGE_BATCH_SIZE = 20
"""Items read at a time where each may come with a megabyte of text."""
MAX_CHUNK_CHARACTERS = 64 * 1024
MEDIA_TYPES = {"json": "application/json", "html": "text/html; charset=utf-8"}


class LibraryExportFormat(StrEnum):
    JSON = "json"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class ExportedItem:
    """An item with everything about it."""

    item: Item
    tags: Sequence[Tag]
    page: SavedPage | None


async def stream_library(
    rt: Runtime, user_id: int, export_format: LibraryExportFormat
) -> AsyncIterator[str]:
    """Yield the text of the file in pieces.

    Each batch is read in a transaction of its own, so that nothing is locked for long.
    """
    await audit.record_export(rt, "library", by=user_id)
    writer = _JsonWriter() if export_format is LibraryExportFormat.JSON else _HtmlWriter()
    yield writer.format_head()
    async with rt.db.read() as session:
        tags = await _load_tags(session, user_id)
    yield writer.format_tags(tags)
    async for entries in iter_item_batches(
        rt, user_id, with_pages=export_format is LibraryExportFormat.JSON
    ):
        for chunk in _iter_chunks(entries):
            yield await rt.singleton(WorkThreadPool).run(writer.format_items, chunk)
    yield writer.format_tail()


async def iter_item_batches(
    rt: Runtime, user_id: int, *, with_pages: bool
) -> AsyncIterator[Sequence[ExportedItem]]:
    """Yield all items that are not discarded, in the order of their ids."""
    last = -1
    while True:
        async with rt.db.read() as session:
            query = select(Item).where(
                Item.user_id == user_id, Item.id > last, Item.status != ItemStatus.DISCARDED
            )
            items = list(
                await session.scalars(
                    query.order_by(Item.id).limit(PAGE_BATCH_SIZE if with_pages else BATCH_SIZE)
                )
            )
            ids = [item.id for item in items]
            tags = await get_item_tags(session, ids)
            pages = await _load_pages(session, ids) if with_pages else {}
        if not items:
            return
        last = items[-1].id
        yield [ExportedItem(item, tags[item.id], pages.get(item.id)) for item in items]


def _iter_chunks(entries: Sequence[ExportedItem]) -> Iterator[Sequence[ExportedItem]]:
    """Split entries so that a chunk has at most one long page."""
    chunk: list[ExportedItem] = []
    size = 0
    for entry in entries:
        chunk.append(entry)
        size += len(entry.item.text) + (
            len(entry.page.text) + len(entry.page.html) if entry.page is not None else 0
        )
        if size > MAX_CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


async def _load_pages(session: ReadSession, item_ids: Sequence[int]) -> dict[int, SavedPage]:
    return {
        page.item_id: page
        for page in await session.scalars(select(SavedPage).where(SavedPage.item_id.in_(item_ids)))
    }


async def _load_tags(session: ReadSession, user_id: int) -> list[dict[str, Any]]:
    tags = list(
        await session.scalars(
            select(Tag).where(Tag.space == user_id, Tag.deleted_at.is_(None)).order_by(Tag.key)
        )
    )
    aliases = await list_aliases(session, [tag.id for tag in tags])
    return [{"name": tag.name, "color": tag.color, "aliases": aliases[tag.id]} for tag in tags]


def build_record(entry: ExportedItem) -> dict[str, Any]:
    """Return everything that an item has."""
    item, page = entry.item, entry.page
    return {
        "text": item.text,
        "url": item.url,
        "title": item.title,
        "summary": item.summary,
        "notes": item.notes,
        "type": item.type,
        "status": item.status,
        **{name: getattr(item, name) for name in READING_STATES},
        "enrichment": item.enrichment,
        "created_at": _format_time(item.created_at),
        "updated_at": _format_time(item.updated_at),
        "confirmed_at": _format_time(item.confirmed_at),
        "tags": [tag.name for tag in entry.tags],
        "page": {name: _to_json_value(getattr(page, name)) for name in PAGE_FIELDS}
        if page is not None
        else None,
    }


class _JsonWriter:
    """Writes one object: tags with colours and aliases, then items, one per line."""

    def __init__(self) -> None:
        self._first = True

    def format_head(self) -> str:
        return '{"format": "refract-library", "version": 1, "tags": ['

    def format_tags(self, tags: Sequence[Mapping[str, Any]]) -> str:
        return (
            ",".join(f"\n{json.dumps(tag, ensure_ascii=False)}" for tag in tags) + '\n], "items": ['
        )

    def format_items(self, entries: Sequence[ExportedItem]) -> str:
        lines = [json.dumps(build_record(entry), ensure_ascii=False) for entry in entries]
        before, self._first = "" if self._first else ",", False
        return before + ",".join(f"\n{line}" for line in lines)

    def format_tail(self) -> str:
        return "\n]}\n"


class _HtmlWriter:
    """Writes a bookmark file.

    A note is a data URL with its text. Exact times are attributes beside the seconds that browsers
    know. `TOREAD` and the brackets around notes are those of linkding.
    """

    def format_head(self) -> str:
        return (
            '<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<META HTTP-EQUIV="Content-Type"'
            ' CONTENT="text/html;'
            ' charset=UTF-8">\n<TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n<DL><p>\n'
        )

    def format_tags(self, _tags: Sequence[Mapping[str, Any]]) -> str:
        """Return nothing: the format has no list of tags."""
        return ""

    def format_items(self, entries: Sequence[ExportedItem]) -> str:
        return "".join(self._format_item(entry) for entry in entries)

    def _format_item(self, entry: ExportedItem) -> str:
        item = entry.item
        facts = {
            "HREF": item.url or NOTE_URL_PREFIX + quote(item.text, safe=""),
            "ADD_DATE": str(int(item.created_at.timestamp())),
            "CREATED_AT": _format_time(item.created_at),
            "CONFIRMED_AT": _format_time(item.confirmed_at),
            "WAITING": None if item.status == ItemStatus.ARCHIVED else "1",
            "TOREAD": "1" if item.unread else None,
            "FAVORITE": "1" if item.favorite else None,
            "ARCHIVED": "1" if item.archived else None,
            "TAGS": ",".join(tag.name for tag in entry.tags) or None,
        }
        inside = " ".join(
            f'{name}="{html.escape(value)}"' for name, value in facts.items() if value is not None
        )
        notes = f"[linkding-notes]{item.notes}[/linkding-notes]" if item.notes else ""
        words = (item.summary or "") + notes
        about = f"<DD>{html.escape(words)}\n" if words else ""
        return f"<DT><A {inside}>{html.escape(item.title or '')}</A>\n{about}"

    def format_tail(self) -> str:
        return "</DL><p>\n"


def _to_json_value(value: Any) -> Any:
    return _format_time(value) if isinstance(value, datetime) else value


def _format_time(moment: datetime | None) -> str | None:
    return format_utc(moment) if moment else None
