"""The library as a list: filters, search, and the counts of filters.

Without words the newest confirmed items come first. With words, items that have all of them in
title or tags come first, then those that have them anywhere, the latest captured first in both
parts. This order needs no scores, so it is the same on three databases and fits into a cursor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Integer,
    ScalarSelect,
    Select,
    String,
    and_,
    cast,
    false,
    func,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.bulk import MAX_PARAMETERS, iter_batches
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.library.models import READING_STATES, Item, ItemStatus, ItemTag, ItemType
from refract.library.search.match import (
    build_match_clause,
    find_common_choices,
    find_near_titles,
    get_search_source,
    prepare_search,
)
from refract.library.search.terms import (
    SearchTerms,
    TokenMatch,
    match_any_field,
    match_title,
    parse_terms,
)
from refract.tags.grammar import personal_key
from refract.tags.models import Tag, TagAlias
from refract.tags.personal_tags import find_tags_by_key

MAX_FACETS = 50
MAX_COUNTED = 1_000
"""Items over which filters are counted, at most, so that a large library costs no more."""


class ArchivedFilter(StrEnum):
    """Whether a list has archived items."""

    EXCLUDED = "false"
    ONLY = "true"
    INCLUDED = "any"


class LibraryView(StrEnum):
    """What the pages of the library show of the saved items."""

    LIBRARY = "library"
    UNREAD = "unread"
    FAVORITES = "favorites"
    ARCHIVE = "archive"


class LibrarySort(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"


@dataclass(frozen=True, slots=True)
class LibraryFilter:
    """A selection of a user's items. `tags` are names or ids, all of which an item must have.

    `sort` is the order of a list without words. `archived` None leaves archived items out of a
    list, but not of a search.
    """

    user_id: int
    state: ItemStatus = ItemStatus.ARCHIVED
    type: ItemType | None = None
    tags: Sequence[str] = ()
    untagged: bool = False
    after: datetime | None = None
    before: datetime | None = None
    q: str | None = None
    sort: LibrarySort = LibrarySort.NEWEST
    unread: bool | None = None
    favorite: bool | None = None
    archived: ArchivedFilter | None = None

    def with_view(self, view: LibraryView) -> "LibraryFilter":
        """Return this filter with the reading states of a view."""
        anything = replace(self, unread=None, favorite=None, archived=None)
        match view:
            case LibraryView.LIBRARY:
                return anything
            case LibraryView.UNREAD:
                return replace(anything, unread=True)
            case LibraryView.FAVORITES:
                return replace(anything, favorite=True, archived=ArchivedFilter.INCLUDED)
            case LibraryView.ARCHIVE:
                return replace(anything, archived=ArchivedFilter.ONLY)

    def list_states(self) -> list[tuple[str, bool]]:
        """Return the reading states that items must have or not have."""
        states = {"unread": self.unread, "favorite": self.favorite}
        has_rest = self.state is not ItemStatus.ARCHIVED or bool(self.q and self.q.strip())
        match self.archived:
            case None:
                states["archived"] = None if has_rest else False
            case ArchivedFilter.EXCLUDED:
                states["archived"] = False
            case ArchivedFilter.ONLY:
                states["archived"] = True
            case ArchivedFilter.INCLUDED:
                states["archived"] = None
        return [(name, wanted) for name, wanted in states.items() if wanted is not None]


@dataclass(frozen=True, slots=True)
class LibraryItemPage(Page[Item]):
    """A page of items. `approximate` means that no item matches the words and these are similar."""

    approximate: bool = False


@dataclass(frozen=True, slots=True)
class _LibraryQuery:
    """A `LibraryFilter` whose words and tags have been looked up."""

    library_filter: LibraryFilter
    terms: SearchTerms | None
    anywhere: ColumnElement[bool]
    """What items must be in all views of the library, without its filters by tags."""
    sections: Sequence[TokenMatch] = field(default=())
    tag_ids: Sequence[Sequence[int]] = ()
    """Tags that an item must have: one of each group."""

    @property
    def condition(self) -> ColumnElement[bool]:
        return self._build_condition(_is_tagged)

    @property
    def condition_in_order(self) -> ColumnElement[bool]:
        """Return the same for a list that is read in its order until a page is full.

        With EXISTS, MariaDB collects and sorts the whole library.
        """
        return self._build_condition(lambda *chosen: _find_tag_id(*chosen).is_not(None))

    def _build_condition(
        self, is_tagged: Callable[..., ColumnElement[bool]]
    ) -> ColumnElement[bool]:
        tags = (
            is_tagged(ItemTag.tag_id.in_(tag_ids)) if tag_ids else false()
            for tag_ids in self.tag_ids
        )
        untagged = [~is_tagged()] if self.library_filter.untagged else []
        states = _build_state_clauses(self.library_filter)
        return and_(self.anywhere, *tags, *untagged, *states)


async def list_items(
    session: ReadSession,
    cursors: CursorCodec,
    library_filter: LibraryFilter,
    *,
    limit: int,
    cursor: str | None,
) -> LibraryItemPage:
    """Return a page, by at most three queries for the items and two more for tags given by name."""
    binding = ["library", asdict(library_filter)]
    position = cursors.decode(binding, cursor) if cursor else None
    query = await _build_query(session, library_filter)
    if query is None:
        return LibraryItemPage([], None)
    if not query.sections:
        rows = await _list_by_date(session, query, position, limit + 1)
        page = cursors.build_page(
            binding, rows, limit, lambda item: [_get_item_date(item, library_filter), item.id]
        )
        return LibraryItemPage(page.items, page.next_cursor)
    found = await _list_by_words(session, query, position, limit + 1)
    if not found and position is None and query.terms is not None and query.terms.words:
        near = await find_near_titles(
            session, library_filter.user_id, query.terms.words, query.condition, limit
        )
        return LibraryItemPage(near, None, approximate=bool(near))
    marked = cursors.build_page(binding, found, limit, lambda row: [row[0], row[1].id])
    return LibraryItemPage([item for _, item in marked.items], marked.next_cursor)


@dataclass(frozen=True, slots=True)
class LibraryFacets:
    """The number of items that each further filter would leave, among the newest that match.

    If more than `MAX_COUNTED` match, `total` is one more than that, and all numbers are minimums.
    """

    total: int
    types: dict[str, int]
    untagged: int
    tags: Sequence[tuple[Tag, int]]
    views: Mapping[LibraryView, int]
    """Like `total`, of each view instead of the chosen reading states."""

    @property
    def is_bounded(self) -> bool:
        """Return whether there are more matches than were counted."""
        return self.total > MAX_COUNTED


async def count_facets(session: ReadSession, library_filter: LibraryFilter) -> LibraryFacets:
    """Count the filters over the newest items that match, by three queries."""
    query = await _build_query(session, library_filter)
    if query is None:
        return LibraryFacets(0, dict.fromkeys(ItemType, 0), 0, [], dict.fromkeys(LibraryView, 0))
    types: dict[str, int] = dict.fromkeys(ItemType, 0)
    by_tag: dict[int, int] = {}
    untagged = 0
    for kind, tag_id, count in await session.execute(_select_counts(session, query)):
        if kind is not None:
            types[ItemType(kind)] = count
        elif tag_id is not None:
            by_tag[tag_id] = count
        else:
            untagged = count
    named = select(Tag).where(Tag.id.in_(list(by_tag)))
    tags = {tag.id: tag for tag in await session.scalars(named)} if by_tag else {}
    most_used = sorted(by_tag.items(), key=lambda pair: (-pair[1], pair[0]))
    return LibraryFacets(
        sum(types.values()),
        {str(kind): number for kind, number in types.items()},
        untagged,
        [(tags[tag_id], number) for tag_id, number in most_used[:MAX_FACETS]],
        await _count_views(session, query),
    )


async def _count_views(session: ReadSession, query: _LibraryQuery) -> dict[LibraryView, int]:
    """Count the items of all views by one query, up to one more than `MAX_COUNTED`."""
    if query.sections:  # a search has archived items too, and finds the words a single time
        chosen = LibraryFilter(query.library_filter.user_id, archived=ArchivedFilter.INCLUDED)
        found = _select_newest(session, replace(query, library_filter=chosen)).subquery()
        sums = (func.sum(cast(found.c[name], Integer)) for name in READING_STATES)
        counts = select(func.count(), *sums).select_from(found)
    else:
        counts = select(*(_count_view(session, query, view) for view in LibraryView))
    row = (await session.execute(counts)).one()
    return {view: int(count or 0) for view, count in zip(LibraryView, row, strict=True)}


def _count_view(session: ReadSession, query: _LibraryQuery, view: LibraryView) -> Any:
    chosen = query.library_filter.with_view(view)
    found = _select_newest(session, replace(query, library_filter=chosen)).subquery()
    return select(func.count()).select_from(found).scalar_subquery()


def _select_counts(session: ReadSession, query: _LibraryQuery) -> CompoundSelect[Any]:
    """Select numbers of items: of each type, without tags, and of the most used tags.

    In one statement, so that the items are found once.
    """
    newest = _select_newest(session, query).cte("newest")
    count = func.count().label("counted")
    no_type, no_tag = cast(null(), String).label("type"), cast(null(), BigInteger).label("tag_id")
    by_type = select(newest.c.type, no_tag, count).group_by(newest.c.type)
    # An outer join also counts items without tags, and no planner starts from all tags of items.
    by_tag = (
        select(ItemTag.tag_id, count)
        .select_from(newest)
        .outerjoin(ItemTag, ItemTag.item_id == newest.c.id)
        .group_by(ItemTag.tag_id)
        .order_by(ItemTag.tag_id.is_(None).desc(), count.desc(), ItemTag.tag_id)
        .limit(MAX_FACETS + 1)
        .subquery("by_tag")
    )
    return union_all(by_type, select(no_type, by_tag.c.tag_id, by_tag.c.counted))


async def search_items(session: ReadSession, user_id: int, q: str, limit: int) -> list[Item]:
    """Return the first matches for the search over all features, ordered as in the library."""
    query = await _build_query(session, LibraryFilter(user_id, q=q))
    if query is None:
        return []
    if not query.sections:
        return await _list_by_date(session, query, None, limit)
    return [item for _, item in await _list_by_words(session, query, None, limit)]


async def _build_query(session: ReadSession, library_filter: LibraryFilter) -> _LibraryQuery | None:
    """Return None if nothing can match: a tag does not exist, or the search has no word in it."""
    conditions = [Item.user_id == library_filter.user_id, Item.status == library_filter.state]
    terms = parse_terms(library_filter.q) if library_filter.q and library_filter.q.strip() else None
    if terms is not None and terms.is_empty:
        return None
    if library_filter.type is not None:
        conditions.append(Item.type == library_filter.type)
    moment = _get_date_column(library_filter)
    conditions += [moment >= library_filter.after] if library_filter.after is not None else []
    conditions += [moment < library_filter.before] if library_filter.before is not None else []
    tag_ids = [
        await _find_tag(session, library_filter.user_id, tag)
        for tag in dict.fromkeys(library_filter.tags)
    ]
    tag_ids += [
        await find_tags_by_name(session, library_filter.user_id, name)
        for name in (terms.tags if terms else ())
    ]
    for name, wanted in terms.states if terms else ():
        conditions.append(_build_state_clause(name, wanted=wanted))
    for name in terms.without_tags if terms else ():
        refused = await find_tags_by_name(session, library_filter.user_id, name)
        conditions += [~_is_tagged(ItemTag.tag_id.in_(refused))] if refused else []
    sections: list[TokenMatch] = []
    if terms is not None and terms.has_words:
        sections = [match_title(library_filter.user_id, terms)] if terms.words else []
        sections.append(match_any_field(library_filter.user_id, terms))
        await prepare_search(session)
    return _LibraryQuery(library_filter, terms, and_(*conditions), sections, tag_ids)


def _build_state_clauses(library_filter: LibraryFilter) -> list[ColumnElement[bool]]:
    return [
        _build_state_clause(name, wanted=wanted) for name, wanted in library_filter.list_states()
    ]


def _build_state_clause(name: str, *, wanted: bool) -> ColumnElement[bool]:
    column: InstrumentedAttribute[bool] = getattr(Item, name)
    return column == wanted


async def find_tags_by_name(session: ReadSession, user_id: int, name: str) -> list[int]:
    """Return the ids of the tags that `#name` means.

    That is the one with this name or alias, where `-` and `_` also stand for spaces; otherwise all
    that begin so.
    """
    spaced = name.replace("_", " ").replace("-", " ")
    names = {
        name,
        spaced,
        name.replace("_", "-"),
        spaced.replace(" ", "-"),
        spaced.replace(" ", "_"),
    }
    by_name = select(Tag.id).where(
        Tag.space == user_id, Tag.key.in_(names), Tag.deleted_at.is_(None)
    )
    by_alias = select(TagAlias.tag_id).where(TagAlias.space == user_id, TagAlias.key.in_(names))
    found = [*await session.scalars(by_name.order_by(Tag.id)), *await session.scalars(by_alias)]
    if not found:
        by_prefix = Tag.key.startswith(name, autoescape=True)
        found = list(
            await session.scalars(
                select(Tag.id)
                .where(Tag.space == user_id, by_prefix, Tag.deleted_at.is_(None))
                .order_by(Tag.id)
            )
        )
    return found


async def _find_tag(session: ReadSession, user_id: int, tag: str) -> list[int]:
    """Return the id of the live tag with this name, otherwise of the one with this id."""
    known = (await find_tags_by_key(session, user_id, [personal_key(tag)])).get(personal_key(tag))
    if known is None and tag.isascii() and tag.isdigit() and len(tag) < 19:
        known = await session.scalar(select(Tag).where(Tag.space == user_id, Tag.id == int(tag)))
    return [known.id] if known is not None and known.deleted_at is None else []


def _is_tagged(*chosen: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition for items with a tag, or with a chosen one."""
    return select(ItemTag.item_id).where(ItemTag.item_id == Item.id, *chosen).exists()


def _find_tag_id(*chosen: ColumnElement[bool]) -> ScalarSelect[int | None]:
    """Return the smallest id of an item's tags, or of the chosen ones."""
    found = select(func.min(ItemTag.tag_id)).where(ItemTag.item_id == Item.id, *chosen)
    return found.scalar_subquery()


def _get_date_column(library_filter: LibraryFilter) -> Any:
    """Return the column that dates items: of those not confirmed, the time of capture."""
    return Item.confirmed_at if library_filter.state is ItemStatus.ARCHIVED else Item.created_at


def _get_item_date(item: Item, library_filter: LibraryFilter) -> datetime | None:
    return item.confirmed_at if library_filter.state is ItemStatus.ARCHIVED else item.created_at


async def _list_by_date(
    session: ReadSession, query: _LibraryQuery, position: Sequence[Any] | None, limit: int
) -> list[Item]:
    moment = _get_date_column(query.library_filter)
    statement = select(Item).where(query.condition_in_order)
    few = await _find_few_tagged(session, query.tag_ids)
    if few is not None:
        statement = statement.where(Item.id.in_(few))
    is_oldest_first = query.library_filter.sort is LibrarySort.OLDEST
    if position is not None:
        at, number = position
        # the first bound lets planners start in the middle
        statement = statement.where(
            *(moment >= at, or_(moment > at, Item.id > number))
            if is_oldest_first
            else (moment <= at, or_(moment < at, Item.id < number))
        )
    order = (moment, Item.id) if is_oldest_first else (moment.desc(), Item.id.desc())
    return list(await session.scalars(statement.order_by(*order).limit(limit)))


async def _find_few_tagged(
    session: ReadSession, tag_ids: Sequence[Sequence[int]]
) -> list[int] | None:
    """Return the items with a tag that few items have, or None.

    They are sorted, instead of reading the whole library for them in the order of its list.
    """
    for ids in tag_ids:
        tagged = select(ItemTag.item_id).where(ItemTag.tag_id.in_(ids)).limit(MAX_PARAMETERS + 1)
        found = list(await session.scalars(tagged))
        if len(found) <= MAX_PARAMETERS:
            return found
    return None


async def _list_by_words(
    session: ReadSession, query: _LibraryQuery, position: Sequence[Any] | None, limit: int
) -> list[tuple[int, Item]]:
    """Return items with the number of their section.

    An item of an earlier section is not repeated.
    """
    first, after_id = (position[0], position[1]) if position is not None else (0, None)
    rows: list[tuple[int, Item]] = []
    for number in range(first, len(query.sections)):
        statement = await _build_section_query(
            session,
            query,
            number,
            [item.id for _, item in rows] if position is None and number else None,
        )
        ids = await _list_ids(
            session, statement, after_id if number == first else None, limit - len(rows)
        )
        items = {item.id: item for item in await _load_items(session, ids)}
        rows += [(number, items[item_id]) for item_id in ids if item_id in items]
        if len(rows) >= limit:
            break
    return rows


async def _list_ids(
    session: ReadSession, statement: Select[int], after_id: int | None, limit: int
) -> list[int]:
    """Return the next matches of a section.

    Only ids are sorted; the items are loaded by another query.
    """
    _, item_id = get_search_source(session.dialect)
    if after_id is not None:
        statement = statement.where(item_id < after_id)
    return list(await session.scalars(statement.order_by(item_id.desc()).limit(limit)))


async def _build_section_query(
    session: ReadSession, query: _LibraryQuery, number: int, before: Sequence[int] | None
) -> Select[int]:
    """Return the query of a section.

    `before` are all items of the sections before it, if known: then the index need not find them
    again.
    """
    indexed, item_id = get_search_source(session.dialect)
    statement = (
        select(item_id).select_from(indexed).join(Item, Item.id == item_id).where(query.condition)
    )
    section = query.sections[number]
    if before is not None:
        section = section.without_exception()
        statement = statement.where(item_id.not_in(before)) if before else statement
    return statement.where(
        build_match_clause(session.dialect, section, await find_common_choices(session, section))
    )


async def _load_items(session: ReadSession, ids: Sequence[int]) -> list[Item]:
    found: list[Item] = []
    for batch in iter_batches(ids):
        found += await session.scalars(select(Item).where(Item.id.in_(batch)))
    return found


def _select_newest(session: ReadSession, query: _LibraryQuery) -> Select[*tuple[Any, ...]]:
    """Select id, type and reading states of the newest matches: one more than are counted."""
    columns: list[Any] = [Item.type, Item.unread, Item.favorite, Item.archived]
    if not query.sections:
        moment = _get_date_column(query.library_filter)
        statement = select(Item.id, *columns).where(query.condition)
        return statement.order_by(moment.desc(), Item.id.desc()).limit(MAX_COUNTED + 1)
    indexed, item_id = get_search_source(session.dialect)
    matches = build_match_clause(session.dialect, query.sections[-1].without_exception())
    return (
        select(item_id.label("id"), *columns)
        .select_from(indexed)
        .join(Item, Item.id == item_id)
        .where(query.condition, matches)
        .order_by(item_id.desc())
        .limit(MAX_COUNTED + 1)
    )
