"""Records of a CSV file. A broken one costs itself alone: reading goes on with the line after its first."""

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refract.links.importing.source import LONGEST_LINE, Line, Source

_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Record:
    """The cells of a record and the line it begins on, or why there are none."""

    line: int
    cells: Sequence[str] = ()
    why: str | None = None
    text: str = ""


class _TooLong(Exception):
    pass


class Table:
    """The records of a CSV file, the first of which may be its heading."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._ahead: deque[Line] = deque()
        self._taken: list[Line] = []
        heading = source.head.split("\n", 1)[0]
        self.delimiter = max(_DELIMITERS, key=heading.count)

    def records(self) -> Iterator[Record]:
        while True:
            self._taken = []
            try:
                cells = next(csv.reader(self._feed(), delimiter=self.delimiter, strict=True))
            except StopIteration:
                return
            except _TooLong:
                yield self._broken("The line is too long.")
            except csv.Error as wrong:
                yield self._broken(f"The line cannot be read as CSV: {wrong}.")
            else:
                if cells:
                    yield Record(self._taken[0].number, cells)

    def _broken(self, why: str) -> Record:
        """A quote that is never closed runs on into lines that are well: they are read again."""
        first, *rest = self._taken
        self._ahead.extendleft(reversed(rest))
        return Record(first.number, why=why, text=first.text[:200].strip())

    def _feed(self) -> Iterator[str]:
        size = 0
        while True:
            line = self._ahead.popleft() if self._ahead else next(self._lines, None)
            if line is None:
                return
            self._taken.append(line)
            size += len(line.text)
            if line.too_long or size > LONGEST_LINE:
                raise _TooLong
            yield line.text
