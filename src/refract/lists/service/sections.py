"""Sections of drafts: headings between the entries."""

from dataclasses import replace
from datetime import datetime

from refract.core.db.session import WriteSession
from refract.lists import queries
from refract.lists.access import ListCaller
from refract.lists.errors import SectionNotFound, TooManySections
from refract.lists.models import LinkList
from refract.lists.schemas import MAX_SECTIONS, SectionCreate, SectionPatch
from refract.lists.sections import ListSection, load_sections, store_sections
from refract.lists.service.drafts import lock_draft, record_change
from refract.names.service import Namespace


async def add_section(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int, new: SectionCreate
) -> ListSection:
    """Add a heading, by default below all entries: the next ones that are added belong to it."""
    found = await lock_draft(session, caller, list_id)
    sections = load_sections(found)
    if len(sections) >= MAX_SECTIONS:
        raise TooManySections(limit=MAX_SECTIONS)
    end = 1 + await queries.count_entries(session, list_id)
    position = end if new.position is None else min(new.position, end)
    section = ListSection(space.ids.next_id(), new.title, position)
    store_sections(found, [*sections, section])
    await record_change(session, caller, found, "section_added", space.clock.now())
    await session.flush()
    return section


async def edit_section(
    session: WriteSession,
    caller: ListCaller,
    list_id: int,
    section_id: int,
    changes: SectionPatch,
    now: datetime,
) -> ListSection:
    """Rename a section, or move its heading."""
    found = await lock_draft(session, caller, list_id)
    sections = load_sections(found)
    before = _find_section(sections, section_id)
    end = 1 + await queries.count_entries(session, list_id)
    after = replace(
        before,
        title=before.title if changes.title is None else changes.title,
        position=before.position if changes.position is None else min(changes.position, end),
    )
    if after != before:
        changed = [after if section is before else section for section in sections]
        await _save_sections(session, caller, found, changed, "section_edited", now)
    await session.flush()
    return after


async def remove_section(
    session: WriteSession, caller: ListCaller, list_id: int, section_id: int, now: datetime
) -> ListSection:
    """Remove a heading. Its entries stay and belong to the section above."""
    found = await lock_draft(session, caller, list_id)
    sections = load_sections(found)
    removed = _find_section(sections, section_id)
    left = [section for section in sections if section is not removed]
    await _save_sections(session, caller, found, left, "section_removed", now)
    await session.flush()
    return removed


def _find_section(sections: list[ListSection], section_id: int) -> ListSection:
    for section in sections:
        if section.id == section_id:
            return section
    raise SectionNotFound


async def _save_sections(
    session: WriteSession,
    caller: ListCaller,
    found: LinkList,
    sections: list[ListSection],
    action: str,
    now: datetime,
) -> None:
    store_sections(found, sections)
    await record_change(session, caller, found, action, now)
