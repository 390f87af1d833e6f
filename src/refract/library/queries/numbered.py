"""Saved pages by offset with totals or after a position, for clients of other systems.

Words are found anywhere in a text, also combined by `or`, without the index of the library: a
user's own items are read one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, not_, or_, select, true
from sqlalchemy.orm import defer

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.core.pagination import build_after_clause
from refract.library.models import Item, ItemStatus, ItemTag, ItemType, SavedPage
from refract.tags.grammar import personal_key
from refract.tags.models import Tag


@dataclass(frozen=True, slots=True)
class PageWord:
    """Text that must occur in title, summary, notes, URL or a tag."""

    text: str


@dataclass(frozen=True, slots=True)
class PageTag:
    """A tag that a page must have."""

    name: str


@dataclass(frozen=True, slots=True)
class PageMark:
    """`unread`, or `untagged`."""

    name: str


@dataclass(frozen=True, slots=True)
class PageTerms:
    """Terms of which all must match, or with `is_any` one; with `is_none` no one."""

    terms: "Sequence[PageSearch]" = ()
    is_any: bool = False
    is_none: bool = False


PageSearch = PageWord | PageTag | PageMark | PageTerms


class PageSort(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    TITLE = "title"


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which pages of a user to list. Discarded items are never among them."""

    user_id: int
    search: PageSearch = PageTerms()
    archived: bool | None = False
    unread: bool | None = None
    favorite: bool | None = None
    types: Sequence[ItemType] = (ItemType.ARTICLE,)
    tag_id: int | None = None
    added_since: datetime | None = None
    modified_since: datetime | None = None
    sort: PageSort = PageSort.ADDED
    descending: bool = True


async def count_pages(session: ReadSession, filters: PageFilter) -> int:
    return await session.scalar(select(func.count()).where(*_build_conditions(filters))) or 0


async def load_pages(
    session: ReadSession, filters: PageFilter, offset: int, limit: int
) -> list[Item]:
    """Return some of the pages in order."""
    order: list[Any] = [_SORTS[filters.sort], Item.id]
    ordered = (part.desc() if filters.descending else part.asc() for part in order)
    found: Select[Any] = select(Item).where(*_build_conditions(filters)).order_by(*ordered)
    return list(await session.scalars(found.offset(offset).limit(limit)))


async def load_pages_after(
    session: ReadSession,
    filters: PageFilter,
    position: tuple[datetime, int] | None,
    limit: int,
) -> list[Item]:
    """Return pages by the time they were added, from the one after a position on."""
    columns = [Item.created_at, Item.id]
    found: Select[Any] = select(Item).where(*_build_conditions(filters))
    if position is not None:
        found = found.where(build_after_clause(columns, position, descending=filters.descending))
    ordered = (column.desc() if filters.descending else column.asc() for column in columns)
    return list(await session.scalars(found.order_by(*ordered).limit(limit)))


async def find_page(session: ReadSession, user_id: int, url_digest: str) -> Item | None:
    """Return the first item of a user with this page that is not discarded."""
    same = select(Item).where(
        Item.user_id == user_id,
        Item.url_digest == url_digest,
        Item.status != ItemStatus.DISCARDED,
    )
    found: Item | None = await session.scalar(same.order_by(Item.id).limit(1))
    return found


_SORTS: dict[PageSort, Any] = {
    PageSort.ADDED: Item.created_at,
    PageSort.MODIFIED: Item.updated_at,
    PageSort.TITLE: func.lower(func.coalesce(Item.title, Item.url)),
}


def _build_conditions(filters: PageFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        Item.user_id == filters.user_id,
        Item.status != ItemStatus.DISCARDED,
        Item.type.in_(filters.types),
        _build_search(filters.search, filters.user_id),
    ]
    if filters.archived is not None:
        conditions.append(Item.archived.is_(filters.archived))
    if filters.unread is not None:
        conditions.append(Item.unread.is_(filters.unread))
    if filters.favorite is not None:
        conditions.append(Item.favorite.is_(filters.favorite))
    if filters.tag_id is not None:
        tagged = select(ItemTag.item_id).where(ItemTag.tag_id == filters.tag_id)
        conditions.append(tagged.where(ItemTag.item_id == Item.id).exists())
    if filters.added_since is not None:
        conditions.append(Item.created_at > filters.added_since)
    if filters.modified_since is not None:
        conditions.append(Item.updated_at > filters.modified_since)
    return conditions


def _build_search(search: PageSearch, user_id: int) -> ColumnElement[bool]:
    match search:
        case PageWord(text):
            columns: list[Any] = [Item.title, Item.summary, Item.notes, Item.url]
            found = [
                func.lower(func.coalesce(column, "")).contains(text.lower(), autoescape=True)
                for column in columns
            ]
            named = Tag.key.contains(personal_key(text), autoescape=True)
            return or_(*found, _select_tags(user_id).where(named).exists())
        case PageTag(name):
            return _select_tags(user_id).where(Tag.key == personal_key(name)).exists()
        case PageMark("unread"):
            return Item.unread.is_(True)
        case PageMark():
            return not_(select(ItemTag.item_id).where(ItemTag.item_id == Item.id).exists())
        case PageTerms(terms, is_any, is_none):
            built = [_build_search(term, user_id) for term in terms]
            if not built:
                return true()
            both = or_(*built) if is_any else and_(*built)
            return not_(both) if is_none else both


def _select_tags(user_id: int) -> Select[int]:
    tags = select(ItemTag.item_id).join(Tag, Tag.id == ItemTag.tag_id)
    return tags.where(ItemTag.item_id == Item.id, Tag.space == user_id)


async def load_tag_names(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the names of the tags of each item, sorted."""
    found: dict[int, list[str]] = {item_id: [] for item_id in item_ids}
    for batch in iter_batches(item_ids):
        query = select(ItemTag.item_id, Tag.name).join(Tag, Tag.id == ItemTag.tag_id)
        for item_id, name in await session.execute(query.where(ItemTag.item_id.in_(batch))):
            found[item_id].append(name)
    return {item_id: sorted(names) for item_id, names in found.items()}


async def load_item_tags(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[Tag]]:
    """Return the tags of each item, by name."""
    found: dict[int, list[Tag]] = {item_id: [] for item_id in item_ids}
    for batch in iter_batches(item_ids):
        query = select(ItemTag.item_id, Tag).join(Tag, Tag.id == ItemTag.tag_id)
        rows = await session.execute(query.where(ItemTag.item_id.in_(batch)).order_by(Tag.name_key))
        for item_id, tag in rows:
            found[item_id].append(tag)
    return found


async def load_saved_pages(
    session: ReadSession, item_ids: Sequence[int], *, with_html: bool
) -> dict[int, SavedPage]:
    """Return what was fetched for items: without the long columns, or with the page itself."""
    left_out = [SavedPage.text, *([] if with_html else [SavedPage.html])]
    found: dict[int, SavedPage] = {}
    for batch in iter_batches(item_ids):
        query = select(SavedPage).options(*(defer(column, raiseload=True) for column in left_out))
        for page in await session.scalars(query.where(SavedPage.item_id.in_(batch))):
            found[page.item_id] = page
    return found


async def count_own_tags(session: ReadSession, user_id: int, q: str) -> int:
    """Return how many tags a user has whose name contains a text."""
    return await session.scalar(select(func.count()).where(*_match_own_tags(user_id, q))) or 0


async def load_own_tags(
    session: ReadSession, user_id: int, q: str, offset: int, limit: int
) -> list[Tag]:
    """Return some of a user's tags, by name."""
    found = select(Tag).where(*_match_own_tags(user_id, q)).order_by(Tag.name_key, Tag.id)
    return list(await session.scalars(found.offset(offset).limit(limit)))


def _match_own_tags(user_id: int, q: str) -> list[ColumnElement[bool]]:
    named = [Tag.key.contains(personal_key(q), autoescape=True)] if q else []
    return [Tag.space == user_id, Tag.deleted_at.is_(None), *named]
