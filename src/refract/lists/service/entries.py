"""Entries of drafts. Their positions run from 1 to n without a gap, under the list's lock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, update

from refract.core.db.session import WriteSession
from refract.core.errors import NothingToUndo
from refract.core.secrets import hash_credential
from refract.links.enums import FlagReason
from refract.lists import queries
from refract.lists.access import ListCaller
from refract.lists.errors import EntryNotFound, TooManyEntries
from refract.lists.models import FetchStatus, ListEntry, RemovedEntry
from refract.lists.schemas import MAX_ENTRIES, EntryPatch
from refract.lists.sections import (
    close_gap,
    find_section_id,
    load_sections,
    open_gap,
    store_sections,
)
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
        await record_change(session, caller, found, "entries_added", now)
    await session.flush()
    return added


def _build_entry(
    number: int, list_id: int, address: CheckedAddress, position: int, now: datetime
) -> ListEntry:
    return ListEntry(
        id=number,
        list_id=list_id,
        title_by_hand=False,
        description_by_hand=False,
        position=position,
        created_at=now,
        updated_at=now,
        **_build_address_fields(address, now),
    )


def _build_address_fields(address: CheckedAddress, now: datetime) -> dict[str, Any]:
    """Return the fields that depend on an entry's URL. Its page is yet to be fetched."""
    return {
        "link_id": address.link_id,
        "url": address.url,
        "href": address.href,
        "host": address.host,
        "normalized_url": address.normalized_url,
        "normalized_digest": hash_credential(address.normalized_url)[:32],
        "image": None,
        "fetch_status": FetchStatus.PENDING.value,
        "flagged": address.flag_reason is not None,
        "flag_reason": address.flag_reason,
        "checked_at": None if address.unchecked else now,
        "dangerous": False,
    }


async def edit_entry(
    session: WriteSession,
    caller: ListCaller,
    list_id: int,
    entry_id: int,
    changes: EntryPatch,
    now: datetime,
    address: CheckedAddress | None = None,
) -> ListEntry:
    """Change the given fields. From then on fetched metadata does not overwrite them.

    `address` is the checked URL of `changes`. If it is another one, its page is to be fetched, and
    texts that came from the old page are cleared.
    """
    found = await lock_draft(session, caller, list_id)
    entry = await _lock_entry(session, list_id, entry_id)
    given = changes.model_dump(exclude_unset=True)
    if address is not None and (address.href, address.link_id) != (entry.href, entry.link_id):
        _set_fields(entry, _build_address_fields(address, now))
        entry.title = entry.title if entry.title_by_hand else None
        entry.description = entry.description if entry.description_by_hand else None
    if "title" in given:
        entry.title, entry.title_by_hand = given["title"], True
    if "description" in given:
        entry.description, entry.description_by_hand = given["description"], True
    if given:
        entry.updated_at = now
        await record_change(session, caller, found, "entry_edited", now)
    await session.flush()
    return entry


async def refetch_entry(
    session: WriteSession, caller: ListCaller, list_id: int, entry_id: int, now: datetime
) -> ListEntry:
    """Mark an entry of a draft to be fetched again. It fills what is blank."""
    found = await lock_draft(session, caller, list_id)
    entry = await _lock_entry(session, list_id, entry_id)
    entry.fetch_status = FetchStatus.PENDING.value
    # An emptied title is no title that someone wrote: now it is wanted.
    entry.title_by_hand = entry.title_by_hand and entry.title is not None
    entry.updated_at = now
    await record_change(session, caller, found, "entry_fetched", now)
    await session.flush()
    return entry


async def _lock_entry(session: WriteSession, list_id: int, entry_id: int) -> ListEntry:
    locked = select(ListEntry).where(ListEntry.id == entry_id, ListEntry.list_id == list_id)
    entry = await session.scalar(locked.with_for_update().execution_options(populate_existing=True))
    if entry is None:
        raise EntryNotFound
    return entry


def _set_fields(entry: ListEntry, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(entry, name, value)


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
    sections = load_sections(found)
    kept["section_id"] = find_section_id(sections, entry.position)
    store_sections(found, close_gap(sections, entry.position))
    await session.execute(delete(RemovedEntry).where(RemovedEntry.id == entry_id))
    session.add(RemovedEntry(id=entry_id, list_id=list_id, removed_at=now, fields=kept))
    await session.execute(
        delete(ListEntry)
        .where(ListEntry.id == entry_id)
        .execution_options(synchronize_session=False)
    )
    await _shift_entries(session, list_id, entry.position + 1, -1)
    session.expunge(entry)
    await record_change(session, caller, found, "entry_removed", now)
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
    section_id = fields.pop("section_id", None)
    store_sections(found, open_gap(load_sections(found), fields["position"], section_id))
    entry = ListEntry(id=entry_id, list_id=list_id, updated_at=now, **fields)
    session.add(entry)
    await session.delete(removed)
    await record_change(session, caller, found, "entry_restored", now)
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
