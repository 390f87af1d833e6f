"""What kind of file it is, and the rows in it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, BinaryIO

from refract.links.importing import systems
from refract.links.importing.documents import HOLDERS, BrokenDocument, Document
from refract.links.importing.rows import BadRow, Candidate, Row, Unreadable, UnreadableFile, refuse_bad_text
from refract.links.importing.source import Source
from refract.links.importing.systems import YOURLS_TABLE, Reader
from refract.links.importing.tables import Record, Table


class Kind(StrEnum):
    AUTO = "auto"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    YOURLS = "yourls"
    SHLINK = "shlink"
    KUTT = "kutt"


_FOREIGN: dict[Kind, Reader] = {Kind.YOURLS: systems.read_yourls, Kind.SHLINK: systems.read_shlink, Kind.KUTT: systems.read_kutt}
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
"""What our own files tell and nothing is made of: it follows from something else, or belongs to the place it comes from."""


def open_rows(stream: BinaryIO, now: datetime, kind: Kind = Kind.AUTO, encoding: str | None = None) -> "Rows":
    """The rows of a file, read as they are asked for. `UnreadableFile` says when it is no such file at all."""
    return Rows(Source(stream, encoding), now, kind)


class Rows:
    """The rows of a file. `kind` becomes what the file turned out to be, `unread` which of its columns mean nothing here."""

    def __init__(self, source: Source, now: datetime, kind: Kind) -> None:
        self.kind = kind
        self.unread: Sequence[str] = ()
        self._source = source
        self._now = now
        self._shape = _shape(source.head, kind)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._source.position

    def __iter__(self) -> Iterator[Row]:
        if self._shape is Kind.CSV:
            return self._from_table()
        return self._from_lines() if self._shape is Kind.JSONL else self._from_document()

    def _from_table(self) -> Iterator[Row]:
        records = Table(self._source).records()
        first = next(records, None)
        if first is None:
            raise UnreadableFile(problem="The file is empty.")
        if first.why is not None:
            raise UnreadableFile(problem=f"The file does not begin like a CSV file. {first.why}")
        heading = [cell.strip().lower() for cell in first.cells]
        if self.kind is Kind.YOURLS and len(heading) == len(YOURLS_TABLE) and not set(heading) & set(YOURLS_TABLE):
            heading = list(YOURLS_TABLE)  # a dump of the table without a heading
            yield self._cells(first, heading, systems.read_yourls)
        read = self._reader(frozenset(heading), "The columns of the file")
        if read is systems.read_ours:
            read = systems.read_our_cells
            self.unread = [name for name in heading if name and name not in _OURS | _LEFT_BEHIND]
        for record in records:
            yield self._cells(record, heading, read)

    def _cells(self, record: Record, heading: Sequence[str], read: Reader) -> Row:
        where = f"line {record.line}"
        if record.why is not None:
            return Unreadable(where, record.why, record.text)
        if len(record.cells) > len(heading):
            why = f"It has {len(record.cells)} cells, and the heading has {len(heading)}."
            return Unreadable(where, why, self._shown(record.cells))
        return self._row(where, dict(zip(heading, record.cells, strict=False)), read)

    def _from_lines(self) -> Iterator[Row]:
        read: Reader | None = None
        for line in self._source.lines():
            where = f"line {line.number}"
            if line.too_long:
                yield Unreadable(where, "The line is too long.", line.text[:200])
            elif line.text.strip():
                try:
                    record = json.loads(line.text)
                except (ValueError, RecursionError) as wrong:
                    yield Unreadable(where, f"The line is not JSON: {wrong}.", line.text[:200].strip())
                    continue
                if read is None and isinstance(record, dict):
                    read = self._reader(_keys(record), "The fields of the first record")
                yield self._row(where, record, read)

    def _from_document(self) -> Iterator[Row]:
        read: Reader | None = None
        number = 0
        try:
            for number, record in enumerate(Document(self._source.text).records(), start=1):
                if read is None and isinstance(record, dict):
                    read = self._reader(_keys(record), "The fields of the first record")
                yield self._row(f"item {number}", record, read)
        except BrokenDocument as wrong:
            if not number:
                raise UnreadableFile(problem=f"The file is not JSON that has links: {wrong}.") from wrong
            yield Unreadable(f"item {number + 1}", f"From here on the file cannot be read as JSON: {wrong}.")

    def _row(self, where: str, record: Any, read: Reader | None) -> Row:
        if not isinstance(record, Mapping) or read is None:
            return Unreadable(where, "It is not an object with the fields of a link.", str(record)[:200])
        try:
            refuse_bad_text(record)
            reading = read({str(name).strip().lower(): value for name, value in record.items()}, self._now)
        except BadRow as wrong:
            return Unreadable(where, str(wrong), self._shown(record.values()))
        return Candidate(where, reading.given, reading.number, reading.code, reading.disabled, tuple(reading.remarks))

    def _reader(self, fields: frozenset[str], what: str) -> Reader:
        """How to read records with these fields: as was asked, or as they look."""
        if self.kind in (Kind.AUTO, Kind.CSV, Kind.JSON, Kind.JSONL):
            found = next((system for signs, system in _SIGNS if signs <= fields), None)
            if found is None or (found is not Kind.AUTO and self.kind is not Kind.AUTO):
                listed = ", ".join(sorted(fields))[:200]
                raise UnreadableFile(problem=f"{what} are not those of a file of links: {listed}. One of them must be: destination.")
            self.kind = self._shape if found is Kind.AUTO else found
        elif not any(signs <= fields for signs, system in _SIGNS if system is self.kind):
            raise UnreadableFile(problem=f"{what} are not those of {self.kind}: {', '.join(sorted(fields))[:200]}.")
        return _FOREIGN.get(self.kind, systems.read_ours)

    @staticmethod
    def _shown(values: Any) -> str:
        return " · ".join(str(value) for value in values if value)[:200]


def _keys(record: Mapping[Any, Any]) -> frozenset[str]:
    return frozenset(str(name).strip().lower() for name in record)


def _shape(head: str, kind: Kind) -> Kind:
    """CSV, a JSON document, or JSON line by line."""
    if kind in (Kind.CSV, Kind.JSON, Kind.JSONL):
        return kind
    text = head.lstrip()
    if not text.startswith(("{", "[")):
        return Kind.CSV
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return Kind.JSON
    return Kind.JSONL if isinstance(first, dict) and not HOLDERS & set(first) else Kind.JSON
