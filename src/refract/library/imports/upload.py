"""Uploaded files of bookmarks, read in an extraction process."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from refract.core.runtime import Runtime
from refract.core.text import make_excerpt
from refract.imports.upload import build_task, read_rows
from refract.library.imports.decisions import ClassifiedRow, classify_row
from refract.library.imports.formats import BookmarkFileFormat
from refract.library.imports.rows import BookmarkRow
from refract.library.imports.stored_rows import write_bookmark_rows
from refract.library.models import ItemType
from refract.library.recognition import RecognisedText
from refract.records.reader import MAX_SHOWN
from refract.records.stored_rows import StoredRow, iter_line_pairs, parse_stored_rows, split_end

STORE_ROWS_TASK = build_task("import", "refract.library.imports.stored_rows:write_stored_rows")
CLASSIFY_ROWS_TASK = build_task(
    "import_trial", "refract.library.imports.upload:write_classified_rows"
)


@dataclass(frozen=True, slots=True)
class UploadedRow:
    """A row of a dry run: its place, an excerpt, and what it is."""

    place: str
    shown: str
    classified: ClassifiedRow


class UploadedRows:
    """The rows of a file as bytes, and its format."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces, kind = split_end(pieces)
        self.kind = BookmarkFileFormat(kind)

    def iter_stored_rows(self) -> Iterator[StoredRow]:
        """Return the rows to store."""
        return parse_stored_rows(self._pieces)

    def iter_rows(self) -> Iterator[UploadedRow]:
        """Yield rows of a dry run."""
        for head, note in iter_line_pairs(self._pieces):
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


async def read_upload(
    rt: Runtime, user_id: int, body: bytes, kind: BookmarkFileFormat, *, preview: bool
) -> UploadedRows:
    """Return the rows of a file, for a dry run or to be stored.

    Raises `UnreadableFile` if the format is unknown or the file takes too long to read.
    """
    task = CLASSIFY_ROWS_TASK if preview else STORE_ROWS_TASK
    return UploadedRows(await read_rows(rt, task, user_id, body, kind=kind.value))


def write_classified_rows(body: bytes, *, kind: str) -> Iterator[bytes]:
    """Yield rows of a dry run. Runs in the extraction process."""
    return write_bookmark_rows(body, kind, _format_classified_row)


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
