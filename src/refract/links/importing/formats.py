"""Formats of files of links: ours, and those of YOURLS, Shlink and Kutt."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO

from refract.links.importing import systems
from refract.links.importing.rows import Candidate, LinkFields, LinkRow
from refract.links.importing.systems import YOURLS_TABLE, LinkFormat
from refract.records.errors import UnreadableFile
from refract.records.reader import Fields, RowReader
from refract.records.source import TextSource


class Kind(StrEnum):
    AUTO = "auto"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    YOURLS = "yourls"
    SHLINK = "shlink"
    KUTT = "kutt"


_FOREIGN: dict[Kind, LinkFormat] = {
    Kind.YOURLS: systems.read_yourls,
    Kind.SHLINK: systems.read_shlink,
    Kind.KUTT: systems.read_kutt,
}
_SIGNS: tuple[tuple[frozenset[str], Kind], ...] = (
    (frozenset({"longurl"}), Kind.SHLINK),
    (frozenset({"address", "target"}), Kind.KUTT),
    (frozenset({"keyword", "url"}), Kind.YOURLS),
    (frozenset({"shorturl", "url"}), Kind.YOURLS),
    (frozenset({"source", "target"}), Kind.YOURLS),
    (frozenset({"destination"}), Kind.AUTO),
    (frozenset({"url"}), Kind.AUTO),
)
"""Fields that give a system away; AUTO stands for our own."""

_OURS = frozenset({"id", "destination", "url", "name", "names", "tag", "tags", "title", "notes", "status", "visibility", "redirect_status",
                   "forward_query", "expires_at"})  # fmt: skip
_LEFT_BEHIND = frozenset({"code", "short_url", "created_at", "updated_at", "owners", "clicks", "bot_clicks", "total_clicks",
                          "last_clicked_at", "flagged", "flag_reason", "version"})  # fmt: skip
"""Columns of our own files that are not imported: they follow from others, or belong to the installation they come from."""


def open_rows(stream: BinaryIO, now: datetime, kind: Kind = Kind.AUTO, encoding: str | None = None) -> "LinkRows":
    """Return the rows of a file, read as they are iterated. Iterating raises `UnreadableFile` if its format is unknown."""
    return LinkRows(TextSource(stream, encoding), now, kind)


class LinkRows(RowReader[Candidate]):
    """The rows of a file of links. `kind` becomes the format it turned out to have, `unread` its columns that mean nothing here."""

    noun = "link"
    holders = frozenset({"links", "data", "items", "shortUrls", "short_urls"})
    value_holders = frozenset({"links"})
    is_width_strict = True

    def __init__(self, source: TextSource, now: datetime, kind: Kind) -> None:
        super().__init__(source)
        self.kind = kind
        self.unread: Sequence[str] = ()
        self._now = now
        self._shape = _shape(source.head, kind)

    def __iter__(self) -> Iterator[LinkRow]:
        if self._shape is Kind.CSV:
            return self.rows_of_table()
        return self.rows_of_lines() if self._shape is Kind.JSONL else self.rows_of_document()

    def name_columns(self, cells: Sequence[str]) -> Sequence[str] | None:
        """Recognise a dump of the YOURLS table without a heading, if the file is said to be one."""
        has_heading = {cell.strip().lower() for cell in cells} & set(YOURLS_TABLE)
        return YOURLS_TABLE if self.kind is Kind.YOURLS and len(cells) == len(YOURLS_TABLE) and not has_heading else None

    def choose_format(self, fields: Sequence[str], what: str, *, in_table: bool) -> Callable[[Fields], LinkFields]:
        """Return the format that was asked for, or the one that the fields give away."""
        names = frozenset(fields)
        if self.kind in (Kind.AUTO, Kind.CSV, Kind.JSON, Kind.JSONL):
            found = next((system for signs, system in _SIGNS if signs <= names), None)
            if found is None or (found is not Kind.AUTO and self.kind is not Kind.AUTO):
                listed = ", ".join(sorted(fields))[:200]
                raise UnreadableFile(problem=f"{what} are not those of a file of links: {listed}. One of them must be: destination.")
            self.kind = self._shape if found is Kind.AUTO else found
        elif not any(signs <= names for signs, system in _SIGNS if system is self.kind):
            raise UnreadableFile(problem=f"{what} are not those of {self.kind}: {', '.join(sorted(fields))[:200]}.")
        read = _FOREIGN.get(self.kind, systems.read_our_cells if in_table else systems.read_ours)
        if read is systems.read_our_cells:
            self.unread = [name for name in fields if name and name not in _OURS | _LEFT_BEHIND]
        return lambda record: read(record, self._now)

    def make_row(self, where: str, fields: Fields) -> Candidate:
        found: LinkFields = self.read_fields(fields)
        return Candidate(where, found.given, found.number, found.code, found.disabled, tuple(found.remarks))


def _shape(head: str, kind: Kind) -> Kind:
    """Return CSV, JSON (a document) or JSONL."""
    if kind in (Kind.CSV, Kind.JSON, Kind.JSONL):
        return kind
    text = head.lstrip()
    if not text.startswith(("{", "[")):
        return Kind.CSV
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return Kind.JSON
    return Kind.JSONL if isinstance(first, dict) and not LinkRows.holders & set(first) else Kind.JSON
