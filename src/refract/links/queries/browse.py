"""Pages of links: filters, search and four sort orders, each along an index.

Ids are in order of creation. Sorting by clicks has two segments: links with clicks, along the index
of totals, then those without, by creation. So links need no row of totals, and a list of all links
needs no sorting.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.session import ReadSession
from refract.core.ids import get_min_id
from refract.core.pagination import CursorCodec, Page
from refract.core.text import fold_text
from refract.links.access import LinkCaller, is_visible_to
from refract.links.errors import UnsupportedSort
from refract.links.models import (
    Link,
    LinkOwner,
    LinkShare,
    LinkState,
    LinkTag,
    LinkTotals,
    Visibility,
)
from refract.links.queries.links import is_in_state
from refract.tags.grammar import slugify
from refract.tags.queries import find_shared_tags

MAX_QUERY_WORDS = 8


class LinkSort(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    CLICKS = "clicks"
    LAST_CLICK = "last_click"


class OwnerFilter(StrEnum):
    ME = "me"
    SHARED = "shared"
    PUBLIC = "public"
    ALL = "all"  # administrators only


CLICK_SORTS = (LinkSort.CLICKS, LinkSort.LAST_CLICK)


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Which links to list, and how to sort them. Without a state, all but deleted links."""

    owner: OwnerFilter = OwnerFilter.ME
    status: LinkState | None = None
    tag: str | None = None
    q: str | None = None
    sort: LinkSort = LinkSort.CREATED
    created_after: datetime | None = None
    created_before: datetime | None = None
    visibility: Visibility | None = None


@dataclass(frozen=True, slots=True)
class _SortSegment:
    """A segment of a sort order: its columns, its condition, and the positions within it."""

    columns: Sequence[InstrumentedAttribute[Any]]
    condition: ColumnElement[bool] | None = None
    joins_totals: bool = False  # needs the totals' row


async def load_links_page(
    session: ReadSession,
    cursors: CursorCodec,
    caller: LinkCaller,
    filters: LinkFilter,
    now: datetime,
    *,
    limit: int,
    cursor: str | None,
) -> Page[Link]:
    """Return a page of links, newest or most first.

    At most two queries for the links, and one more with a tag. Raises `UnsupportedSort` for
    public links by clicks, because their order would reveal counts that only owners may see.
    """
    if filters.owner == OwnerFilter.PUBLIC and filters.sort in CLICK_SORTS:
        raise UnsupportedSort(sort=filters.sort)
    bound = [caller.user_id, caller.is_admin, asdict(filters)]
    position = cursors.decode(bound, cursor) if cursor else None
    tag_id = await _find_tag_id(session, filters.tag)
    if filters.tag is not None and tag_id is None:
        return Page([], None)
    rows: list[tuple[Link, Any]] = []
    parts = _sort_segments(filters.sort)
    first = (
        len(parts) - 1
        if position is not None and not position[0] and filters.sort in CLICK_SORTS
        else 0
    )
    for number, part in enumerate(parts[first:], start=first):
        resumed = position if number == first else None
        query = _build_query(part, caller, filters, now, tag_id)
        rows += await _read_segment(
            session, query, part, resumed, limit + 1 - len(rows), filters.sort
        )
        if len(rows) > limit:
            break
    page = cursors.build_page(bound, rows, limit, lambda row: _cursor_position(row, filters.sort))
    return Page([link for link, _ in page.items], page.next_cursor)


def _sort_segments(sort: LinkSort) -> list[_SortSegment]:
    clicked = LinkTotals.total_clicks > 0
    if sort == LinkSort.CREATED:
        return [_SortSegment([Link.id])]
    if sort == LinkSort.UPDATED:
        return [_SortSegment([Link.updated_at, Link.id])]
    column = LinkTotals.total_clicks if sort == LinkSort.CLICKS else LinkTotals.last_clicked_at
    has = clicked if sort == LinkSort.CLICKS else LinkTotals.last_clicked_at.is_not(None)
    never = ~select(LinkTotals.link_id).where(LinkTotals.link_id == Link.id, has).exists()
    return [
        _SortSegment([column, LinkTotals.link_id], has, joins_totals=True),
        _SortSegment([Link.id], never),
    ]


def _build_query(
    segment: _SortSegment,
    caller: LinkCaller,
    filters: LinkFilter,
    now: datetime,
    tag_id: int | None,
) -> Select[Any]:
    query: Select[Any] = select(Link, segment.columns[0])
    if segment.joins_totals:
        query = query.join(LinkTotals, LinkTotals.link_id == Link.id)
    query = _filter_by_owner(query, caller, filters.owner)
    if tag_id is not None:
        query = query.join(LinkTag, and_(LinkTag.link_id == Link.id, LinkTag.tag_id == tag_id))
    conditions = [is_visible_to(caller)]
    if segment.condition is not None:
        conditions.append(segment.condition)
    conditions.append(
        is_in_state(filters.status, now) if filters.status else Link.status != LinkState.DELETED
    )
    if filters.visibility is not None:
        stored, audience = filters.visibility.columns
        conditions += [
            Link.visibility == stored,
            Link.audience.is_(None) if audience is None else Link.audience == audience,
        ]
    if filters.created_after is not None:
        conditions.append(Link.id >= get_min_id(filters.created_after))
    if filters.created_before is not None:
        conditions.append(Link.id < get_min_id(filters.created_before))
    conditions += [
        _has_word(word, filters.owner)
        for word in fold_text(filters.q or "").split()[:MAX_QUERY_WORDS]
    ]
    return query.where(*conditions)


def _has_word(word: str, owner: OwnerFilter) -> ColumnElement[bool]:
    """Match a word.

    Among all links it also matches the host in ASCII, as reports and blocklists have it.
    """
    written = Link.search_text.contains(word, autoescape=True)
    if owner != OwnerFilter.ALL:
        return written
    return or_(written, Link.destination_host.contains(word, autoescape=True))


def _filter_by_owner(query: Select[Any], caller: LinkCaller, owner: OwnerFilter) -> Select[Any]:
    if owner == OwnerFilter.ME:
        return query.join(
            LinkOwner, and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == caller.user_id)
        )
    if owner == OwnerFilter.SHARED:
        return query.join(
            LinkShare, and_(LinkShare.link_id == Link.id, LinkShare.user_id == caller.user_id)
        )
    if owner == OwnerFilter.PUBLIC:
        return query.where(Link.visibility == Visibility.PUBLIC)
    return query


async def _read_segment(
    session: ReadSession,
    query: Select[Any],
    segment: _SortSegment,
    position: Sequence[Any] | None,
    limit: int,
    sort: LinkSort,
) -> list[tuple[Link, Any]]:
    if position is not None:
        query = query.where(_is_after(segment.columns, position[-len(segment.columns) :]))
    rows = await session.execute(
        query.order_by(*(column.desc() for column in segment.columns)).limit(limit)
    )
    value = (
        (lambda found: found)
        if len(segment.columns) > 1
        else (lambda _found: 0 if sort == LinkSort.CLICKS else None)
    )
    return [(link, value(found)) for link, found in rows]


def _is_after(
    columns: Sequence[InstrumentedAttribute[Any]], position: Sequence[Any]
) -> ColumnElement[bool]:
    """Return the condition for rows after a position.

    The first bound follows from the rest, but lets every query planner start in the middle of
    the index.
    """
    if len(columns) == 1:
        return and_(columns[0] < position[0])
    (first, second), (value, number) = columns, position
    return and_(first <= value, or_(first < value, second < number))


def _cursor_position(row: tuple[Link, Any], sort: LinkSort) -> tuple[Any, ...]:
    link, value = row
    return (link.id,) if sort == LinkSort.CREATED else (value, link.id)


async def _find_tag_id(session: ReadSession, tag: str | None) -> int | None:
    if tag is None:
        return None
    key = slugify(tag)
    found = (await find_shared_tags(session, [key])).get(key)
    return None if found is None or found.deleted_at is not None else found.id
