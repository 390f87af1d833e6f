"""Pages of links: filters, search and four sort orders, each along an index.

Ids are in order of creation. A filter that leaves few links is evaluated first (`candidates`), so
that no page reads all links to find them. Sorting many links by clicks has two segments: links with
clicks, along the index of totals, then those without, by creation. So links need no row of totals,
and a list of all links needs no sorting.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
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
from refract.links.queries import candidates
from refract.links.queries.links import is_in_state
from refract.tags.grammar import slugify
from refract.tags.queries import find_shared_tags

MAX_QUERY_WORDS = 8
CLICK_WINDOW = 1_000
"""The most clicked links among which own ones are looked for first."""


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
    tags: tuple[str, ...] = ()
    q: str | None = None
    sort: LinkSort = LinkSort.CREATED
    created_after: datetime | None = None
    created_before: datetime | None = None
    visibility: Visibility | None = None


@dataclass(frozen=True, slots=True)
class _SortSegment:
    """A segment of a sort order: its columns, its condition, and the positions within it."""

    columns: Sequence[InstrumentedAttribute[Any] | ColumnElement[Any]]
    condition: ColumnElement[bool] | None = None
    joins_totals: bool = False  # needs the totals' row
    includes_unclicked: bool = False
    """Whether links without totals are included, as the last ones."""


@dataclass(frozen=True, slots=True)
class _LinkQuery:
    """A `LinkFilter` whose words and tag have been looked up."""

    caller: LinkCaller
    filters: LinkFilter
    now: datetime
    words: Sequence[str]
    tag_ids: Sequence[int]
    few: Sequence[int] | None = None
    """All links that can match, if they are few."""
    all_marked: bool = True
    """Whether all expired links are marked so, which a job does every minute."""


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

    At most three queries for the links, and one more for each filter. Raises `UnsupportedSort` for
    public links by clicks, because their order would reveal counts that only owners may see.
    """
    if filters.owner == OwnerFilter.PUBLIC and filters.sort in CLICK_SORTS:
        raise UnsupportedSort(sort=filters.sort)
    bound = [caller.user_id, caller.is_admin, asdict(filters)]
    position = cursors.decode(bound, cursor) if cursor else None
    tag_ids = await _find_tag_ids(session, filters.tags)
    if tag_ids is None:
        return Page([], None)
    words = fold_text(filters.q or "").split()[:MAX_QUERY_WORDS]
    query = _LinkQuery(caller, filters, now, words, tag_ids)
    query = replace(query, few=await _find_few(session, query))
    if filters.status == LinkState.EXPIRED and query.few is None:
        late = await candidates.find_late_ids(session, now)
        query = replace(query, all_marked=late == [])
    rows = await _read_rows(session, query, position, limit + 1) if query.few != [] else []
    page = cursors.build_page(bound, rows, limit, lambda row: _cursor_position(row, filters.sort))
    return Page([link for link, _ in page.items], page.next_cursor)


async def _find_few(session: ReadSession, query: _LinkQuery) -> Sequence[int] | None:
    """Return all links that can match, if an index shows that they are few."""
    for candidates_query in _list_candidate_queries(session, query):
        found = await candidates.find_few_links(session, candidates_query)
        if found is not None and query.filters.status == LinkState.EXPIRED:
            late = await candidates.find_late_ids(session, query.now)
            found = None if late is None else list({*found, *late})
        if found is not None and len(found) <= candidates.MAX_CANDIDATES:
            return found
    return None


def _list_candidate_queries(session: ReadSession, query: _LinkQuery) -> list[Select[int]]:
    """Return queries each of which finds all links that can match, by rising cost."""
    filters, own = query.filters, query.caller.user_id
    found: list[Select[int]] = []
    if filters.owner == OwnerFilter.ME:
        if filters.status is not None:
            found.append(candidates.select_own(own, filters.status))
        if filters.visibility is not None:
            found.append(candidates.select_own(own, visibility=filters.visibility))
        if not found and not query.tag_ids and (query.words or filters.sort in CLICK_SORTS):
            found.append(candidates.select_own(own))
    found += [candidates.select_tagged(tag_id) for tag_id in query.tag_ids]
    if filters.status == LinkState.ON_HOLD:
        found.append(candidates.select_held())
    if query.words and filters.owner in (OwnerFilter.ME, OwnerFilter.ALL):
        matching = candidates.select_matching(
            session, query.words, hosts=filters.owner == OwnerFilter.ALL
        )
        found += [] if matching is None else [matching]
    return found


async def _read_rows(
    session: ReadSession, query: _LinkQuery, position: Sequence[Any] | None, limit: int
) -> list[tuple[Link, Any]]:
    sort = query.filters.sort
    rows: list[tuple[Link, Any]] = []
    segments = _sort_segments(query)
    first = (
        len(segments) - 1 if position is not None and not position[0] and sort in CLICK_SORTS else 0
    )
    for number, segment in enumerate(segments[first:], start=first):
        resumed = position if number == first else None
        rows += await _read_segment(session, query, segment, resumed, limit - len(rows))
        if len(rows) >= limit:
            break
    return rows


def _sort_segments(query: _LinkQuery) -> list[_SortSegment]:
    """Return the segments, by the columns of owners' rows where these are read along an index."""
    sort, owns = query.filters.sort, query.filters.owner == OwnerFilter.ME and query.few is None
    id_column = LinkOwner.link_id if owns else Link.id
    if sort == LinkSort.CREATED:
        return [_SortSegment([id_column])]
    if sort == LinkSort.UPDATED:
        return [_SortSegment([LinkOwner.updated_at if owns else Link.updated_at, id_column])]
    column = LinkTotals.total_clicks if sort == LinkSort.CLICKS else LinkTotals.last_clicked_at
    has = LinkTotals.total_clicks > 0 if sort == LinkSort.CLICKS else column.is_not(None)
    if query.few is not None:
        known = func.nullif(column, 0) if sort == LinkSort.CLICKS else column
        columns = [known, Link.id]
        return [_SortSegment(columns, joins_totals=True, includes_unclicked=True)]
    never = ~select(LinkTotals.link_id).where(LinkTotals.link_id == Link.id, has).exists()
    return [
        _SortSegment([column, LinkTotals.link_id], has, joins_totals=True),
        _SortSegment([id_column], never),
    ]


def _build_query(query: _LinkQuery, segment: _SortSegment) -> Select[Any]:
    filters = query.filters
    statement: Select[Any] = select(Link, segment.columns[0])
    if segment.joins_totals:
        statement = statement.join(
            LinkTotals, LinkTotals.link_id == Link.id, isouter=segment.includes_unclicked
        )
    statement = _filter_by_owner(statement, query.caller, filters.owner)
    conditions = [] if filters.owner == OwnerFilter.ME else [is_visible_to(query.caller)]
    for tag_id in query.tag_ids:
        # Not by a join: SQLite would start from all links with the tag, and sort them.
        tagged = (LinkTag.link_id == Link.id, LinkTag.tag_id == tag_id)
        conditions.append(select(LinkTag.link_id).where(*tagged).exists())
    if query.few is not None:
        conditions.append(Link.id.in_(candidates.pad_ids(query.few)))
    else:
        conditions += _narrow(query)
    if segment.condition is not None:
        conditions.append(segment.condition)
    conditions.append(
        is_in_state(filters.status, query.now)
        if filters.status
        else Link.status != LinkState.DELETED
    )
    if filters.visibility is not None:
        stored, audience = filters.visibility.columns
        conditions += [
            Link.visibility == stored,
            Link.audience.is_(None) if audience is None else Link.audience == audience,
        ]
    if filters.created_after is not None:
        conditions.append(segment.columns[-1] >= get_min_id(filters.created_after))
    if filters.created_before is not None:
        conditions.append(segment.columns[-1] < get_min_id(filters.created_before))
    hosts = filters.owner == OwnerFilter.ALL
    conditions += [candidates.has_word(word, hosts=hosts) for word in query.words]
    return statement.where(*conditions)


def _narrow(query: _LinkQuery) -> list[ColumnElement[bool]]:
    """Return conditions that follow from the filters and have an index in the order of ids."""
    filters = query.filters
    has_status = filters.status is not None and query.all_marked
    if filters.owner != OwnerFilter.ME:
        is_expired = has_status and filters.status == LinkState.EXPIRED
        return [Link.status == LinkState.EXPIRED] if is_expired else []
    if filters.status is not None and has_status:
        return [candidates.is_copy_in_state(filters.status)]
    if filters.visibility is not None:
        return [LinkOwner.visibility == filters.visibility.columns[0]]
    return []


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
    query: _LinkQuery,
    segment: _SortSegment,
    position: Sequence[Any] | None,
    limit: int,
) -> list[tuple[Link, Any]]:
    """Return the next rows of a segment.

    Own links by clicks are looked for among the most clicked of all links first: those who own
    many links own some of these. Only if these are too few, all own links are sorted.
    """
    after = None if position is None else _is_after(segment, position)
    statement = _build_query(query, segment)
    order = [column.desc() for column in segment.columns]
    if segment.includes_unclicked:
        order.insert(0, segment.columns[0].is_(None).asc())
    statement = (statement if after is None else statement.where(after)).order_by(*order)
    found: Sequence[Any] = ()
    if segment.condition is not None and segment.joins_totals and _owns_many(query):
        top = select(LinkTotals.link_id).where(
            segment.condition, *([] if after is None else [after])
        )
        window = top.order_by(*order).limit(CLICK_WINDOW).subquery("top_links")
        narrowed = statement.join(window, window.c.link_id == LinkTotals.link_id)
        found = (await session.execute(narrowed.limit(limit))).all()
    if len(found) < limit:
        found = (await session.execute(statement.limit(limit))).all()
    return [(link, _get_cursor_value(query, segment, value)) for link, value in found]


def _owns_many(query: _LinkQuery) -> bool:
    return query.few is None and query.filters.owner == OwnerFilter.ME


def _get_cursor_value(query: _LinkQuery, segment: _SortSegment, value: Any) -> Any:
    """Return the sort value that a cursor holds: 0 or None for links without clicks."""
    if len(segment.columns) == 1 or value is None:
        return 0 if query.filters.sort == LinkSort.CLICKS else None
    return value


def _is_after(segment: _SortSegment, position: Sequence[Any]) -> ColumnElement[bool]:
    """Return the condition for rows after a position.

    The first bound follows from the rest, but lets every query planner start in the middle of
    the index.
    """
    if len(segment.columns) == 1:
        return and_(segment.columns[0] < position[-1])
    (first, second), (value, number) = segment.columns, position
    if segment.includes_unclicked:
        if not value:
            return and_(first.is_(None), second < number)
        return or_(first.is_(None), first < value, and_(first == value, second < number))
    return and_(first <= value, or_(first < value, second < number))


def _cursor_position(row: tuple[Link, Any], sort: LinkSort) -> tuple[Any, ...]:
    link, value = row
    return (link.id,) if sort == LinkSort.CREATED else (value, link.id)


async def _find_tag_ids(session: ReadSession, tags: Sequence[str]) -> list[int] | None:
    """Return the ids of tags, or None if one of them does not exist: then no link matches."""
    keys = {slugify(tag) for tag in tags}
    found = (await find_shared_tags(session, keys)) if keys else {}
    live = {key: tag.id for key, tag in found.items() if tag.deleted_at is None}
    return sorted(set(live.values())) if len(live) == len(keys) else None
