"""Files that people bring over the web, read in an extraction process: megabytes of HTML, CSV or JSON that anybody may have made.

The child writes two lines for each row, so that the server takes in a piece at a time and parses no more than it needs.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from refract.core.errors import Unavailable
from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import ExtractionBusy, ExtractionError, ExtractionTask, TaskRefused
from refract.core.runtime import Runtime
from refract.core.text import shown
from refract.library.capturing import Recognised
from refract.library.importing.formats import Kind, open_rows
from refract.library.importing.judging import WeighedRow, weigh
from refract.library.importing.kept import KeptRow, keep_row
from refract.library.importing.rows import BookmarkRow
from refract.library.models import ItemType
from refract.records.errors import UnreadableFile
from refract.records.reader import MAX_SHOWN

MAX_ROWS = 100_000
"""Rows of a file over the web. Four megabytes of real bookmarks are thirty thousand."""

KEEP_ROWS = ExtractionTask(
    "import", "refract.library.importing.reading:keep_rows", cpu_seconds=30, wall_seconds=120.0, max_output=128 * 1024 * 1024, slow=True
)
WEIGH_ROWS = replace(KEEP_ROWS, kind="import_trial", function="refract.library.importing.reading:weigh_rows")
_PIECE = 64 * 1024


class ImportsBusy(Unavailable):
    """Your other files are still being read: try again in a moment."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row of a dry run: where it stands, what is shown of it, and what it is."""

    place: str
    shown: str
    weighed: WeighedRow


class FileRows:
    """The rows of a file as bytes, and what wrote it."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        *self._pieces, last = pieces
        self.kind = Kind(json.loads(last))

    def kept(self) -> Iterator[KeptRow]:
        """Yield rows to store, each parsed as it is asked for."""
        for head, content in self._pairs():
            place, text, why = json.loads(head)
            yield KeptRow(place, text, why, content.decode() or None)

    def weighed(self) -> Iterator[TrialRow]:
        """Yield rows of a dry run."""
        for head, note in self._pairs():
            place, text, refused, is_bookmark, digest, moment, waiting, remarks = json.loads(head)
            kind = ItemType.ARTICLE if digest else ItemType.NOTE
            recognised = Recognised(kind, url_digest=digest) if is_bookmark else None
            at = datetime.fromisoformat(moment) if moment else None
            is_note = is_bookmark and not digest
            yield TrialRow(place, text, WeighedRow(refused, recognised, json.loads(note) if is_note else None, at, waiting, remarks))

    def _pairs(self) -> Iterator[tuple[bytes, bytes]]:
        lines = _lines(self._pieces)
        return zip(lines, lines, strict=True)


async def read_file(rt: Runtime, user_id: int, body: bytes, kind: Kind, *, trial: bool) -> FileRows:
    """Return the rows of a file, for a dry run or to be stored.

    Raises `UnreadableFile` about a file that is none of those we know, or that is too much to read.
    """
    try:
        task = WEIGH_ROWS if trial else KEEP_ROWS
        return FileRows(await rt.part(ExtractionPool).run(task, body, owner=str(user_id), kind=kind.value))
    except TaskRefused as exc:
        raise UnreadableFile(problem=str(exc.details["problem"])) from exc
    except ExtractionBusy as exc:
        raise ImportsBusy from exc
    except ExtractionError as exc:
        raise UnreadableFile(problem="The file takes too long to read: bring it in parts.") from exc


def keep_rows(body: bytes, *, kind: str) -> Iterator[bytes]:
    """Yield rows to store. Runs in the extraction process."""
    return _written(body, kind, _kept_lines)


def weigh_rows(body: bytes, *, kind: str) -> Iterator[bytes]:
    """Yield rows of a dry run. Runs in the extraction process."""
    return _written(body, kind, _weighed_lines)


def _written(body: bytes, kind: str, write: Callable[[BookmarkRow], tuple[str, str]]) -> Iterator[bytes]:
    piece = b""
    try:
        rows = open_rows(io.BytesIO(body), Kind(kind))
        for number, row in enumerate(rows):
            if number == MAX_ROWS:
                raise TaskRefused("TOO_MANY_ROWS", problem=f"The file has more than {MAX_ROWS:,} rows: bring it in parts.")
            piece += "{}\n{}\n".format(*write(row)).encode()
            if len(piece) > _PIECE:
                yield piece
                piece = b""
    except UnreadableFile as exc:
        raise TaskRefused(exc.code, problem=exc.message) from exc
    yield piece
    yield json.dumps(rows.kind).encode()


def _kept_lines(row: BookmarkRow) -> tuple[str, str]:
    place, text, why, content = keep_row(row)
    return json.dumps([place, text, why]), content or ""


def _weighed_lines(row: BookmarkRow) -> tuple[str, str]:
    weighed = weigh(row)
    moment = weighed.moment.isoformat() if weighed.moment else None
    facts = [weighed.refused, weighed.recognised is not None, weighed.digest, moment, weighed.waiting, weighed.remarks]
    return json.dumps([row.where, shown(row.text, MAX_SHOWN), *facts]), json.dumps(weighed.note)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends, whole ones from pieces that may end anywhere."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
