"""A file as text, read a little at a time, however long it or one of its lines is."""

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from refract.links.importing.rows import UnreadableFile

HEAD = 64 * 1024
LONGEST_LINE = 64 * 1024
"""Characters. Everything a link can have fits several times; what is longer is not kept in memory."""

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its end, or only its beginning when it is too long."""

    number: int
    text: str
    too_long: bool = False


class Source:
    """The text of a file. `position` says how many bytes have been read, for whoever shows progress."""

    def __init__(self, stream: BinaryIO, encoding: str | None = None) -> None:
        head = stream.read(HEAD)
        marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
        chosen = marked or encoding or "utf-8"
        try:
            codecs.lookup(chosen)
        except LookupError as wrong:
            raise UnreadableFile(problem=f'There is no encoding "{chosen}": use a name such as utf-8 or cp1252.') from wrong
        self._counted = _Counted(head, stream)
        errors = "surrogateescape" if chosen.startswith("utf-8") else "replace"
        self.head = head.decode(chosen, "ignore")
        self.text: TextIO = io.TextIOWrapper(io.BufferedReader(self._counted), chosen, errors=errors, newline="")

    @property
    def position(self) -> int:
        return self._counted.position

    def lines(self) -> Iterator[Line]:
        """The lines, numbered from 1. Of one that is too long only the beginning is kept."""
        number = 0
        while text := self.text.readline(LONGEST_LINE):
            number += 1
            rest = text
            while len(rest) == LONGEST_LINE and not rest.endswith(("\n", "\r")):
                rest = self.text.readline(LONGEST_LINE)
                if not rest:
                    break
            yield Line(number, text, too_long=rest is not text and bool(rest))


class _Counted(io.RawIOBase):
    """What was read already to look at it, then the rest."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._head = memoryview(head)
        self._stream = stream
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        size = len(buffer)
        chunk = self._head[:size] if self._head else self._stream.read(size)
        self._head = self._head[size:]
        buffer[: len(chunk)] = chunk
        self.position += len(chunk)
        return len(chunk)
