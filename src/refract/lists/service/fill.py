"""What we find out by ourselves: it fills what a person has left empty, and nothing else."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, CursorResult, Update, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db import WriteSession
from refract.core.ids import first_id_at
from refract.core.net.metadata import Metadata
from refract.core.rows import slices
from refract.links.models import FlagReason
from refract.lists.models import FetchStatus, ListEntry

PATIENCE = timedelta(minutes=15)


async def fill_entry(session: WriteSession, entry_id: int, found: Metadata | None, now: datetime) -> bool:
    """End the waiting for an entry's page, with what was found or without. A published list may still be filled."""
    waiting = select(ListEntry).where(ListEntry.id == entry_id, ListEntry.fetch_status == FetchStatus.PENDING)
    entry = await session.scalar(waiting.with_for_update().execution_options(populate_existing=True))
    if entry is None:
        return False
    entry.fetch_status = (FetchStatus.FAILED if found is None else FetchStatus.SUCCESS).value
    if found is not None:
        if entry.title is None and not entry.title_by_hand:
            entry.title = found.title
        if entry.description is None and not entry.description_by_hand:
            entry.description = found.description
        entry.image = found.image
    entry.updated_at = now
    await session.flush()
    return True


async def give_up_waiting(session: WriteSession, now: datetime) -> int:
    """Entries whose job was lost are not shown as waiting for ever."""
    lost = update(ListEntry).where(ListEntry.fetch_status == FetchStatus.PENDING, ListEntry.id < first_id_at(now - PATIENCE))
    gone = await session.execute(lost.values(fetch_status=FetchStatus.FAILED.value).execution_options(synchronize_session=False))
    return gone.rowcount if isinstance(gone, CursorResult) else 0


async def settle_checks(session: WriteSession, safe: Sequence[int], bad: Sequence[int], now: datetime) -> None:
    """Note what block list and checking service say of entries. Only what they were waiting for is lifted from safe ones."""
    unchecked = or_(ListEntry.flag_reason.is_(None), ListEntry.flag_reason == FlagReason.UNCHECKED)
    for some in slices(sorted(safe)):
        await session.execute(_update(ListEntry.id.in_(some)).values(checked_at=now))
        await session.execute(_update(ListEntry.id.in_(some), ListEntry.flagged, unchecked).values(flagged=False, flag_reason=None))
    for some in slices(sorted(bad)):
        await session.execute(_update(ListEntry.id.in_(some)).values(checked_at=now, dangerous=True))


def _update(*which: ColumnElement[bool] | InstrumentedAttribute[bool]) -> Update:
    return update(ListEntry).where(*which).execution_options(synchronize_session=False)
