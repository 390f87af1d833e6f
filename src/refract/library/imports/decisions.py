"""Which rows of a file become items, and which are duplicates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.imports.models import RowOutcome
from refract.library.imports.messages import REMARK_SEPARATOR
from refract.library.imports.rows import Bookmark, BookmarkRow, TagRow
from refract.library.models import Item, ItemStatus, ItemType
from refract.library.recognition import RecognisedText, recognize_text
from refract.records.reader import UnreadableRow


@dataclass(frozen=True, slots=True)
class ClassifiedRow:
    """What is known of a row without a database."""

    refused: str | None = None
    """Why it cannot become an item."""
    recognised: RecognisedText | None = None
    """Set for a bookmark. A row that is neither refused nor a bookmark is a tag."""
    note: str | None = None
    """The text, if it is a note."""
    moment: datetime | None = None
    waiting: bool = False
    remarks: str | None = None

    @property
    def digest(self) -> str | None:
        return self.recognised.url_digest if self.recognised is not None else None


@dataclass(frozen=True, slots=True)
class RowDecision:
    """The outcome of a row."""

    outcome: RowOutcome
    why: str | None = None
    item_id: int | None = None


def classify_row(row: BookmarkRow) -> ClassifiedRow:
    """Return what a row is. Pure, and the costly half of the decision."""
    if isinstance(row, UnreadableRow):
        return ClassifiedRow(refused=row.why)
    if isinstance(row, TagRow):
        return ClassifiedRow()
    recognised = recognize_text(row.text)
    is_note = recognised.type is ItemType.NOTE
    if is_note and not row.own and row.text.lower().startswith("http"):
        return ClassifiedRow(refused="Not a valid URL.")
    moment = row.confirmed_at or row.created_at
    return ClassifiedRow(
        None,
        recognised,
        row.text if is_note else None,
        moment,
        row.waiting,
        REMARK_SEPARATOR.join(row.remarks) or None,
    )


async def decide_rows(
    session: ReadSession,
    user_id: int,
    rows: Mapping[int, ClassifiedRow],
    earlier: "SeenRows",
    now: datetime,
) -> dict[int, RowDecision]:
    """Return the outcome of each row.

    Rows that the user has already are skipped, so that a file can be imported again; so are
    duplicates within the file.
    """
    found: dict[int, RowDecision] = {}
    known = await _find_known_pages(
        session, user_id, [row.digest for row in rows.values() if row.digest]
    )
    notes = await _find_known_notes(
        session, user_id, [row for row in rows.values() if row.note is not None], now
    )
    for number, row in rows.items():
        if row.refused is not None:
            found[number] = RowDecision(RowOutcome.REFUSED, row.refused)
            continue
        if row.recognised is None:
            found[number] = RowDecision(RowOutcome.CREATED)
            continue
        key = row.digest or f"{row.moment}\n{row.note}"
        known_id = known.get(row.digest) if row.digest else notes.get(row.note or "")
        if known_id is not None:
            found[number] = RowDecision(RowOutcome.EXISTS, None, known_id)
        elif key in earlier.seen:
            found[number] = RowDecision(RowOutcome.EXISTS, "Duplicate in file.")
        else:
            earlier.seen.add(key)
            found[number] = RowDecision(RowOutcome.CREATED, row.remarks)
    return found


class SeenRows:
    """Rows of the same file that were decided before."""

    def __init__(self) -> None:
        self.seen: set[str] = set()


async def _find_known_pages(
    session: ReadSession, user_id: int, digests: Sequence[str]
) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for batch in iter_batches(sorted(set(digests))):
        query = select(Item.url_digest, Item.id).where(
            Item.user_id == user_id, Item.url_digest.in_(batch)
        )
        rows = await session.execute(
            query.where(Item.status != ItemStatus.DISCARDED).order_by(Item.id.desc())
        )
        found |= {row.url_digest: row.id for row in rows.all()}
    return found


async def _find_known_notes(
    session: ReadSession, user_id: int, rows: Sequence[ClassifiedRow], now: datetime
) -> dict[str, int]:
    """Return notes with the same text and time.

    The text alone is not enough: it may have been written twice.
    """
    moments = sorted({min(row.moment or now, now) for row in rows if not row.waiting})
    found: dict[str, int] = {}
    for batch in iter_batches(moments):
        query = select(Item.text, Item.id).where(
            Item.user_id == user_id, Item.status == ItemStatus.ARCHIVED, Item.type == ItemType.NOTE
        )
        found |= {
            row.text: row.id
            for row in (await session.execute(query.where(Item.confirmed_at.in_(batch)))).all()
        }
    waiting = {row.note for row in rows if row.waiting}
    if waiting:
        pending = select(Item.text, Item.id).where(
            Item.user_id == user_id, Item.pending, Item.type == ItemType.NOTE
        )
        found |= {
            text: item_id
            for text, item_id in (await session.execute(pending)).all()
            if text in waiting
        }
    return found


def get_confirmed_at(row: Bookmark, now: datetime) -> datetime | None:
    """Return when a row's item was confirmed: never in the future; None if it is pending."""
    if row.waiting:
        return None
    return min(row.confirmed_at or row.created_at or now, now)
