"""Entries and their order. Positions run from 1 to n without a gap, under the list's lock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Update, delete, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import WriteSession
from refract.core.errors import NothingToUndo
from refract.core.ids import get_min_id
from refract.core.net.metadata import PageMetadata
from refract.core.secrets import hash_credential
from refract.links.models import FlagReason
from refract.lists import queries
from refract.lists.access import ListCaller
from refract.lists.errors import EntryNotFound, OrderMismatch, TooManyEntries
from refract.lists.models import FetchStatus, ListEntry, RemovedEntry
from refract.lists.schemas import MAX_ENTRIES, EntryPatch
from refract.lists.service.drafts import lock_draft, record_change
from refract.names.service import Namespace

COPIED_FIELDS = (
    "link_id",
    "url",
    "href",
    "host",
    "normalized_url",
    "normalized_digest",
    "title",
    "description",
    "image",
    "title_by_hand",
    "description_by_hand",
    "fetch_status",
    "flagged",
    "flag_reason",
    "checked_at",
    "dangerous",
    "position",
)
"""What an entry takes along into a new edition."""
_TIME_FIELDS = ("checked_at", "created_at")
REMOVED_ENTRY_LIFETIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class CheckedAddress:
    """A URL that passed the checks. `link_id` is our link whose destination it follows."""

    url: str
    href: str
    host: str
    normalized_url: str
    flag_reason: FlagReason | None = None
    unchecked: bool = False
    link_id: int | None = None


async def add_entries(
    session: WriteSession,
    space: Namespace,
    caller: ListCaller,
    list_id: int,
    addresses: Sequence[CheckedAddress],
) -> list[ListEntry]:
    """Append URLs in the given order. Duplicates are added too."""
    found = await lock_draft(session, caller, list_id)
    count = await session.scalar(select(func.count()).where(ListEntry.list_id == list_id)) or 0
    if count + len(addresses) > MAX_ENTRIES:
        raise TooManyEntries(limit=MAX_ENTRIES)
    now = space.clock.now()
    numbers = space.ids.next_ids(len(addresses))
    added = [
        _build_entry(number, list_id, address, count + place, now)
        for place, (number, address) in enumerate(zip(numbers, addresses, strict=True), 1)
    ]
    session.add_all(added)
    if added:
        record_change(session, caller, found, "entries_added", now)
    await session.flush()
    return added


def _build_entry(
    number: int, list_id: int, address: CheckedAddress, position: int, now: datetime
) -> ListEntry:
    return ListEntry(
        id=number,
        list_id=list_id,
        link_id=address.link_id,
        url=address.url,
        href=address.href,
        host=address.host,
        normalized_url=address.normalized_url,
        normalized_digest=hash_credential(address.normalized_url)[:32],
        title_by_hand=False,
        description_by_hand=False,
        fetch_status=FetchStatus.PENDING.value,
        flagged=address.flag_reason is not None,
        flag_reason=address.flag_reason,
        checked_at=None if address.unchecked else now,
        dangerous=False,
        position=position,
        created_at=now,
        updated_at=now,
    )


async def edit_entry(
    session: WriteSession,
    caller: ListCaller,
    list_id: int,
    entry_id: int,
    changes: EntryPatch,
    now: datetime,
) -> ListEntry:
    """Change the given fields. From then on fetched metadata does not overwrite them."""
    found = await lock_draft(session, caller, list_id)
    locked = select(ListEntry).where(ListEntry.id == entry_id, ListEntry.list_id == list_id)
    entry = await session.scalar(locked.with_for_update().execution_options(populate_existing=True))
    if entry is None:
        raise EntryNotFound
    given = changes.model_dump(exclude_unset=True)
    if "title" in given:
        entry.title, entry.title_by_hand = given["title"], True
    if "description" in given:
        entry.description, entry.description_by_hand = given["description"], True
    if given:
        entry.updated_at = now
        record_change(session, caller, found, "entry_edited", now)
    await session.flush()
    return entry


async def remove_entry(
    session: WriteSession, caller: ListCaller, list_id: int, entry_id: int, now: datetime
) -> ListEntry:
    """Remove an entry and close the gap. It is kept for the 24 hours in which this can be undone.

    The returned entry is no longer part of the session.
    """
    found = await lock_draft(session, caller, list_id)
    entry = await queries.find_entry(session, list_id, entry_id)
    kept = {name: getattr(entry, name) for name in (*COPIED_FIELDS, "created_at")}
    kept |= {name: kept[name].isoformat() for name in _TIME_FIELDS if kept[name] is not None}
    await session.execute(delete(RemovedEntry).where(RemovedEntry.id == entry_id))
    session.add(RemovedEntry(id=entry_id, list_id=list_id, removed_at=now, fields=kept))
    await session.execute(
        delete(ListEntry)
        .where(ListEntry.id == entry_id)
        .execution_options(synchronize_session=False)
    )
    await _shift_entries(session, list_id, entry.position + 1, -1)
    session.expunge(entry)
    record_change(session, caller, found, "entry_removed", now)
    await session.flush()
    return entry


async def restore_entry(
    session: WriteSession, caller: ListCaller, list_id: int, entry_id: int, now: datetime
) -> ListEntry:
    """Put an entry that was removed in the last 24 hours back in its place, under the same id."""
    found = await lock_draft(session, caller, list_id)
    removed = await session.get(RemovedEntry, entry_id, with_for_update=True)
    if (
        removed is None
        or removed.list_id != list_id
        or removed.removed_at + REMOVED_ENTRY_LIFETIME <= now
    ):
        raise NothingToUndo
    count = await session.scalar(select(func.count()).where(ListEntry.list_id == list_id)) or 0
    if count >= MAX_ENTRIES:
        raise TooManyEntries(limit=MAX_ENTRIES)
    fields = removed.fields | {"position": min(removed.fields["position"], count + 1)}
    fields |= {
        name: datetime.fromisoformat(fields[name])
        for name in _TIME_FIELDS
        if fields[name] is not None
    }
    await _shift_entries(session, list_id, fields["position"], 1)
    entry = ListEntry(id=entry_id, list_id=list_id, updated_at=now, **fields)
    session.add(entry)
    await session.delete(removed)
    record_change(session, caller, found, "entry_restored", now)
    await session.flush()
    return entry


async def _shift_entries(session: WriteSession, list_id: int, first: int, by: int) -> None:
    """Move the entries from a position on by one place, to close or to make a gap."""
    behind = update(ListEntry).where(ListEntry.list_id == list_id, ListEntry.position >= first)
    await session.execute(
        behind.values(position=ListEntry.position + by).execution_options(synchronize_session=False)
    )


async def purge_removed_entries(session: WriteSession, now: datetime) -> None:
    """Erase removed entries that can no longer be restored."""
    late = RemovedEntry.removed_at <= now - REMOVED_ENTRY_LIFETIME
    await session.execute(delete(RemovedEntry).where(late))


async def move_entry(
    session: WriteSession, caller: ListCaller, list_id: int, entry_id: int, by: int, now: datetime
) -> None:
    """Move an entry up (negative) or down, at most to the end of the list."""
    await lock_draft(session, caller, list_id)
    query = select(ListEntry.id).where(ListEntry.list_id == list_id).order_by(ListEntry.position)
    ids = list(await session.scalars(query))
    if entry_id not in ids:
        raise EntryNotFound
    place = ids.index(entry_id)
    ids.insert(max(0, min(len(ids), place + by)), ids.pop(place))
    await reorder_entries(session, caller, list_id, ids, now)


async def reorder_entries(
    session: WriteSession, caller: ListCaller, list_id: int, entry_ids: Sequence[int], now: datetime
) -> None:
    """Set the order, which must name each entry once: otherwise the client saw an older list."""
    found = await lock_draft(session, caller, list_id)
    rows = await session.execute(
        select(ListEntry.id, ListEntry.position).where(ListEntry.list_id == list_id)
    )
    places = dict(rows.all())
    if sorted(entry_ids) != sorted(places):
        raise OrderMismatch
    moved = [
        {"id": entry_id, "position": place}
        for place, entry_id in enumerate(entry_ids, 1)
        if places[entry_id] != place
    ]
    if moved:
        await session.execute(update(ListEntry), moved)
        record_change(session, caller, found, "reordered", now)
    await session.flush()


# Fetched metadata fills what users have left blank, and nothing else.

FETCH_TIMEOUT = timedelta(minutes=15)


async def fill_entry(
    session: WriteSession, entry_id: int, found: PageMetadata | None, now: datetime
) -> bool:
    """Record the result of fetching an entry's page; None means failure.

    Entries of a published list are filled too. Return whether the entry was still pending.
    """
    waiting = select(ListEntry).where(
        ListEntry.id == entry_id, ListEntry.fetch_status == FetchStatus.PENDING
    )
    entry = await session.scalar(
        waiting.with_for_update().execution_options(populate_existing=True)
    )
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


async def fail_stale_entries(session: WriteSession, now: datetime) -> int:
    """Mark entries as failed whose job was lost. Return their number."""
    lost = update(ListEntry).where(
        ListEntry.fetch_status == FetchStatus.PENDING,
        ListEntry.id < get_min_id(now - FETCH_TIMEOUT),
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
