"""Rows of a table in an SQL dump (mysqldump, phpMyAdmin), read from its text piece by piece.

Only `INSERT` statements are read, and never run. A statement may be many megabytes long; of it no
more than a row is in memory.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TextIO

from refract.records.errors import BrokenFile

MAX_ROW: Final = 256 * 1024
"""Characters of a row."""
_PIECE: Final = 64 * 1024
_INSERT = re.compile(
    r"^INSERT\s+(?:IGNORE\s+)?INTO\s+[`\"]?(\w{1,64})[`\"]?\s*(\([^()]{0,4096}\))?\s*VALUES\s*",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_HEAD: Final = 8 * 1024
_VALUE = re.compile(
    r"\s*+(?:(?:_\w++ ?)?'((?:[^'\\]++|\\.|'')*+)'|([^\s,()'\"`;]++))\s*+", re.DOTALL
)
_ROW = re.compile(
    rf"\s*+\((?P<row>(?:{_VALUE.pattern},)*+{_VALUE.pattern})\)\s*+(?P<end>[,;])", re.DOTALL
)
_OPEN_ROW = re.compile(r"\s*+(?:\(|\Z)")
_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}

SqlRow = tuple[Sequence[str] | None, list[str | None]]
"""The columns that the statement names, if any, and the values. NULL is None."""


def looks_like_sql(head: str) -> bool:
    """Return whether a text begins like a dump."""
    return bool(re.search(r"^(?:INSERT INTO|CREATE TABLE) ", head, re.MULTILINE))


class SqlDump:
    """The rows of those tables of a dump whose name `is_wanted` accepts."""

    def __init__(self, text: TextIO, is_wanted: Callable[[str], bool]) -> None:
        self._text = text
        self._is_wanted = is_wanted
        self._buffer = ""
        self._at = 0

    def __iter__(self) -> Iterator[SqlRow]:
        """Yield the rows. Raises `BrokenFile` for a row that can't be read."""
        while (columns := self._find_statement()) is not None:
            yield from ((columns or None, values) for values in self._iter_rows())

    def _read_more(self) -> bool:
        """Read on; what was consumed is dropped. Return False at the end."""
        piece = self._text.read(_PIECE)
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        return bool(piece)

    def _find_statement(self) -> Sequence[str] | None:
        """Move behind the head of the next statement that is wanted; return its columns."""
        while True:
            found = _INSERT.search(self._buffer, self._at)
            if found is None or (found.end() == len(self._buffer) and found[2] is None):
                line = self._buffer.rfind("\n", self._at) + 1
                self._at = max(self._at, min(line, len(self._buffer)))
                if len(self._buffer) - self._at > _MAX_HEAD and found is None:
                    self._skip_line()
                if not self._read_more():
                    if found is None:
                        return None
                else:
                    continue
            self._at = found.end()
            if self._is_wanted(found[1]):
                named = (found[2] or "").strip("()")
                return [part.strip(' `"\n') for part in named.split(",")] if named else []

    def _skip_line(self) -> None:
        """Skip the rest of a line that is too long to be the head of a statement."""
        while (end := self._buffer.find("\n", self._at)) < 0:
            self._at = len(self._buffer)
            if not self._read_more():
                return
        self._at = end + 1

    def _iter_rows(self) -> Iterator[list[str | None]]:
        while True:
            found = _ROW.match(self._buffer, self._at)
            if found is None:
                self._read_row_on()
                continue
            self._at = found.end()
            yield list(_read_values(found["row"]))
            if found["end"] == ";":
                return

    def _read_row_on(self) -> None:
        rest = len(self._buffer) - self._at
        if rest > MAX_ROW or not _OPEN_ROW.match(self._buffer, self._at):
            raise BrokenFile("a row of its table is too long or broken")
        if not self._read_more():
            raise BrokenFile("it ends inside of a statement")


def _read_values(row: str) -> Iterator[str | None]:
    at = 0
    while found := _VALUE.match(row, at):
        yield _read_value(found[1] or "", found[2] or "")
        at = found.end() + 1  # behind the comma


def _read_value(text: str, bare: str) -> str | None:
    if bare:
        return None if bare.upper() == "NULL" else bare
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]) if found[1] else "'", text)
