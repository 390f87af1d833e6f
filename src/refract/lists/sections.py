"""Headings between the entries of a list. Pure.

A section begins before the entry at its position. Positions run from 1 to the number of entries
plus one: there the section has no entries yet. Sections with the same position keep their order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from refract.lists.models import LinkList


@dataclass(frozen=True, slots=True)
class ListSection:
    """A heading, and the position of the first entry below it."""

    id: int
    title: str
    position: int


@dataclass(frozen=True, slots=True)
class ListItem:
    """An entry or a section in the order of a list."""

    id: int
    is_section: bool = False


def load_sections(found: LinkList) -> list[ListSection]:
    return [ListSection(**fields) for fields in found.sections or ()]


def store_sections(found: LinkList, sections: Iterable[ListSection]) -> None:
    """Store sections in the order of their positions."""
    ordered = sorted(sections, key=lambda section: section.position)
    stored: list[dict[str, Any]] = [asdict(section) for section in ordered]
    found.sections = stored or None


def find_section_id(sections: Iterable[ListSection], position: int) -> int | None:
    """Return the id of the section that the entry at a position belongs to, or None."""
    above = [section.id for section in sections if section.position <= position]
    return above[-1] if above else None


def close_gap(sections: Iterable[ListSection], position: int) -> list[ListSection]:
    """Return the sections after the entry at a position was removed."""
    return [
        replace(section, position=section.position - (section.position > position))
        for section in sections
    ]


def open_gap(
    sections: Sequence[ListSection], position: int, section_id: int | None
) -> list[ListSection]:
    """Return the sections after an entry was inserted at a position into a section.

    If the section is gone, the entry belongs to the one whose place it takes.
    """
    ids = [section.id for section in sections]
    last = ids.index(section_id) if section_id in ids else -1
    first_moved = position if section_id is None or last >= 0 else position + 1
    return [
        replace(
            section,
            position=section.position + (place > last and section.position >= first_moved),
        )
        for place, section in enumerate(sections)
    ]


def arrange_items(entry_ids: Sequence[int], sections: Iterable[ListSection]) -> list[ListItem]:
    """Return entries and sections in one order."""
    items: list[ListItem] = []
    waiting = list(sections)
    for position, entry_id in enumerate(entry_ids, 1):
        while waiting and waiting[0].position <= position:
            items.append(ListItem(waiting.pop(0).id, is_section=True))
        items.append(ListItem(entry_id))
    return items + [ListItem(section.id, is_section=True) for section in waiting]


def place_sections(
    items: Iterable[ListItem], sections: Iterable[ListSection]
) -> list[ListSection] | None:
    """Return the sections in their new places, or None if the order lacks or repeats one."""
    by_id = {section.id: section for section in sections}
    placed: list[ListSection] = []
    position = 1
    for item in items:
        if not item.is_section:
            position += 1
        elif (section := by_id.pop(item.id, None)) is None:
            return None
        else:
            placed.append(replace(section, position=position))
    return None if by_id else placed
