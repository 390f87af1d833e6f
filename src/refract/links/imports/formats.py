"""File formats of links: our own, those of other systems, and any table by its columns."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO

from refract.links.imports import columns, systems
from refract.links.imports.rows import Candidate, LinkFields, LinkRow
from refract.links.imports.systems import YOURLS_TABLE, LinkFormat
from refract.records.errors import UnreadableFile
from refract.records.reader import Fields, RowReader
from refract.records.source import TextSource
from refract.records.sql_dump import SqlDump, SqlRow, looks_like_sql


class LinkFileFormat(StrEnum):
    AUTO = "auto"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    YOURLS = "yourls"
    SHLINK = "shlink"
    KUTT = "kutt"
    GOLINK = "golink"
    DUB = "dub"
    BITLY = "bitly"
    COLUMNS = "columns"


_FOREIGN_READERS: dict[LinkFileFormat, LinkFormat] = {
    LinkFileFormat.YOURLS: systems.read_yourls,
    LinkFileFormat.SHLINK: systems.read_shlink,
    LinkFileFormat.KUTT: systems.read_kutt,
    LinkFileFormat.GOLINK: systems.read_golink,
    LinkFileFormat.DUB: systems.read_dub,
    LinkFileFormat.BITLY: systems.read_bitly,
    LinkFileFormat.COLUMNS: columns.read_columns,
}
_FORMAT_SIGNATURES: tuple[tuple[frozenset[str], LinkFileFormat], ...] = (
    (frozenset({"longurl"}), LinkFileFormat.SHLINK),
    (frozenset({"address", "target"}), LinkFileFormat.KUTT),
    (frozenset({"short", "long"}), LinkFileFormat.GOLINK),
    (frozenset({"short link", "destination url"}), LinkFileFormat.DUB),
    (frozenset({"shortlink", "key", "url"}), LinkFileFormat.DUB),
    (frozenset({"link", "long_url"}), LinkFileFormat.BITLY),
    (frozenset({"link", "destination url"}), LinkFileFormat.BITLY),
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
        "noindex",
        "expires_at",
        "expired_destination",
        "starts_at",
        "before_destination",
        "rules",
        "preview_card",
        "click_limit",
        "clicks_left",
        "limit_destination",
        "qr_style",
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
    mapping: Mapping[str, str] | None = None,
) -> "LinkRows":
    """Return the rows of a file, read while they are iterated.

    `mapping` names the headings of a table that mean our fields (`columns.FIELDS`). Iterating
    raises `UnreadableFile` if its format is unknown.
    """
    return LinkRows(TextSource(stream, encoding), now, kind, mapping or {})


class LinkRows(RowReader[Candidate]):
    """The rows of a file of links.

    `kind` becomes the detected format, `unread` the columns that are not imported.
    """

    noun = "link"
    holders = frozenset({"links", "data", "items", "shortUrls", "short_urls"})
    value_holders = frozenset({"links"})
    is_width_strict = True

    def __init__(
        self,
        source: TextSource,
        now: datetime,
        kind: LinkFileFormat,
        mapping: Mapping[str, str],
    ) -> None:
        super().__init__(source)
        self.kind = kind
        self.mapping: Mapping[str, str] = mapping
        """The heading of each of our fields, in a table of no system that we know."""
        self.unread: Sequence[str] = ()
        self._now = now
        self._shape = _detect_format(source.head, kind)

    def __iter__(self) -> Iterator[LinkRow]:
        if self._shape is LinkFileFormat.CSV:
            return self.iter_table_rows()
        if self._shape is LinkFileFormat.YOURLS:
            return self._iter_dump_rows()
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

    def _iter_dump_rows(self) -> Iterator[LinkRow]:
        """Yield the rows of the table of YOURLS in an SQL dump."""
        if self.kind not in (LinkFileFormat.AUTO, LinkFileFormat.YOURLS):
            raise UnreadableFile(problem="Of SQL dumps, only those of YOURLS are read.")
        self.kind = LinkFileFormat.YOURLS
        self._read = lambda record: systems.read_yourls(record, self._now)
        dump = SqlDump(self.source.text, lambda table: table.lower().endswith("url"))

        def make(where: str, row: SqlRow) -> LinkRow:
            names, values = row
            return self.build_row(
                where, dict(zip(names or YOURLS_TABLE, values, strict=False)), filter(None, values)
            )

        return self.iter_rows_until_broken(dump, "row", make)

    def _map_columns(self, fields: Sequence[str]) -> bool:
        """Find out which headings of a table mean our fields; return whether there is a URL."""
        guessed = columns.guess_mapping(fields)
        given = {field: heading.strip().lower() for field, heading in self.mapping.items()}
        for heading in given.values():
            if heading not in fields:
                raise UnreadableFile(problem=f'The file has no column "{heading[:80]}".')
        self.mapping = guessed | given
        return "destination" in self.mapping

    def choose_format(
        self, fields: Sequence[str], what: str, *, in_table: bool
    ) -> Callable[[Fields], LinkFields]:
        """Return the requested format, or the one that the fields identify."""
        names = frozenset(fields)
        by_columns = in_table and (self.mapping or self.kind is LinkFileFormat.COLUMNS)
        if by_columns and self._map_columns(fields):
            return self._read_by_columns(fields)
        if self.kind in (
            LinkFileFormat.AUTO,
            LinkFileFormat.CSV,
            LinkFileFormat.JSON,
            LinkFileFormat.JSONL,
        ):
            found = next((system for signs, system in _FORMAT_SIGNATURES if signs <= names), None)
            if found is None and in_table and self._map_columns(fields):
                return self._read_by_columns(fields)
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

    def _read_by_columns(self, fields: Sequence[str]) -> Callable[[Fields], LinkFields]:
        self.kind = LinkFileFormat.COLUMNS
        used = set(self.mapping.values())
        self.unread = [name for name in fields if name and name not in used]
        return lambda record: columns.read_columns(
            {field: record.get(heading) for field, heading in self.mapping.items()}, self._now
        )

    def make_row(self, where: str, fields: Fields) -> Candidate:
        found: LinkFields = self.read_fields(fields)
        return Candidate(
            *(where, found.given, found.number, found.code, found.disabled),
            tuple(found.remarks),
            tuple(found.codes),
            tuple(found.other_names),
            None if found.created_at is None else min(found.created_at, self._now),
            found.clicks_left,
            found.keeps_codes,
            found.host,
        )


def _detect_format(head: str, kind: LinkFileFormat) -> LinkFileFormat:
    """Return CSV, JSON (a document) or JSONL."""
    if kind in (LinkFileFormat.CSV, LinkFileFormat.JSON, LinkFileFormat.JSONL):
        return kind
    if looks_like_sql(head):
        return LinkFileFormat.YOURLS
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
