"""Rows of an upload, as an extraction process writes them and the database stores them. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from refract.core.extraction.tasks import TaskRefused
from refract.records.errors import UnreadableFile

MAX_UPLOAD_ROWS = 100_000
"""Rows of an uploaded file. Four megabytes of real bookmarks have thirty thousand."""
_CHUNK_BYTES = 64 * 1024
RowT = TypeVar("RowT")


class StoredRow(NamedTuple):
    """The columns of an `ImportRow` that come from the file."""

    place: str
    shown: str
    why: str | None
    content: str | None


def write_rows(
    rows: Iterable[RowT], write: Callable[[RowT], tuple[str, str]], end: Callable[[], Any]
) -> Iterator[bytes]:
    """Yield two lines per row, and at last what `end` returns. Runs in the extraction process."""
    piece = b""
    try:
        for number, row in enumerate(rows):
            if number == MAX_UPLOAD_ROWS:
                raise TaskRefused(
                    "TOO_MANY_ROWS",
                    problem=(
                        f"The file has more than {MAX_UPLOAD_ROWS:,} rows."
                        " Split it and import the parts."
                    ),
                )
            piece += "{}\n{}\n".format(*write(row)).encode()
            if len(piece) > _CHUNK_BYTES:
                yield piece
                piece = b""
    except UnreadableFile as exc:
        raise TaskRefused(exc.code, problem=exc.message) from exc
    yield piece
    yield json.dumps(end()).encode()


def format_stored_row(row: StoredRow) -> tuple[str, str]:
    """Return the two lines of a row to store."""
    return json.dumps([row.place, row.shown, row.why]), row.content or ""


def parse_stored_rows(pieces: Iterable[bytes]) -> Iterator[StoredRow]:
    """Yield the rows to store, each parsed when it is needed."""
    for head, content in iter_line_pairs(pieces):
        place, text, why = json.loads(head)
        yield StoredRow(place, text, why, content.decode() or None)


def iter_line_pairs(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    lines = _iter_lines(pieces)
    return zip(lines, lines, strict=True)


def split_end(pieces: Sequence[bytes]) -> tuple[Sequence[bytes], Any]:
    """Return the pieces with rows, and what `write_rows` wrote at the end."""
    *rows, last = pieces
    return rows, json.loads(last)


def _iter_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield complete lines without their ends, from pieces that may end anywhere."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
