"""Formats of files of bookmarks: ours, browsers', Pocket, Raindrop, linkding and Karakeep."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import BinaryIO

from refract.library.imports import systems
from refract.library.imports.netscape import NetscapeEntry, NetscapeReader
from refract.library.imports.rows import Bookmark, BookmarkFields, BookmarkRow, TagRow, read_tag
from refract.library.imports.systems import BookmarkReader
from refract.records.errors import UnreadableFile
from refract.records.reader import Fields, RowReader
from refract.records.source import TextSource


class BookmarkFileFormat(StrEnum):
    AUTO = "auto"
    REFRACT = "refract"
    NETSCAPE = "netscape"
    POCKET = "pocket"
    RAINDROP = "raindrop"
    LINKDING = "linkding"
    KARAKEEP = "karakeep"


_TABLES: dict[BookmarkFileFormat, tuple[frozenset[str], BookmarkReader]] = {
    BookmarkFileFormat.RAINDROP: (frozenset({"url", "excerpt", "folder"}), systems.read_raindrop),
    BookmarkFileFormat.POCKET: (frozenset({"url", "time_added"}), systems.read_pocket),
}
_DOCUMENTS: dict[BookmarkFileFormat, tuple[frozenset[str], BookmarkReader]] = {
    BookmarkFileFormat.LINKDING: (frozenset({"url", "tag_names"}), systems.read_linkding),
    BookmarkFileFormat.KARAKEEP: (frozenset({"content", "createdat"}), systems.read_karakeep),
    BookmarkFileFormat.REFRACT: (frozenset({"text"}), systems.read_refract),
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
        found = self.iter_rows_until_broken(entries, "bookmark", self._build_row_from_entry)
        first = next(found, None)
        if first is None:
            raise UnreadableFile(problem=f"{self.nothing_found_message}.")
        yield first
        yield from found

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
            systems.read_netscape(fields)
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
