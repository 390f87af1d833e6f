"""Pages of links: filters, search and four sort orders, each along an index.

A filter that leaves few links is evaluated first (`candidates`), so that no page reads all links to
find them: their ids are sorted, then the links of a page are loaded. What an index of copies does
not have yet is sorted in the same way, and merged into the page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    literal,
    null,
    select,
)

from refract.core.clock import EPOCH
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.core.ids import get_min_link_id
from refract.core.pagination import CursorCodec, Page
from refract.core.text import fold_text
from refract.domains.hosts import to_other_host
from refract.links.access import LinkCaller, is_owned_by, is_shared_with, is_visible_to
from refract.links.enums import LinkState, Visibility
from refract.links.errors import UnsupportedSort
from refract.links.models import Link, LinkOwner, LinkShare, LinkTag, LinkTeam, LinkTotals
from refract.links.queries import candidates
from refract.links.queries.links import is_in_state
from refract.links.queries.ordering import (
    CLICK_SORTS,
    LinkRow,
    LinkSort,
    SortColumn,
    SortColumns,
    get_click_column,
    get_click_value,
    get_position,
    has_clicks,
    merge_rows,
    sort_keys,
)
from refract.tags.grammar import slugify
from refract.tags.queries import find_shared_tags
from refract.teams.queries import find_team_id

MAX_QUERY_WORDS = 8


class OwnerFilter(StrEnum):
    ME = "me"
    SHARED = "shared"
    PUBLIC = "public"
    ALL = "all"  # administrators only


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
    team: str | None = None
    """The handle of a team that owns the links."""
    domain: str | None = None
    """The host of the domain on which they live, empty for the default domain."""

    def on_domain(self, public_url: str, host: str | None) -> "LinkFilter":
        """Return the same filter for a domain in any spelling of its host; no host means all."""
        return replace(self, domain=(to_other_host(public_url, host) or "") if host else None)


@dataclass(frozen=True, slots=True)
class _LinkQuery:
    """A `LinkFilter` whose words and tag have been looked up, and how to find its links."""

    caller: LinkCaller
    filters: LinkFilter
    now: datetime
    words: Sequence[str]
    tag_ids: Sequence[int]
    team_id: int | None = None
    few: Select[int] | None = None
    """All links that can match, if they are few."""
    extra_ids: Sequence[int] = ()
    """Links that the copies do not lead to yet, or not at all."""
    knows_late: bool = True
    """Whether all expired links are marked so, or among the extra ones."""
    knows_owners: bool = True
    """Whether all clicked links have the copy of their owner, or are among the extra ones."""

    @property
    def is_own(self) -> bool:
        return self.filters.owner == OwnerFilter.ME

    @property
    def has_range(self) -> bool:
        return bool(self.filters.created_after or self.filters.created_before)


@dataclass(frozen=True, slots=True)
class _LinkKeys:
    """A query of the ids of links, and the columns of its order."""

    statement: Select[Any]
    columns: SortColumns


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

    At most four queries for the links, two more for words, and one more for each filter. Raises
    `UnsupportedSort` for public links by clicks, because their order would reveal counts that only
    owners may see.
    """
    if filters.owner == OwnerFilter.PUBLIC and filters.sort in CLICK_SORTS:
        raise UnsupportedSort(sort=filters.sort)
    bound = [caller.user_id, caller.is_admin, asdict(filters)]
    position = cursors.decode(bound, cursor) if cursor else None
    looked_up = await _look_up(session, caller, filters, now)
    if looked_up is None:
        return Page([], None)
    rows = None
    if _may_be_among_newest(looked_up):
        rows = await _read_newest(session, looked_up, position, limit + 1)
    if rows is None:
        rows = await _read_planned(session, await _plan(session, looked_up), position, limit + 1)
    page = cursors.build_page(bound, rows, limit, lambda row: get_position(row, filters.sort))
    return Page([link for link, _ in page.items], page.next_cursor)


async def _read_planned(
    session: ReadSession, query: _LinkQuery, position: Sequence[Any] | None, limit: int
) -> list[LinkRow]:
    if query.few is not None:
        rows = await _read_few(session, query, query.few, position, limit)
    else:
        rows = await _read_along_index(session, query, position, limit)
    if query.extra_ids:
        extra = candidates.select_ids(query.extra_ids)
        others = await _read_few(session, query, extra, position, limit)
        rows = merge_rows(rows, others, limit)
    return rows


async def select_matching(
    session: ReadSession, caller: LinkCaller, filters: LinkFilter, now: datetime, limit: int
) -> Select[Any] | None:
    """Select id and state of the newest links that a filter finds, in any state.

    None if no link can match. At most as many queries as `load_links_page` needs to plan a page.
    """
    anywhere = replace(filters, status=None, sort=LinkSort.CREATED)
    looked_up = await _look_up(session, caller, anywhere, now)
    if looked_up is None:
        return None
    query = await _plan(session, looked_up)
    state = case(*((is_in_state(state, now), literal(state.value)) for state in LinkState))
    statement = select(Link.id.label("link_id"), state.label("state"))
    order: SortColumn = Link.id
    if query.few is not None:
        few = query.few.limit(candidates.MAX_CANDIDATES + 1).subquery("few")
        statement = statement.join(few, few.c[0] == Link.id)
    elif query.is_own:
        own = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == caller.user_id)
        statement, order = statement.join(LinkOwner, own), LinkOwner.link_id
    statement = statement.where(*_build_conditions(query, any_state=True))
    return statement.order_by(order.desc()).limit(limit)


async def _look_up(
    session: ReadSession, caller: LinkCaller, filters: LinkFilter, now: datetime
) -> _LinkQuery | None:
    """Look up the tags and the team of a filter. None if one of them does not exist."""
    tag_ids = await _find_tag_ids(session, filters.tags)
    team_id = await find_team_id(session, filters.team) if filters.team else None
    if tag_ids is None or (filters.team and team_id is None):
        return None
    words = fold_text(filters.q or "").split()[:MAX_QUERY_WORDS]
    return _LinkQuery(caller, filters, now, words, tag_ids, team_id)


async def _plan(session: ReadSession, query: _LinkQuery) -> _LinkQuery:
    """Find out whether few links can match, and which links the copies do not lead to."""
    late: Sequence[int] | None = ()
    if query.filters.status == LinkState.EXPIRED:
        late = await candidates.find_late_ids(session, query.now)
        query = replace(query, knows_late=late is not None, extra_ids=late or ())
    if _is_in_order(query):
        return query
    for found in (*_list_group_candidates(query), *_list_candidates(query)):
        if await candidates.are_few(session, found):
            return replace(query, few=found)
    if query.is_own and (query.tag_ids or query.filters.sort in CLICK_SORTS):
        query = await _plan_by_owner(session, query)
    if query.few is None and query.words:
        query = replace(query, few=await candidates.find_matching(session, query.words))
    return query


async def _plan_by_owner(session: ReadSession, query: _LinkQuery) -> _LinkQuery:
    """Use the copies of owners in tags and totals, if few links are without them."""
    ids = await candidates.find_ids_without_copies(session, query.caller.user_id)
    if ids is None:
        return replace(query, knows_owners=False)
    query = replace(query, extra_ids=[*query.extra_ids, *ids])
    for tag_id in query.tag_ids:
        tagged = candidates.select_tagged(tag_id, query.caller.user_id)
        if await candidates.are_few(session, tagged):
            return replace(query, few=tagged)
    return query


def _is_in_order(query: _LinkQuery) -> bool:
    """Return whether an index has exactly the links of a filter, in the order of the list."""
    filters = query.filters
    if filters.sort != LinkSort.CREATED or query.words or query.tag_ids or query.team_id:
        return False
    if filters.domain:
        return False
    if filters.status == LinkState.ON_HOLD:
        return False
    return filters.status is None or filters.visibility is None


def _list_group_candidates(query: _LinkQuery) -> list[Select[int]]:
    """Return queries that find all links of the team and of the domain of a filter."""
    found: list[Select[int]] = []
    if query.team_id is not None:
        found.append(candidates.select_of_team(query.team_id))
    if query.filters.domain:
        found.append(candidates.select_on_domain(query.filters.domain))
    return [_narrow_range(query, candidate) for candidate in found]


def _list_candidates(query: _LinkQuery) -> list[Select[int]]:
    """Return queries each of which finds all links that can match."""
    filters, own = query.filters, query.caller.user_id
    found: list[Select[int]] = []
    if query.is_own:
        if filters.status is not None and query.knows_late:
            found.append(candidates.select_own(own, filters.status))
        if filters.visibility is not None:
            found.append(candidates.select_own(own, visibility=filters.visibility))
        if not found:
            found.append(candidates.select_own(own))
    elif filters.owner == OwnerFilter.SHARED:
        found.append(candidates.select_shared(own))
    elif filters.status in (LinkState.DISABLED, LinkState.EXPIRED, LinkState.DELETED):
        found.append(candidates.select_in_state(filters.status))
    elif query.has_range:
        found.append(candidates.select_all())
    found = [_narrow_range(query, candidate) for candidate in found]
    if not query.is_own:
        found += [candidates.select_tagged(tag_id) for tag_id in query.tag_ids]
    if filters.status == LinkState.ON_HOLD:
        found.append(candidates.select_held())
    return found


def _narrow_range(query: _LinkQuery, found: Select[int]) -> Select[int]:
    return found.where(*_build_range(query.filters, found.selected_columns[0]))


def _build_range(filters: LinkFilter, link_id: SortColumn) -> list[ColumnElement[bool]]:
    """Return the conditions for the time of creation, which is inside the id."""
    conditions: list[ColumnElement[bool]] = []
    if filters.created_after is not None:
        conditions.append(link_id >= get_min_link_id(filters.created_after))
    if filters.created_before is not None:
        conditions.append(link_id < get_min_link_id(filters.created_before))
    return conditions


def _may_be_among_newest(query: _LinkQuery) -> bool:
    """Return whether to look for words in the newest links before an index finds all of them.

    An index collects all links with a frequent word before it returns the first.
    """
    filters = query.filters
    is_late = filters.status == LinkState.EXPIRED
    is_grouped = bool(query.tag_ids or query.team_id or filters.domain)
    return bool(query.words) and filters.sort == LinkSort.CREATED and not (is_late or is_grouped)


async def _read_newest(
    session: ReadSession, query: _LinkQuery, position: Sequence[Any] | None, limit: int
) -> list[LinkRow] | None:
    """Return the page if it is among the first `MAX_CANDIDATES` links of the list, or None."""
    keys = _select_keys(query)
    link_id = keys.columns.link_id
    in_order = _select_in_order(query).order_by(link_id.desc())
    if position is not None:
        in_order = in_order.where(keys.columns.is_after(position))
    last = await session.scalar(in_order.offset(candidates.MAX_CANDIDATES).limit(1))
    if last is not None:
        keys = replace(keys, statement=keys.statement.where(link_id > last))
    rows = await _read_keys(session, keys, position, limit)
    return rows if last is None or len(rows) == limit else None


async def _read_few(
    session: ReadSession,
    query: _LinkQuery,
    few: Select[int],
    position: Sequence[Any] | None,
    limit: int,
) -> list[LinkRow]:
    """Sort the ids of candidates, and load links by these until the page is full."""
    keys = _sort_few(query, few)
    rows: list[LinkRow] = []
    wanted = limit
    while len(rows) < limit:
        statement = _load_by_keys(keys, position, wanted, _build_conditions(query))
        found = sort_keys(await session.execute(statement))
        rows += [(link, value) for _, value, link in found if link is not None]
        if len(found) < wanted:
            break
        link_id, value, _ = found[-1]
        position = [link_id] if query.filters.sort == LinkSort.CREATED else [value, link_id]
        wanted *= 4
    return rows[:limit]


def _sort_few(query: _LinkQuery, few: Select[int]) -> _LinkKeys:
    # The limit changes nothing: it keeps query planners from starting elsewhere.
    found = few.limit(candidates.MAX_CANDIDATES + 1).subquery("few")
    link_id, sort = found.c[0], query.filters.sort
    value: SortColumn | None = None
    statement: Select[Any] = select(found)
    if query.is_own:
        own = and_(LinkOwner.link_id == link_id, LinkOwner.user_id == query.caller.user_id)
        statement = statement.join(LinkOwner, own)
        value = LinkOwner.updated_at if sort == LinkSort.UPDATED else None
    else:
        is_public = query.filters.owner == OwnerFilter.PUBLIC
        if is_public or sort == LinkSort.UPDATED:
            statement = statement.join(Link, Link.id == link_id)
            value = Link.updated_at if sort == LinkSort.UPDATED else None
        if is_public:  # otherwise one statement per few of the caller's own links
            statement = statement.where(Link.visibility == Visibility.PUBLIC)
    if sort in CLICK_SORTS:
        statement = statement.outerjoin(LinkTotals, LinkTotals.link_id == link_id)
        value = get_click_value(sort)
    return _LinkKeys(statement, SortColumns(value, link_id, nulls_last=sort in CLICK_SORTS))


def _load_by_keys(
    keys: _LinkKeys,
    position: Sequence[Any] | None,
    limit: int | BindParameter[int],
    conditions: Sequence[ColumnElement[bool]] = (),
) -> Select[Any]:
    """Select the first ids after a position with their sort values and links, in any order.

    There is no link where one does not meet the conditions.
    """
    columns = keys.columns
    value = null() if columns.value is None else columns.value
    statement = keys.statement.with_only_columns(
        columns.link_id.label("link_id"), value.label("value")
    )
    if position is not None:
        statement = statement.where(columns.is_after(position))
    first = statement.order_by(*columns.order).limit(limit).subquery("first")
    loaded = select(first.c.link_id, first.c.value, Link)
    return loaded.outerjoin(Link, and_(Link.id == first.c.link_id, *conditions))


def _build_conditions(query: _LinkQuery, *, any_state: bool = False) -> list[ColumnElement[bool]]:
    """Return the conditions of all filters on the links' own columns."""
    filters = query.filters
    conditions = [*_build_owner_conditions(query), *_build_range(filters, Link.id)]
    for tag_id in query.tag_ids:
        # Not by a join or EXISTS: databases would start from all links with the tag.
        tagged = (LinkTag.link_id == Link.id, LinkTag.tag_id == tag_id)
        conditions.append(select(LinkTag.link_id).where(*tagged).scalar_subquery().is_not(None))
    if query.team_id is not None:
        owned = (LinkTeam.link_id == Link.id, LinkTeam.team_id == query.team_id)
        conditions.append(select(LinkTeam.link_id).where(*owned).scalar_subquery().is_not(None))
    if filters.domain is not None:
        conditions.append(Link.domain == (filters.domain or None))
    if filters.status:
        conditions.append(is_in_state(filters.status, query.now))
    elif not any_state:
        conditions.append(Link.status != LinkState.DELETED)
    if filters.visibility is not None:
        stored, audience = filters.visibility.columns
        conditions += [
            Link.visibility == stored,
            Link.audience.is_(None) if audience is None else Link.audience == audience,
        ]
    return [*conditions, *(candidates.has_word(word) for word in query.words)]


def _build_owner_conditions(query: _LinkQuery) -> list[ColumnElement[bool]]:
    if query.is_own:
        return [is_owned_by(query.caller.user_id)]
    visible = is_visible_to(query.caller)
    if query.filters.owner == OwnerFilter.SHARED:
        return [visible, is_shared_with(query.caller.user_id)]
    if query.filters.owner == OwnerFilter.PUBLIC:
        return [visible, Link.visibility == Visibility.PUBLIC]
    return [visible]


async def _read_along_index(
    session: ReadSession, query: _LinkQuery, position: Sequence[Any] | None, limit: int
) -> list[LinkRow]:
    """Read links in the order of the list until the page is full.

    By clicks in two steps: those with clicks, then those without, unless a page begins there.
    """
    sort = query.filters.sort
    if query.filters == LinkFilter() and position is None:
        values = {"user_id": query.caller.user_id, "limit": limit}
        return _to_rows(await session.fetch(_NEWEST, **values))
    if sort not in CLICK_SORTS:
        return await _read_keys(session, _select_keys(query), position, limit)
    rows: list[LinkRow] = []
    if position is None or position[0]:
        rows = await _read_keys(session, _select_clicked_keys(query), position, limit)
        position = None
    if len(rows) < limit:
        keys = _select_keys(query, by_update=False)
        clicked = select(LinkTotals.link_id).where(
            LinkTotals.link_id == keys.columns.link_id, has_clicks(sort)
        )
        # Not by EXISTS: MariaDB would collect and sort all own links.
        unclicked = replace(
            keys, statement=keys.statement.where(clicked.scalar_subquery().is_(None))
        )
        after = position and position[1:]
        rows += await _read_keys(session, unclicked, after, limit - len(rows))
    return rows


async def _read_keys(
    session: ReadSession, keys: _LinkKeys, position: Sequence[Any] | None, limit: int
) -> list[LinkRow]:
    return _to_rows(await session.execute(_load_by_keys(keys, position, limit)))


def _to_rows(found: Iterable[Any]) -> list[LinkRow]:
    return [(link, value) for _, value, link in sort_keys(found) if link is not None]


def _build_newest() -> Select[Any]:
    """Return the most frequent query, a user's newest links. `now` does not matter to it."""
    caller = LinkCaller(cast("int", bindparam("user_id")))
    keys = _select_keys(_LinkQuery(caller, LinkFilter(), EPOCH, (), ()))
    return _load_by_keys(keys, None, bindparam("limit", type_=Integer))


_NEWEST = PreparedSelect(_build_newest, in_thread=True)


def _select_keys(query: _LinkQuery, *, by_update: bool | None = None) -> _LinkKeys:
    """Select links by the rows that have the order of ids and of updates."""
    by_update = query.filters.sort == LinkSort.UPDATED if by_update is None else by_update
    if query.is_own:
        columns = SortColumns(LinkOwner.updated_at if by_update else None, LinkOwner.link_id)
        own = select(LinkOwner).where(LinkOwner.user_id == query.caller.user_id, *_narrow(query))
        return _LinkKeys(_keep_matching(own, query, LinkOwner.link_id), columns)
    if query.filters.owner == OwnerFilter.SHARED and not by_update:
        shared = select(LinkShare).where(LinkShare.user_id == query.caller.user_id)
        shared = _keep_matching(shared, query, LinkShare.link_id)
        return _LinkKeys(shared, SortColumns(None, LinkShare.link_id))
    columns = SortColumns(Link.updated_at if by_update else None, Link.id)
    return _LinkKeys(select(Link).where(*_build_conditions(query), *_narrow(query)), columns)


def _select_in_order(query: _LinkQuery) -> Select[int]:
    """Select the ids that the links of an order are chosen from, by an index with that order."""
    own, owner = query.caller.user_id, query.filters.owner
    if owner == OwnerFilter.ME:
        found = candidates.select_own(own).where(*_narrow(query))
    elif owner == OwnerFilter.SHARED:
        found = candidates.select_shared(own)
    else:
        is_public = owner == OwnerFilter.PUBLIC
        found = candidates.select_all()
        found = found.where(Link.visibility == Visibility.PUBLIC) if is_public else found
    return _narrow_range(query, found)


def _select_clicked_keys(query: _LinkQuery) -> _LinkKeys:
    """Select links with clicks, by the index of their totals."""
    sort, user_id = query.filters.sort, query.caller.user_id
    totals: Select[Any] = select(LinkTotals).where(has_clicks(sort))
    if query.is_own and query.knows_owners:
        totals = totals.where(LinkTotals.owner_id == user_id)
    elif query.is_own:
        own = and_(LinkOwner.link_id == LinkTotals.link_id, LinkOwner.user_id == user_id)
        totals = totals.join(LinkOwner, own)
    totals = totals.where(*_build_range(query.filters, LinkTotals.link_id))
    columns = SortColumns(get_click_column(sort), LinkTotals.link_id)
    return _LinkKeys(_keep_matching(totals, query, LinkTotals.link_id), columns)


def _keep_matching(keys: Select[Any], query: _LinkQuery, link_id: SortColumn) -> Select[Any]:
    """Keep keys whose link meets all conditions.

    By a scalar subquery: as a join or with EXISTS, a planner that expects few such links would read
    and sort all of them, instead of following the index until the page is full.
    """
    passing = select(Link.id).where(Link.id == link_id, *_build_conditions(query))
    ranged = _build_range(query.filters, link_id)
    return keys.where(*ranged, passing.scalar_subquery().is_not(None))


def _narrow(query: _LinkQuery) -> list[ColumnElement[bool]]:
    """Return conditions that follow from the filters and have an index in the order of ids."""
    filters = query.filters
    if not query.is_own:
        is_expired = filters.status == LinkState.EXPIRED and query.knows_late
        return [Link.status == LinkState.EXPIRED] if is_expired else []
    if filters.status is not None and query.knows_late:
        return [candidates.is_copy_in_state(filters.status)]
    if filters.visibility is not None:
        return [LinkOwner.visibility == filters.visibility.columns[0]]
    return []


async def _find_tag_ids(session: ReadSession, tags: Sequence[str]) -> list[int] | None:
    """Return the ids of tags, or None if one of them does not exist: then no link matches."""
    keys = {slugify(tag) for tag in tags}
    found = (await find_shared_tags(session, keys)) if keys else {}
    live = {key: tag.id for key, tag in found.items() if tag.deleted_at is None}
    return sorted(set(live.values())) if len(live) == len(keys) else None
