"""What kind of file it is, and the rows in it."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, BinaryIO

from refract.library.importing import systems
from refract.library.importing.netscape import Bookmarks, Broken, Entry
from refract.library.importing.rows import BadRow, Reading, Row, Unreadable, tag_row
from refract.library.importing.systems import Reader
from refract.links.importing.documents import BrokenDocument, Document
from refract.links.importing.rows import UnreadableFile, refuse_bad_text
from refract.links.importing.source import Source
from refract.links.importing.tables import Record, Table

HOLDERS = frozenset({"items", "tags", "bookmarks", "results", "data"})
LONGEST_RECORD = 16 * 1024 * 1024
"""Characters of one JSON record: ours carry the saved page."""


class Kind(StrEnum):
    AUTO = "auto"
    REFRACT = "refract"
    NETSCAPE = "netscape"
    POCKET = "pocket"
    RAINDROP = "raindrop"
    LINKDING = "linkding"
    KARAKEEP = "karakeep"


_TABLES: dict[Kind, tuple[frozenset[str], Reader]] = {
    Kind.RAINDROP: (frozenset({"url", "excerpt", "folder"}), systems.read_raindrop),
    Kind.POCKET: (frozenset({"url", "time_added"}), systems.read_pocket),
}
_DOCUMENTS: dict[Kind, tuple[frozenset[str], Reader]] = {
    Kind.LINKDING: (frozenset({"url", "tag_names"}), systems.read_linkding),
    Kind.KARAKEEP: (frozenset({"content", "createdat"}), systems.read_karakeep),
    Kind.REFRACT: (frozenset({"text"}), systems.read_ours),
}
"""Fields that give a system away, the tellingest first."""


def open_rows(stream: BinaryIO, kind: Kind = Kind.AUTO, encoding: str | None = None) -> "Rows":
    """The rows of a file, read as they are asked for. `UnreadableFile` says when it is no such file at all."""
    return Rows(Source(stream, encoding), kind)


class Rows:
    """The rows of a file. `kind` becomes what the file turned out to be."""

    def __init__(self, source: Source, kind: Kind) -> None:
        self.kind = kind
        self._source = source
        self._start = source.head.lstrip("\ufeff \t\r\n")[:1]

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._source.position

    def __iter__(self) -> Iterator[Row]:
        if not self._start:
            raise UnreadableFile(problem="The file is empty.")
        if self.kind is Kind.NETSCAPE or (self.kind is Kind.AUTO and self._start == "<"):
            return self._from_bookmarks()
        if self.kind in _DOCUMENTS or (self.kind is Kind.AUTO and self._start in "{["):
            return self._from_document()
        return self._from_table()

    def _from_bookmarks(self) -> Iterator[Row]:
        self.kind = Kind.NETSCAPE
        number = 0
        try:
            for entry in Bookmarks(self._source.text).entries():
                number = entry.number
                yield self._entry(entry)
        except Broken as wrong:
            if not number:
                raise UnreadableFile(problem=f"There is no bookmark in this file: {wrong}.") from wrong
            yield Unreadable(f"bookmark {number + 1}", f"From here on the file cannot be read: {wrong}.")
        if not number:
            raise UnreadableFile(problem="There is no bookmark in this file.")

    def _entry(self, entry: Entry) -> Row:
        where = f"bookmark {entry.number}"
        try:
            refuse_bad_text([*entry.attributes.values(), entry.title, entry.description, *entry.folders])
            return systems.read_netscape(entry).bookmark(where)
        except BadRow as wrong:
            return Unreadable(where, str(wrong), _shown([entry.title, entry.attributes.get("href")]))

    def _from_table(self) -> Iterator[Row]:
        records = Table(self._source).records()
        first = next(records, None)
        if first is None or first.why is not None:
            raise UnreadableFile(problem=f"The file does not begin like a CSV file. {first.why if first else ''}".strip())
        heading = [cell.strip().lower() for cell in first.cells]
        read = self._reader(_TABLES, frozenset(heading), "The columns of the file")
        for record in records:
            yield self._cells(record, heading, read)

    def _cells(self, record: Record, heading: list[str], read: Reader) -> Row:
        where = f"line {record.line}"
        if record.why is not None:
            return Unreadable(where, record.why, record.text)
        return self._row(where, dict(zip(heading, record.cells, strict=False)), read)

    def _from_document(self) -> Iterator[Row]:
        read: Reader | None = None
        number = 0
        try:
            for number, record in enumerate(Document(self._source.text, HOLDERS, LONGEST_RECORD).records(), start=1):
                if not isinstance(record, Mapping):
                    yield Unreadable(f"item {number}", "It is not an object with the fields of a bookmark.", str(record)[:200])
                    continue
                small = {str(name).strip().lower(): value for name, value in record.items()}
                if self.kind in (Kind.AUTO, Kind.REFRACT) and {"name", "color"} <= small.keys() and "text" not in small:
                    yield self._tag(f"item {number}", small)
                    continue
                if read is None:
                    read = self._reader(_DOCUMENTS, frozenset(small), "The fields of the first record")
                yield self._row(f"item {number}", small, read)
        except BrokenDocument as wrong:
            if not number:
                raise UnreadableFile(problem=f"The file is not JSON that has bookmarks: {wrong}.") from wrong
            yield Unreadable(f"item {number + 1}", f"From here on the file cannot be read as JSON: {wrong}.")

    def _row(self, where: str, record: Mapping[str, Any], read: Reader) -> Row:
        try:
            refuse_bad_text(record)
            reading: Reading = read(record)
            return reading.bookmark(where)
        except (BadRow, RecursionError) as wrong:
            return Unreadable(where, str(wrong), _shown(record.values()))

    def _tag(self, where: str, record: Mapping[str, Any]) -> Row:
        try:
            refuse_bad_text(record)
            return tag_row(where, record)
        except BadRow as wrong:
            return Unreadable(where, str(wrong), _shown(record.values()))

    def _reader(self, known: Mapping[Kind, tuple[frozenset[str], Reader]], fields: frozenset[str], what: str) -> Reader:
        """How to read records with these fields: as was asked, or as they look."""
        for kind, (signs, read) in known.items():
            if signs <= fields and self.kind in (Kind.AUTO, kind):
                self.kind = kind
                return read
        system = "any system that is known here" if self.kind is Kind.AUTO else str(self.kind)
        raise UnreadableFile(problem=f"{what} are not those of {system}: {', '.join(sorted(fields))[:200]}.")


def _shown(values: Any) -> str:
    return " · ".join(str(value)[:200] for value in values if value)[:200]
