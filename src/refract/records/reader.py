"""Rows of an import file: a CSV table, JSON line by line, or a JSON document."""

import csv
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

from refract.records.errors import BadRecord, BrokenFile, UnreadableFile
from refract.records.json_stream import MAX_RECORD, JsonRecords
from refract.records.source import MAX_LINE, TextLine, TextSource
from refract.records.values import check_text

_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class CsvRecord:
    """The cells of a record and its first line, or why it could not be read."""

    line: int
    cells: Sequence[str] = ()
    problem: str | None = None
    text: str = ""


class _LineTooLong(Exception):
    pass


class CsvTable:
    """The records of a CSV file, the first of which may be its header.

    A broken record affects no other: reading continues with the line after its first.
    """

    def __init__(self, source: TextSource) -> None:
        self._lines = source.iter_lines()
        self._ahead: deque[TextLine] = deque()
        self._taken: list[TextLine] = []
        heading = source.head.split("\n", 1)[0]
        self.delimiter = max(_DELIMITERS, key=heading.count)

    def iter_records(self) -> Iterator[CsvRecord]:
        """Yield the records that are not empty."""
        while True:
            self._taken = []
            try:
                cells = next(csv.reader(self._iter_lines(), delimiter=self.delimiter, strict=True))
            except StopIteration:
                return
            except _LineTooLong:
                yield self._make_broken_record("The line is too long.")
            except csv.Error as exc:
                yield self._make_broken_record(f"The line is not valid CSV: {exc}.")
            else:
                if cells:
                    yield CsvRecord(self._taken[0].number, cells)

    def _make_broken_record(self, problem: str) -> CsvRecord:
        """Return a broken record.

        An unclosed quote runs on into good lines: they are read again.
        """
        first, *rest = self._taken
        self._ahead.extendleft(reversed(rest))
        return CsvRecord(first.number, problem=problem, text=first.text[:200].strip())

    def _iter_lines(self) -> Iterator[str]:
        size = 0
        while True:
            line = self._ahead.popleft() if self._ahead else next(self._lines, None)
            if line is None:
                return
            self._taken.append(line)
            size += len(line.text)
            if line.too_long or size > MAX_LINE:
                raise _LineTooLong
            yield line.text


MAX_SHOWN = 200
"""Characters of a record that are quoted in a report."""

Row = TypeVar("Row")
Item = TypeVar("Item")
Fields = Mapping[str, Any]
"""A record by the names of its fields, in lower case."""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A record that cannot be read, and why."""

    where: str
    why: str
    text: str = ""
    names: Sequence[str] = ()


class RowReader(ABC, Generic[Row]):
    """The rows of a file, read as they are iterated.

    A subclass knows the formats of its feature: it chooses one by the fields of the first record,
    and makes a row of each record.
    """

    noun: ClassVar[str]
    """The name of a row in messages: "link"."""
    holders: ClassVar[frozenset[str]]
    """Keys that hold the records of a JSON document (`JsonRecords`)."""
    value_holders: ClassVar[frozenset[str]] = frozenset()
    max_record: ClassVar[int] = MAX_RECORD
    is_width_strict: ClassVar[bool] = False
    """Whether a CSV record with more cells than the header is refused."""

    def __init__(self, source: TextSource) -> None:
        self.source = source
        self._read: Callable[[Fields], Any] | None = None

    @property
    def nothing_found_message(self) -> str:
        return f"No {self.noun}s found in this file"

    @property
    def position(self) -> int:
        """Return the number of bytes read so far."""
        return self.source.position

    @abstractmethod
    def __iter__(self) -> Iterator[Row | UnreadableRow]:
        """Yield the rows. Raises `UnreadableFile` if the file has no known format."""

    @abstractmethod
    def choose_format(
        self, fields: Sequence[str], what: str, *, in_table: bool
    ) -> Callable[[Fields], Any]:
        """Return the function that reads records with these fields; `what` names them in an error.

        Raises `UnreadableFile` if no format has them.
        """

    @abstractmethod
    def make_row(self, where: str, fields: Fields) -> Row:
        """Return the row of a record. Raises `BadRecord`."""

    def name_columns(
        self,
        cells: Sequence[str],  # noqa: ARG002 - for subclasses
    ) -> Sequence[str] | None:
        """Return the columns of a table without a header, or None if these cells are its header."""
        return None

    def read_fields(self, fields: Fields) -> Any:
        """Read a record in the format of the file, which the first record decides."""
        if self._read is None:
            self._read = self.choose_format(
                list(fields), "The fields of the first record", in_table=False
            )
        return self._read(fields)

    def iter_table_rows(self) -> Iterator[Row | UnreadableRow]:
        """Yield the rows of a CSV file."""
        records = CsvTable(self.source).iter_records()
        first = next(records, None)
        if first is None:
            raise UnreadableFile(problem="The file is empty.")
        if first.problem is not None:
            raise UnreadableFile(
                problem=f"The file does not start like a CSV file. {first.problem}"
            )
        heading = self.name_columns(first.cells)
        if heading is not None:
            records = chain([first], records)
        else:
            heading = [cell.strip().lower() for cell in first.cells]
        self._read = self.choose_format(heading, "The columns of the file", in_table=True)
        for record in records:
            yield self._build_row_from_cells(record, heading)

    def _build_row_from_cells(
        self, record: CsvRecord, heading: Sequence[str]
    ) -> Row | UnreadableRow:
        where = f"line {record.line}"
        if record.problem is not None:
            return UnreadableRow(where, record.problem, record.text)
        if self.is_width_strict and len(record.cells) > len(heading):
            why = f"This row has {len(record.cells)} cells, but the header has {len(heading)}."
            return UnreadableRow(where, why, _make_excerpt(record.cells))
        return self.build_row(where, dict(zip(heading, record.cells, strict=False)), record.cells)

    def iter_line_rows(self) -> Iterator[Row | UnreadableRow]:
        """Yield the rows of a file with one JSON object on each line."""
        for line in self.source.iter_lines():
            where = f"line {line.number}"
            if line.too_long:
                yield UnreadableRow(where, "The line is too long.", line.text[:MAX_SHOWN])
            elif line.text.strip():
                try:
                    record = json.loads(line.text)
                except (ValueError, RecursionError) as exc:
                    yield UnreadableRow(
                        where, f"The line is not valid JSON: {exc}.", line.text[:MAX_SHOWN].strip()
                    )
                else:
                    yield self._build_row_from_object(where, record)

    def iter_document_rows(self) -> Iterator[Row | UnreadableRow]:
        """Yield the rows of a JSON document."""
        records = JsonRecords(self.source.text, self.holders, self.value_holders, self.max_record)
        return self.iter_rows_until_broken(records, "item", self._build_row_from_object)

    def iter_rows_until_broken(
        self,
        records: Iterable[Item],
        place: str,
        make: Callable[[str, Item], Row | UnreadableRow],
    ) -> Iterator[Row | UnreadableRow]:
        """Yield a row for each record up to where the file breaks, then one that says so.

        Raises `UnreadableFile` if it breaks before the first.
        """
        number = 0
        try:
            for number, record in enumerate(records, start=1):
                yield make(f"{place} {number}", record)
        except BrokenFile as exc:
            if not number:
                raise UnreadableFile(problem=f"{self.nothing_found_message}: {exc}.") from exc
            why = f"The rest of the file is unreadable: {exc}."
            yield UnreadableRow(f"{place} {number + 1}", why)

    def _build_row_from_object(self, where: str, record: Any) -> Row | UnreadableRow:
        if not isinstance(record, Mapping):
            return UnreadableRow(
                where, f"Not an object with the fields of a {self.noun}.", _make_excerpt([record])
            )
        fields = {str(name).strip().lower(): value for name, value in record.items()}
        return self.build_row(where, fields, record.values())

    def build_row(self, where: str, fields: Fields, shown: Iterable[Any]) -> Row | UnreadableRow:
        """Return the row of a record, or one that says why there is none and quotes `shown`."""
        try:
            check_text(fields)
            return self.make_row(where, fields)
        except (BadRecord, RecursionError) as exc:
            return UnreadableRow(where, str(exc), _make_excerpt(shown))


def _make_excerpt(values: Iterable[Any]) -> str:
    try:
        return " · ".join(str(value)[:MAX_SHOWN] for value in values if value)[:MAX_SHOWN]
    except RecursionError:
        return ""
