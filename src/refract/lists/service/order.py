"""The order of a draft's entries and sections, under the list's lock."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select, update

from refract.core.db.session import WriteSession
from refract.lists.access import ListCaller
from refract.lists.errors import EntryNotFound, OrderMismatch, SectionNotFound
from refract.lists.models import ListEntry
from refract.lists.sections import (
    ListItem,
    arrange_items,
    load_sections,
    place_sections,
    store_sections,
)
from refract.lists.service.drafts import lock_draft, record_change


async def move_item(
    session: WriteSession, caller: ListCaller, list_id: int, item: ListItem, by: int, now: datetime
) -> None:
    """Move an entry or a section up (negative) or down, at most to the end of the list."""
    found = await lock_draft(session, caller, list_id)
    query = select(ListEntry.id).where(ListEntry.list_id == list_id).order_by(ListEntry.position)
    items = arrange_items(list(await session.scalars(query)), load_sections(found))
    if item not in items:
        raise SectionNotFound if item.is_section else EntryNotFound
    place = items.index(item)
    items.insert(max(0, min(len(items), place + by)), items.pop(place))
    await arrange_list(session, caller, list_id, items, now)


async def arrange_list(
    session: WriteSession,
    caller: ListCaller,
    list_id: int,
    items: Sequence[ListItem],
    now: datetime,
) -> None:
    """Set the order, which must name each entry and each section once."""
    found = await lock_draft(session, caller, list_id)
    sections = load_sections(found)
    placed = place_sections(items, sections)
    if placed is None:
        raise OrderMismatch
    entry_ids = [item.id for item in items if not item.is_section]
    is_moved = await _place_entries(session, list_id, entry_ids)
    if is_moved or placed != sections:
        store_sections(found, placed)
        await record_change(session, caller, found, "reordered", now)
    await session.flush()


async def reorder_entries(
    session: WriteSession,
    caller: ListCaller,
    list_id: int,
    entry_ids: Sequence[int],
    now: datetime,
    section_positions: Mapping[int, int] | None = None,
) -> None:
    """Set the order of the entries, and the positions of the sections unless they stay."""
    found = await lock_draft(session, caller, list_id)
    sections = load_sections(found)
    if section_positions is not None:
        if sorted(section_positions) != sorted(section.id for section in sections):
            raise OrderMismatch
        sections = sorted(
            (replace(section, position=section_positions[section.id]) for section in sections),
            key=lambda section: section.position,
        )
    items = arrange_items(entry_ids, sections)
    await arrange_list(session, caller, list_id, items, now)


async def _place_entries(session: WriteSession, list_id: int, entry_ids: Sequence[int]) -> bool:
    """Set the positions of all entries. Return whether one of them has moved.

    Raises `OrderMismatch` unless each is named once: otherwise the client saw an older list.
    """
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
    return bool(moved)
