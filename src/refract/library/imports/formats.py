"""Formats of bookmarks, as files and as records.

Ours, browsers', Pocket, Raindrop, linkding and Karakeep.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, BinaryIO
from urllib.parse import unquote

from refract.library.imports.netscape import NetscapeEntry, NetscapeReader
from refract.library.imports.rows import Bookmark, BookmarkFields, BookmarkRow, TagRow, read_tag
from refract.records.errors import BadRecord, UnreadableFile
from refract.records.reader import Fields, RowReader
from refract.records.source import TextSource
from refract.records.values import guess_moment, to_plain_text

BookmarkReader = Callable[[Fields], BookmarkFields]
NOTE_URL_PREFIX = "data:text/plain;charset=utf-8,"
"""The URL of a note in a bookmark file: browsers show its text."""
_LINKDING_ARCHIVED = frozenset({"linkding:bookmarks.archived", "linkding:archived"})
"""Tags by which linkding marks archived bookmarks in its bookmark files."""
_LINKDING_NOTES = re.compile(r"\[linkding-notes\](.*?)(?:\[/linkding-notes\]|\Z)", re.DOTALL)
"""Notes inside a description, in bookmark files of linkding and Refract."""
_WEB = re.compile(r"\s*https?://", re.IGNORECASE)
_ROOTS = frozenset(
    {
        "bookmarks",
        "bookmarks bar",
        "bookmarks toolbar",
        "bookmarks menu",
        "other bookmarks",
        "mobile bookmarks",
        "favorites",
        "favourites",
        "favorites bar",
        "reading list",
        "unsorted",
        "pocket",
        "read archive",
        "unread",
    }
)
"""Folders whose name is no tag."""


def read_netscape(record: Fields) -> BookmarkFields:
    """Read a bookmark of a browser, as `netscape.NetscapeReader` finds it."""
    attributes = record["attributes"]
    bookmark = BookmarkFields(own="created_at" in attributes)
    href = attributes.get("href", "").strip()
    if href.lower().startswith(NOTE_URL_PREFIX):
        bookmark.own = True  # no other system writes notes
        bookmark.set_text(unquote(href[len(NOTE_URL_PREFIX) :]))
    else:
        bookmark.text = _parse_url(href)
    bookmark.set_title(record["title"])
    bookmark.set_summary(_LINKDING_NOTES.sub("", record["description"], count=1))
    notes = _LINKDING_NOTES.search(record["description"])
    bookmark.set_notes(notes[1] if notes else None)
    tags = attributes.get("tags", "").split(",")
    bookmark.add_tags(tag for tag in tags if tag.strip() not in _LINKDING_ARCHIVED)
    bookmark.set_states(
        unread=attributes.get("toread") or _is_in_section(record, "unread"),
        favorite=attributes.get("favorite"),
        archived=(
            attributes.get("archived")
            or not _LINKDING_ARCHIVED.isdisjoint(tag.strip() for tag in tags)
            or _is_in_section(record, "read archive")
        ),
    )
    bookmark.add_tags(_drop_root_folders(record["folders"]))
    bookmark.created_at = guess_moment(
        attributes.get("created_at") or attributes.get("add_date") or attributes.get("time_added")
    )
    bookmark.confirmed_at = guess_moment(attributes.get("confirmed_at")) or bookmark.created_at
    bookmark.waiting = attributes.get("waiting") == "1"
    return bookmark


def _is_in_section(record: Fields, name: str) -> bool:
    """Return whether a bookmark of Pocket, which alone has `time_added`, is under this heading."""
    is_of_pocket = "time_added" in record["attributes"]
    return is_of_pocket and bool(record["section"].strip().lower() == name)


def read_pocket(record: Fields) -> BookmarkFields:
    """Read `title,url,time_added,tags,status`.

    Tags are separated by `|`, in older files by commas.
    """
    bookmark = BookmarkFields(text=_parse_url(record.get("url")))
    bookmark.set_title(record.get("title"))
    tags = to_plain_text(record.get("tags"))
    bookmark.add_tags(tags.split("|" if "|" in tags else ","))
    status = to_plain_text(record.get("status")).strip().lower()
    bookmark.set_states(unread=status == "unread", archived=status == "archive")
    bookmark.created_at = bookmark.confirmed_at = guess_moment(record.get("time_added"))
    return bookmark


def read_raindrop(record: Fields) -> BookmarkFields:
    """Read `id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite`."""
    bookmark = BookmarkFields(text=_parse_url(record.get("url")))
    bookmark.set_title(record.get("title"))
    bookmark.set_summary(record.get("excerpt"))
    bookmark.set_notes(record.get("note"))
    bookmark.set_states(favorite=record.get("favorite"))
    bookmark.add_tags(to_plain_text(record.get("tags")).split(","))
    bookmark.add_tags(
        _drop_root_folders(
            [part.strip() for part in to_plain_text(record.get("folder")).split("/")]
        )
    )
    bookmark.created_at = bookmark.confirmed_at = guess_moment(record.get("created"))
    if to_plain_text(record.get("highlights")).strip():
        bookmark.remarks.append("highlights are not imported")
    return bookmark


def read_linkding(record: Fields) -> BookmarkFields:
    """Read a bookmark of the REST API."""
    bookmark = BookmarkFields(text=_parse_url(record.get("url")))
    bookmark.set_title(record.get("title") or record.get("website_title"))
    bookmark.set_summary(record.get("description") or record.get("website_description"))
    bookmark.set_notes(record.get("notes"))
    bookmark.set_states(unread=record.get("unread"), archived=record.get("is_archived"))
    bookmark.add_tags(_to_list(record.get("tag_names")))
    bookmark.created_at = bookmark.confirmed_at = guess_moment(record.get("date_added"))
    return bookmark


def read_karakeep(record: Fields) -> BookmarkFields:
    """Read a bookmark of the export: a link or a text; files are refused."""
    content = record.get("content")
    content = content if isinstance(content, Mapping) else {}
    bookmark = BookmarkFields()
    if content.get("type") == "text":
        bookmark.set_text(content.get("text"))
    elif content.get("type") == "asset":
        raise BadRecord("Files are not supported, only links and text.")
    else:
        bookmark.text = _parse_url(content.get("url") or record.get("url"))
    bookmark.set_title(record.get("title") or content.get("title"))
    bookmark.set_summary(record.get("summary"))
    bookmark.set_notes(record.get("note"))
    bookmark.set_states(favorite=record.get("favourited"), archived=record.get("archived"))
    bookmark.add_tags(_to_list(record.get("tags")))
    bookmark.created_at = bookmark.confirmed_at = guess_moment(
        record.get("createdat") or record.get("createdAt")
    )
    return bookmark


def read_refract(record: Fields) -> BookmarkFields:
    """Read a record of Refract's own export."""
    bookmark = BookmarkFields(own=True)
    bookmark.set_text(record.get("text") or record.get("url"))
    bookmark.set_title(record.get("title"))
    bookmark.set_summary(record.get("summary"))
    bookmark.set_notes(record.get("notes"))
    bookmark.set_states(
        unread=record.get("unread"),
        favorite=record.get("favorite"),
        archived=record.get("archived"),
    )
    bookmark.add_tags(_to_list(record.get("tags")))
    bookmark.created_at, bookmark.confirmed_at = (
        guess_moment(record.get("created_at")),
        guess_moment(record.get("confirmed_at")),
    )
    bookmark.waiting = record.get("status") in ("ENRICHING", "READY_TO_CONFIRM", "FAILED")
    page = record.get("page")
    bookmark.page = page if isinstance(page, Mapping) else None
    return bookmark


def _parse_url(value: Any) -> str:
    text = to_plain_text(value).strip()
    if not text:
        raise BadRecord("No URL.")
    if not _WEB.match(text):
        problem = (
            f"Only http and https links are supported, not {text.split(':', 1)[0][:20]}:."
            if ":" in text
            else "Not a URL."
        )
        raise BadRecord(problem)
    return text


def _to_list(value: Any) -> list[str]:
    if not isinstance(value, list):
        return [to_plain_text(value)] if value else []
    return [
        to_plain_text(member.get("name")) if isinstance(member, Mapping) else to_plain_text(member)
        for member in value
    ]


def _drop_root_folders(names: Any) -> list[str]:
    return [name for name in names if name.lower() not in _ROOTS]


class BookmarkFileFormat(StrEnum):
    AUTO = "auto"
    REFRACT = "refract"
    NETSCAPE = "netscape"
    POCKET = "pocket"
    RAINDROP = "raindrop"
    LINKDING = "linkding"
    KARAKEEP = "karakeep"


_TABLES: dict[BookmarkFileFormat, tuple[frozenset[str], BookmarkReader]] = {
    BookmarkFileFormat.RAINDROP: (frozenset({"url", "excerpt", "folder"}), read_raindrop),
    BookmarkFileFormat.POCKET: (frozenset({"url", "time_added"}), read_pocket),
}
_DOCUMENTS: dict[BookmarkFileFormat, tuple[frozenset[str], BookmarkReader]] = {
    BookmarkFileFormat.LINKDING: (frozenset({"url", "tag_names"}), read_linkding),
    BookmarkFileFormat.KARAKEEP: (frozenset({"content", "createdat"}), read_karakeep),
    BookmarkFileFormat.REFRACT: (frozenset({"text"}), read_refract),
}
"""Fields that identify a system, most specific first."""


def open_rows(
    stream: BinaryIO,
    kind: BookmarkFileFormat = BookmarkFileFormat.AUTO,
    encoding: str | None = None,
) -> "BookmarkRows":
    """Return the rows of a file, read as they are iterated.

    Iterating raises `UnreadableFile` if its format is unknown.
    """
    return BookmarkRows(TextSource(stream, encoding), kind)


class BookmarkRows(RowReader[Bookmark | TagRow]):
    """The rows of a file of bookmarks. `kind` becomes the format it turned out to have."""

    noun = "bookmark"
    holders = frozenset({"items", "tags", "bookmarks", "results", "data"})
    max_record = 16 * 1024 * 1024  # records of Refract contain the saved page

    def __init__(self, source: TextSource, kind: BookmarkFileFormat) -> None:
        super().__init__(source)
        self.kind = kind
        self._start = source.head.lstrip("\ufeff \t\r\n")[:1]

    def __iter__(self) -> Iterator[BookmarkRow]:
        if not self._start:
            raise UnreadableFile(problem="The file is empty.")
        found = self._iter_rows()
        first = next(found, None)
        if first is None:
            raise UnreadableFile(problem=f"{self.nothing_found_message}.")
        yield first
        yield from found

    def _iter_rows(self) -> Iterator[BookmarkRow]:
        if self.kind is BookmarkFileFormat.NETSCAPE or (
            self.kind is BookmarkFileFormat.AUTO and self._start == "<"
        ):
            return self._iter_browser_rows()
        if self.kind in _DOCUMENTS or (
            self.kind is BookmarkFileFormat.AUTO and self._start in "{["
        ):
            return self.iter_document_rows()
        return self.iter_table_rows()

    def _iter_browser_rows(self) -> Iterator[BookmarkRow]:
        self.kind = BookmarkFileFormat.NETSCAPE
        entries = NetscapeReader(self.source.text).iter_entries()
        return self.iter_rows_until_broken(entries, "bookmark", self._build_row_from_entry)

    def _build_row_from_entry(self, where: str, entry: NetscapeEntry) -> BookmarkRow:
        return self.build_row(where, asdict(entry), [entry.title, entry.attributes.get("href")])

    def make_row(self, where: str, fields: Fields) -> Bookmark | TagRow:
        """Return a bookmark, or a tag, which Refract's own files have too."""
        if (
            self.kind in (BookmarkFileFormat.AUTO, BookmarkFileFormat.REFRACT)
            and {"name", "color"} <= fields.keys()
            and "text" not in fields
        ):
            return read_tag(where, fields)
        found: BookmarkFields = (
            read_netscape(fields)
            if self.kind is BookmarkFileFormat.NETSCAPE
            else self.read_fields(fields)
        )
        return found.to_bookmark(where)

    def choose_format(self, fields: Sequence[str], what: str, *, in_table: bool) -> BookmarkReader:
        """Return the chosen format, or the one that the fields identify."""
        for kind, (signs, read) in (_TABLES if in_table else _DOCUMENTS).items():
            if signs <= set(fields) and self.kind in (BookmarkFileFormat.AUTO, kind):
                self.kind = kind
                return read
        verb = (
            "match no known format"
            if self.kind is BookmarkFileFormat.AUTO
            else f"do not match {self.kind}"
        )
        raise UnreadableFile(problem=f"{what} {verb}: {', '.join(sorted(fields))[:200]}.")
