"""Totals of a library: by kind, state, site, tag and age."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Executable, case, func, select

from refract.core.db.session import ReadSession
from refract.library.models import Item, ItemStatus, ItemType
from refract.tags.models import Tag

_TOP = 10


@dataclass(frozen=True, slots=True)
class LibraryTotals:
    """How many items a user has. Discarded ones are not counted."""

    links: int
    notes: int
    favorites: int
    archived: int
    imported: int
    added_in_week: int
    added_in_month: int
    added_in_year: int
    tags: int
    sites: Sequence[tuple[str, int]]
    top_tags: Sequence[tuple[str, int]]


async def load_library_totals(session: ReadSession, user_id: int, now: datetime) -> LibraryTotals:
    """Return the totals of a user's library by four queries, two of which read all items."""
    links, notes, favorites, archived, imported, *ages = await _count_items(session, user_id, now)
    mine = (Tag.space == user_id, Tag.deleted_at.is_(None))
    top_tags = (
        select(Tag.name, Tag.usage_count)
        .where(*mine, Tag.usage_count > 0)
        .order_by(Tag.usage_count.desc(), Tag.name_key)
        .limit(_TOP)
    )
    amount = func.count()
    sites = (
        select(Item.site, amount)
        .where(*_match_own_items(user_id), Item.site.is_not(None))
        .group_by(Item.site)
        .order_by(amount.desc(), Item.site)
        .limit(_TOP)
    )
    return LibraryTotals(
        links=links,
        notes=notes,
        favorites=favorites,
        archived=archived,
        imported=imported,
        added_in_week=ages[0],
        added_in_month=ages[1],
        added_in_year=ages[2],
        tags=await session.scalar(select(func.count()).select_from(Tag).where(*mine)) or 0,
        sites=await _load_top(session, sites),
        top_tags=await _load_top(session, top_tags),
    )


async def _count_items(session: ReadSession, user_id: int, now: datetime) -> list[int]:
    conditions = [
        Item.type == ItemType.ARTICLE,
        Item.type == ItemType.NOTE,
        Item.favorite.is_(True),
        Item.archived.is_(True),
        Item.import_id.is_not(None),
        *(Item.created_at > now - timedelta(days=days) for days in (7, 30, 365)),
    ]
    sums = (func.sum(case((condition, 1), else_=0)) for condition in conditions)
    row = (await session.execute(select(*sums).where(*_match_own_items(user_id)))).one()
    return [int(number or 0) for number in row]


def _match_own_items(user_id: int) -> list[ColumnElement[bool]]:
    return [Item.user_id == user_id, Item.status != ItemStatus.DISCARDED]


async def _load_top(session: ReadSession, query: Executable) -> list[tuple[str, int]]:
    rows = await session.execute(query)
    return [(str(name), int(number)) for name, number in rows]
