"""Which rows of a file would become items, and which are here already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from refract.core.db import ReadSession
from refract.core.rows import slices
from refract.library.capturing import Recognised, recognise
from refract.library.import_models import RowOutcome
from refract.library.importing.rows import Bookmark, Row, TagRow, Unreadable
from refract.library.models import Item, ItemStatus, ItemType


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a row."""

    outcome: RowOutcome
    why: str | None = None
    item_id: int | None = None
    recognised: Recognised | None = None


async def judge(session: ReadSession, user_id: int, rows: Mapping[int, Row], earlier: "Earlier", now: datetime) -> dict[int, Verdict]:
    """A verdict for each row. What the person has is left alone, so that a file can be brought again; two alike in one file are one."""
    found: dict[int, Verdict] = {}
    read: dict[int, tuple[Bookmark, Recognised]] = {}
    for number, row in rows.items():
        if isinstance(row, Unreadable):
            found[number] = Verdict(RowOutcome.REFUSED, row.why)
        elif isinstance(row, TagRow):
            found[number] = Verdict(RowOutcome.CREATED)
        elif (recognised := recognise(row.text)).type is ItemType.NOTE and not row.own and row.text.lower().startswith("http"):
            found[number] = Verdict(RowOutcome.REFUSED, "This is not an address that a browser could open.")
        else:
            read[number] = row, recognised
    known = await _known_pages(session, user_id, [one.url_digest for _, one in read.values() if one.url_digest])
    notes = await _known_notes(session, user_id, [row for row, one in read.values() if one.type is ItemType.NOTE], now)
    for number, (row, recognised) in read.items():
        mark = recognised.url_digest or f"{row.confirmed_at or row.created_at}\n{row.text}"
        here = known.get(recognised.url_digest) if recognised.url_digest else notes.get(row.text)
        if here is not None:
            found[number] = Verdict(RowOutcome.EXISTS, None, here)
        elif mark in earlier.seen:
            found[number] = Verdict(RowOutcome.EXISTS, "The file has it twice.")
        else:
            earlier.seen.add(mark)
            found[number] = Verdict(RowOutcome.CREATED, "; ".join(row.remarks) or None, None, recognised)
    return found


class Earlier:
    """What rows before have been of the same file."""

    def __init__(self) -> None:
        self.seen: set[str] = set()


async def _known_pages(session: ReadSession, user_id: int, digests: Sequence[str]) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for some in slices(sorted(set(digests))):
        question = select(Item.url_digest, Item.id).where(Item.user_id == user_id, Item.url_digest.in_(some))
        kept = await session.execute(question.where(Item.status != ItemStatus.DISCARDED).order_by(Item.id.desc()))
        found |= {row.url_digest: row.id for row in kept.all()}
    return found


async def _known_notes(session: ReadSession, user_id: int, rows: Sequence[Bookmark], now: datetime) -> dict[str, int]:
    """Notes with the same text and the same moment: a text alone may well have been written twice."""
    moments = sorted({moment for row in rows if (moment := confirmed(row, now)) is not None})
    found: dict[str, int] = {}
    for some in slices(moments):
        question = select(Item.text, Item.id).where(Item.user_id == user_id, Item.status == ItemStatus.ARCHIVED, Item.type == ItemType.NOTE)
        found |= {row.text: row.id for row in (await session.execute(question.where(Item.confirmed_at.in_(some)))).all()}
    waiting = [row.text for row in rows if row.waiting]
    if waiting:
        pending = select(Item.text, Item.id).where(Item.user_id == user_id, Item.pending, Item.type == ItemType.NOTE)
        found |= {text: item_id for text, item_id in (await session.execute(pending)).all() if text in waiting}
    return found


def confirmed(row: Bookmark, now: datetime) -> datetime | None:
    """When a row's item was confirmed; nothing that comes from outside was before we could know, or is yet to come."""
    if row.waiting:
        return None
    return min(row.confirmed_at or row.created_at or now, now)
