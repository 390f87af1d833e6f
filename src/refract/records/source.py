"""The text of a file, read in bounded pieces however long the file or one of its lines is."""

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from refract.records.errors import UnreadableFile

HEAD_SIZE = 64 * 1024
MAX_LINE = 64 * 1024
"""Characters of a line, several times more than a record needs.

Of a longer line only the beginning is kept in memory.
"""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line with its end, or only its beginning when it is too long."""

    number: int
    text: str
    too_long: bool = False


class TextSource:
    """The text of a file, and `position`: the number of bytes read, to show progress.

    A byte order mark takes precedence over `encoding`. Bytes that are not valid UTF-8 become lone
    surrogates, so that only one record is refused (`values.check_text`) and not the file.
    """

    def __init__(self, stream: BinaryIO, encoding: str | None = None) -> None:
        head = stream.read(HEAD_SIZE)
        marked = next((name for mark, name in _BYTE_ORDER_MARKS if head.startswith(mark)), None)
        chosen = marked or encoding or "utf-8"
        try:
            codecs.lookup(chosen)
        except LookupError as exc:
            problem = f'There is no encoding "{chosen}". Use a name such as utf-8 or cp1252.'
            raise UnreadableFile(problem=problem) from exc
        self._counted = _CountedBytes(head, stream)
        errors = "surrogateescape" if chosen.startswith("utf-8") else "replace"
        self.head = head.decode(chosen, "ignore")
        self.text: TextIO = io.TextIOWrapper(
            io.BufferedReader(self._counted), chosen, errors=errors, newline=""
        )

    @property
    def position(self) -> int:
        return self._counted.position

    def iter_lines(self) -> Iterator[TextLine]:
        """Yield the lines, numbered from 1. Of one that is too long only the beginning is kept."""
        number = 0
        while text := self.text.readline(MAX_LINE):
            number += 1
            rest = text
            while len(rest) == MAX_LINE and not rest.endswith(("\n", "\r")):
                rest = self.text.readline(MAX_LINE)
                if not rest:
                    break
            yield TextLine(number, text, too_long=rest is not text and bool(rest))


class _CountedBytes(io.RawIOBase):
    """The head of a file, which was read to detect its format, then the rest."""

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
