"""Uploaded files, read in an extraction process.

They are megabytes of untrusted HTML, CSV or JSON. The process writes two lines per row, so that the
server reads a piece at a time and parses no more than it needs.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from refract.core.errors import Unavailable
from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import (
    ExtractionBusy,
    ExtractionError,
    ExtractionTask,
    TaskRefused,
)
from refract.core.runtime import Runtime
from refract.core.text import make_excerpt
from refract.library.imports.decisions import ClassifiedRow, classify_row
from refract.library.imports.formats import BookmarkFileFormat
from refract.library.imports.rows import BookmarkRow
from refract.library.imports.stored_rows import StoredRow, write_rows
from refract.library.models import ItemType
from refract.library.recognition import RecognisedText
from refract.records.errors import UnreadableFile
from refract.records.reader import MAX_SHOWN

STORE_ROWS_TASK = ExtractionTask(
    "import",
    "refract.library.imports.stored_rows:write_stored_rows",
    cpu_seconds=30,
    wall_seconds=120.0,
    max_output=128 * 1024 * 1024,
    slow=True,
)
CLASSIFY_ROWS_TASK = replace(
    STORE_ROWS_TASK,
    kind="import_trial",
    function="refract.library.imports.upload:write_classified_rows",
)


class ImportsBusy(Unavailable):
    """Your other files are still being read. Try again in a moment."""


@dataclass(frozen=True, slots=True)
class UploadedRow:
    """A row of a dry run: its place, an excerpt, and what it is."""

    place: str
    shown: str
    classified: ClassifiedRow


class UploadedRows:
    """The rows of a file as bytes, and its format."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        *self._pieces, last = pieces
        self.kind = BookmarkFileFormat(json.loads(last))

    def iter_stored_rows(self) -> Iterator[StoredRow]:
        """Yield rows to store, each parsed when it is needed."""
        for head, content in self._iter_line_pairs():
            place, text, why = json.loads(head)
            yield StoredRow(place, text, why, content.decode() or None)

    def iter_rows(self) -> Iterator[UploadedRow]:
        """Yield rows of a dry run."""
        for head, note in self._iter_line_pairs():
            place, text, refused, is_bookmark, digest, moment, waiting, remarks = json.loads(head)
            kind = ItemType.ARTICLE if digest else ItemType.NOTE
            recognised = RecognisedText(kind, url_digest=digest) if is_bookmark else None
            at = datetime.fromisoformat(moment) if moment else None
            is_note = is_bookmark and not digest
            yield UploadedRow(
                place,
                text,
                ClassifiedRow(
                    refused, recognised, json.loads(note) if is_note else None, at, waiting, remarks
                ),
            )

    def _iter_line_pairs(self) -> Iterator[tuple[bytes, bytes]]:
        lines = _iter_lines(self._pieces)
        return zip(lines, lines, strict=True)


async def read_upload(
    rt: Runtime, user_id: int, body: bytes, kind: BookmarkFileFormat, *, preview: bool
) -> UploadedRows:
    """Return the rows of a file, for a dry run or to be stored.

    Raises `UnreadableFile` if the format is unknown or the file takes too long to read.
    """
    try:
        task = CLASSIFY_ROWS_TASK if preview else STORE_ROWS_TASK
        return UploadedRows(
            await rt.singleton(ExtractionPool).run(task, body, owner=str(user_id), kind=kind.value)
        )
    except TaskRefused as exc:
        raise UnreadableFile(problem=str(exc.details["problem"])) from exc
    except ExtractionBusy as exc:
        raise ImportsBusy from exc
    except ExtractionError as exc:
        problem = "The file takes too long to read. Split it and import the parts."
        raise UnreadableFile(problem=problem) from exc


def write_classified_rows(body: bytes, *, kind: str) -> Iterator[bytes]:
    """Yield rows of a dry run. Runs in the extraction process."""
    return write_rows(body, kind, _format_classified_row)


def _format_classified_row(row: BookmarkRow) -> tuple[str, str]:
    classified = classify_row(row)
    moment = classified.moment.isoformat() if classified.moment else None
    facts = [
        classified.refused,
        classified.recognised is not None,
        classified.digest,
        moment,
        classified.waiting,
        classified.remarks,
    ]
    return json.dumps([row.where, make_excerpt(row.text, MAX_SHOWN), *facts]), json.dumps(
        classified.note
    )


def _iter_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield complete lines without their ends, from pieces that may end anywhere."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
