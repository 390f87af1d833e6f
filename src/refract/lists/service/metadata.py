"""Fetched metadata, which fills only what users have left blank, and checks of entries."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Update, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import WriteSession
from refract.core.net.metadata import PageMetadata
from refract.links.enums import FlagReason
from refract.lists.models import FetchStatus, ListEntry

FETCH_TIMEOUT = timedelta(minutes=15)


async def fill_entry(
    session: WriteSession,
    entry_id: int,
    found: PageMetadata | None,
    now: datetime,
    href: str | None = None,
) -> bool:
    """Record the result of fetching an entry's page; None means failure.

    Entries of a published list are filled too. Return whether the entry was still pending, and its
    URL still `href`, if that is given.
    """
    waiting = select(ListEntry).where(
        ListEntry.id == entry_id, ListEntry.fetch_status == FetchStatus.PENDING
    )
    entry = await session.scalar(
        waiting.with_for_update().execution_options(populate_existing=True)
    )
    if entry is None or href not in (None, entry.href):
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


async def fail_stale_entries(session: WriteSession, now: datetime) -> int:
    """Mark entries as failed whose job was lost. Return their number."""
    lost = update(ListEntry).where(
        ListEntry.fetch_status == FetchStatus.PENDING,
        ListEntry.updated_at < now - FETCH_TIMEOUT,  # it may have been fetched before
    )
    gone = await session.execute(
        lost.values(fetch_status=FetchStatus.FAILED.value).execution_options(
            synchronize_session=False
        )
    )
    return get_rowcount(gone)


async def record_checks(
    session: WriteSession, safe: Sequence[int], bad: Sequence[int], now: datetime
) -> None:
    """Record the checks of entries. Safe ones lose only the flag `unchecked`."""
    unchecked = or_(ListEntry.flag_reason.is_(None), ListEntry.flag_reason == FlagReason.UNCHECKED)
    for batch in iter_batches(sorted(safe)):
        await session.execute(_update_entries(ListEntry.id.in_(batch)).values(checked_at=now))
        await session.execute(
            _update_entries(ListEntry.id.in_(batch), ListEntry.flagged, unchecked).values(
                flagged=False, flag_reason=None
            )
        )
    for batch in iter_batches(sorted(bad)):
        await session.execute(
            _update_entries(ListEntry.id.in_(batch)).values(checked_at=now, dangerous=True)
        )


def _update_entries(*which: ColumnElement[bool] | InstrumentedAttribute[bool]) -> Update:
    return update(ListEntry).where(*which).execution_options(synchronize_session=False)
