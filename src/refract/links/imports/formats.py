"""File formats of links: our own, and those of YOURLS, Shlink and Kutt."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO

from refract.links.imports import systems
from refract.links.imports.rows import Candidate, LinkFields, LinkRow
from refract.links.imports.systems import YOURLS_TABLE, LinkFormat
from refract.records.errors import UnreadableFile
from refract.records.reader import Fields, RowReader
from refract.records.source import TextSource


class LinkFileFormat(StrEnum):
    AUTO = "auto"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    YOURLS = "yourls"
    SHLINK = "shlink"
    KUTT = "kutt"


_FOREIGN_READERS: dict[LinkFileFormat, LinkFormat] = {
    LinkFileFormat.YOURLS: systems.read_yourls,
    LinkFileFormat.SHLINK: systems.read_shlink,
    LinkFileFormat.KUTT: systems.read_kutt,
}
_FORMAT_SIGNATURES: tuple[tuple[frozenset[str], LinkFileFormat], ...] = (
    (frozenset({"longurl"}), LinkFileFormat.SHLINK),
    (frozenset({"address", "target"}), LinkFileFormat.KUTT),
    (frozenset({"keyword", "url"}), LinkFileFormat.YOURLS),
    (frozenset({"shorturl", "url"}), LinkFileFormat.YOURLS),
    (frozenset({"source", "target"}), LinkFileFormat.YOURLS),
    (frozenset({"destination"}), LinkFileFormat.AUTO),
    (frozenset({"url"}), LinkFileFormat.AUTO),
)
"""Fields that identify a system; AUTO stands for our own."""

_OWN_COLUMNS = frozenset(
    {
        "id",
        "destination",
        "url",
        "domain",
        "name",
        "names",
        "other_names",
        "kept_codes",
        "created_at",
        "tag",
        "tags",
        "title",
        "notes",
        "status",
        "visibility",
        "team",
        "redirect_status",
        "forward_query",
        "expires_at",
        "expired_destination",
        "starts_at",
        "before_destination",
        "rules",
        "preview_card",
    }
)
_IGNORED_COLUMNS = frozenset(
    {
        "code",
        "short_url",
        "updated_at",
        "owners",
        "clicks",
        "bot_clicks",
        "total_clicks",
        "last_clicked_at",
        "flagged",
        "flag_reason",
        "version",
    }
)
"""Columns of our own files that are not imported: derived, or stored elsewhere."""


def open_link_file(
    stream: BinaryIO,
    now: datetime,
    kind: LinkFileFormat = LinkFileFormat.AUTO,
    encoding: str | None = None,
) -> "LinkRows":
    """Return the rows of a file, read while they are iterated.

    Iterating raises `UnreadableFile` if its format is unknown.
    """
    return LinkRows(TextSource(stream, encoding), now, kind)


class LinkRows(RowReader[Candidate]):
    """The rows of a file of links.

    `kind` becomes the detected format, `unread` the columns that are not imported.
    """

    noun = "link"
    holders = frozenset({"links", "data", "items", "shortUrls", "short_urls"})
    value_holders = frozenset({"links"})
    is_width_strict = True

    def __init__(self, source: TextSource, now: datetime, kind: LinkFileFormat) -> None:
        super().__init__(source)
        self.kind = kind
        self.unread: Sequence[str] = ()
        self._now = now
        self._shape = _detect_format(source.head, kind)

    def __iter__(self) -> Iterator[LinkRow]:
        if self._shape is LinkFileFormat.CSV:
            return self.iter_table_rows()
        return (
            self.iter_line_rows()
            if self._shape is LinkFileFormat.JSONL
            else self.iter_document_rows()
        )

    def name_columns(self, cells: Sequence[str]) -> Sequence[str] | None:
        """Recognise a dump of the YOURLS table without a heading, if that format was requested."""
        has_heading = {cell.strip().lower() for cell in cells} & set(YOURLS_TABLE)
        return (
            YOURLS_TABLE
            if self.kind is LinkFileFormat.YOURLS
            and len(cells) == len(YOURLS_TABLE)
            and not has_heading
            else None
        )

    def choose_format(
        self, fields: Sequence[str], what: str, *, in_table: bool
    ) -> Callable[[Fields], LinkFields]:
        """Return the requested format, or the one that the fields identify."""
        names = frozenset(fields)
        if self.kind in (
            LinkFileFormat.AUTO,
            LinkFileFormat.CSV,
            LinkFileFormat.JSON,
            LinkFileFormat.JSONL,
        ):
            found = next((system for signs, system in _FORMAT_SIGNATURES if signs <= names), None)
            if found is None or (
                found is not LinkFileFormat.AUTO and self.kind is not LinkFileFormat.AUTO
            ):
                listed = ", ".join(sorted(fields))[:200]
                raise UnreadableFile(
                    problem=(
                        f"{what} are not those of a file of links: {listed}. One of them must be:"
                        " destination."
                    )
                )
            self.kind = self._shape if found is LinkFileFormat.AUTO else found
        elif not any(signs <= names for signs, system in _FORMAT_SIGNATURES if system is self.kind):
            raise UnreadableFile(
                problem=f"{what} are not those of {self.kind}: {', '.join(sorted(fields))[:200]}."
            )
        read = _FOREIGN_READERS.get(
            self.kind, systems.read_refract_cells if in_table else systems.read_refract
        )
        if read is systems.read_refract_cells:
            self.unread = [
                name for name in fields if name and name not in _OWN_COLUMNS | _IGNORED_COLUMNS
            ]
        return lambda record: read(record, self._now)

    def make_row(self, where: str, fields: Fields) -> Candidate:
        found: LinkFields = self.read_fields(fields)
        return Candidate(
            *(where, found.given, found.number, found.code, found.disabled),
            tuple(found.remarks),
            tuple(found.codes),
            tuple(found.other_names),
            None if found.created_at is None else min(found.created_at, self._now),
            found.keeps_codes,
        )


def _detect_format(head: str, kind: LinkFileFormat) -> LinkFileFormat:
    """Return CSV, JSON (a document) or JSONL."""
    if kind in (LinkFileFormat.CSV, LinkFileFormat.JSON, LinkFileFormat.JSONL):
        return kind
    text = head.lstrip()
    if not text.startswith(("{", "[")):
        return LinkFileFormat.CSV
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return LinkFileFormat.JSON
    return (
        LinkFileFormat.JSONL
        if isinstance(first, dict) and not LinkRows.holders & set(first)
        else LinkFileFormat.JSON
    )
