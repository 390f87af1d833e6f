"""Records of a CSV file.

A broken record affects no other: reading continues with the line after its first.
"""

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refract.records.source import MAX_LINE, TextLine, TextSource

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
    """The records of a CSV file, the first of which may be its header."""

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
