"""Lists of links by offset with totals, in any order, for clients that page by number.

Counting and skipping read more rows than the cursors of `browse`: our own pages and API use those.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select

from refract.core.db.session import ReadSession
from refract.core.ids import decode_base62, get_min_link_id
from refract.core.text import fold_text
from refract.links.access import LinkCaller
from refract.links.enums import LinkState
from refract.links.models import Link, LinkOwner, LinkTag, LinkTotals
from refract.links.queries.candidates import has_word
from refract.links.queries.cards import LinkCard, load_cards
from refract.links.queries.ordering import SortColumn
from refract.names.enums import NameTarget
from refract.names.models import Name
from refract.tags.grammar import slugify
from refract.tags.models import SHARED_SPACE, Tag
from refract.tags.queries import find_shared_tags

MAX_SEARCH_WORDS = 8


class NumberedSort(StrEnum):
    CREATED = "created"
    CODE = "code"
    DESTINATION = "destination"
    TITLE = "title"
    CLICKS = "clicks"
    PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class NumberedFilter:
    """Which links to list: the caller's own, or all of them for an administrator."""

    q: str = ""
    tags: Sequence[str] = ()
    any_tag: bool = True
    excluded_tags: Sequence[str] = ()
    any_excluded: bool = True
    """Whether one excluded tag is enough to leave a link out."""
    created_after: datetime | None = None
    created_before: datetime | None = None
    unexpired_at: datetime | None = None
    sort: NumberedSort = NumberedSort.CREATED
    descending: bool = True


@dataclass(frozen=True, slots=True)
class NumberedLinks:
    """The links of a filter, of which a stretch can be loaded."""

    statement: Select[int]
    total: int


async def count_numbered_links(
    session: ReadSession, caller: LinkCaller, filters: NumberedFilter
) -> NumberedLinks:
    """Return how many links match. Four queries at most."""
    conditions = [
        Link.status != LinkState.DELETED,
        *_build_range(filters),
        *_build_search(filters.q),
        *await _build_tag_conditions(session, filters),
    ]
    found = select_listed_links(caller).where(*conditions)
    total = await session.scalar(select(func.count()).select_from(found.subquery("found")))
    return NumberedLinks(_sort(found, filters), total or 0)


async def load_numbered_cards(
    session: ReadSession, found: NumberedLinks, offset: int, limit: int
) -> list[LinkCard]:
    """Return some of the links in order, with everything that is shown about them. Six queries."""
    ids = list(await session.scalars(found.statement.offset(offset).limit(limit)))
    links = {link.id: link for link in await session.scalars(select(Link).where(Link.id.in_(ids)))}
    return await load_cards(session, [links[link_id] for link_id in ids if link_id in links])


def select_listed_links(caller: LinkCaller) -> Select[int]:
    """Select the ids of the links that a caller owns; of all links for an administrator."""
    if caller.is_admin:
        return select(Link.id)
    own = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == caller.user_id)
    return select(Link.id).join(LinkOwner, own)


def _build_range(filters: NumberedFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.created_after is not None:
        conditions.append(Link.id >= get_min_link_id(filters.created_after))
    if filters.created_before is not None:
        conditions.append(Link.id < get_min_link_id(filters.created_before))
    if filters.unexpired_at is not None:
        conditions.append(or_(Link.expires_at.is_(None), Link.expires_at > filters.unexpired_at))
    return conditions


def _build_search(q: str) -> list[ColumnElement[bool]]:
    """Find words in names, title, notes, destination and tags, or the code as a whole."""
    words = fold_text(q).split()[:MAX_SEARCH_WORDS]
    code = decode_base62(q.strip())
    if not words:
        return []
    matches = and_(*(or_(has_word(word), _is_tagged_like(word)) for word in words))
    return [matches if code is None else or_(matches, Link.id == code)]


def _is_tagged_like(word: str) -> ColumnElement[bool]:
    named = Tag.name_key.contains(word, autoescape=True)
    tags = select(LinkTag.link_id).join(Tag, Tag.id == LinkTag.tag_id)
    return tags.where(LinkTag.link_id == Link.id, named).exists()


async def _build_tag_conditions(
    session: ReadSession, filters: NumberedFilter
) -> list[ColumnElement[bool]]:
    keys = {tag: slugify(tag) for tag in (*filters.tags, *filters.excluded_tags)}
    known = await find_shared_tags(session, set(keys.values())) if keys else {}
    conditions: list[ColumnElement[bool]] = []
    if filters.tags:
        wanted = [_has_tag(known.get(keys[tag])) for tag in filters.tags]
        conditions.append(or_(*wanted) if filters.any_tag else and_(*wanted))
    if filters.excluded_tags:
        unwanted = [_has_tag(known.get(keys[tag])) for tag in filters.excluded_tags]
        conditions.append(~(or_(*unwanted) if filters.any_excluded else and_(*unwanted)))
    return conditions


def _has_tag(tag: Tag | None) -> ColumnElement[bool]:
    tagged = select(LinkTag.link_id).where(
        LinkTag.link_id == Link.id, LinkTag.tag_id == (0 if tag is None else tag.id)
    )
    return tagged.exists()


def _sort(found: Select[int], filters: NumberedFilter) -> Select[int]:
    order: list[SortColumn] = []
    if filters.sort in (NumberedSort.CLICKS, NumberedSort.PEOPLE):
        found = found.outerjoin(LinkTotals, LinkTotals.link_id == Link.id)
        clicks: SortColumn = LinkTotals.total_clicks
        if filters.sort == NumberedSort.CLICKS:
            clicks = LinkTotals.total_clicks + LinkTotals.bot_clicks
        order.append(func.coalesce(clicks, 0))
    elif filters.sort == NumberedSort.CODE:
        # Codes made of ids come last, in the order of ids, which is theirs.
        key = _select_first_key()
        order += [case((key.is_(None), 1), else_=0), key]
    elif filters.sort == NumberedSort.TITLE:
        order += [case((Link.title.is_(None), 1), else_=0), Link.title]
    elif filters.sort == NumberedSort.DESTINATION:
        order.append(Link.destination)
    order.append(Link.id)
    return found.order_by(*(part.desc() if filters.descending else part.asc() for part in order))


def _select_first_key() -> ColumnElement[Any]:
    names = select(Name.key).where(Name.kind == NameTarget.LINK, Name.target_id == Link.id)
    return names.order_by(Name.created_at, Name.key).limit(1).scalar_subquery()


@dataclass(frozen=True, slots=True)
class ClickSums:
    """Clicks of several links together."""

    people: int = 0
    bots: int = 0


async def sum_clicks(session: ReadSession, caller: LinkCaller) -> tuple[int, ClickSums]:
    """Return how many links a caller has that are not deleted, and the clicks of all of them."""
    listed = select_listed_links(caller).where(Link.status != LinkState.DELETED)
    sums = listed.outerjoin(LinkTotals, LinkTotals.link_id == Link.id).with_only_columns(
        func.count(),
        func.coalesce(func.sum(LinkTotals.total_clicks), 0),
        func.coalesce(func.sum(LinkTotals.bot_clicks), 0),
    )
    ((links, people, bots),) = await session.execute(sums)
    return links, ClickSums(int(people), int(bots))


class TagSumSort(StrEnum):
    NAME = "name"
    LINKS = "links"
    CLICKS = "clicks"
    PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class TagSum:
    """A shared tag with the links of a caller that have it, and their clicks."""

    name: str
    links: int
    clicks: ClickSums


async def list_tag_sums(
    session: ReadSession,
    caller: LinkCaller,
    *,
    q: str = "",
    sort: TagSumSort = TagSumSort.NAME,
    descending: bool = False,
    offset: int = 0,
    limit: int = 500,
) -> tuple[int, list[TagSum]]:
    """Return how many tags the links of a caller have, and some of these. Two queries."""
    people = func.coalesce(func.sum(LinkTotals.total_clicks), 0)
    bots = func.coalesce(func.sum(LinkTotals.bot_clicks), 0)
    links = func.count()
    grouped = (
        select_listed_links(caller)
        .join(LinkTag, LinkTag.link_id == Link.id)
        .join(Tag, Tag.id == LinkTag.tag_id)
        .outerjoin(LinkTotals, LinkTotals.link_id == Link.id)
        .where(Link.status != LinkState.DELETED, Tag.space == SHARED_SPACE)
        .with_only_columns(Tag.name, Tag.name_key, links, people, bots)
        .group_by(Tag.id, Tag.name, Tag.name_key)
    )
    if q:
        grouped = grouped.where(Tag.name_key.contains(fold_text(q), autoescape=True))
    orders = {
        TagSumSort.NAME: Tag.name_key,
        TagSumSort.LINKS: links,
        TagSumSort.CLICKS: people + bots,
        TagSumSort.PEOPLE: people,
    }
    order = (orders[sort], Tag.name_key)
    ordered = grouped.order_by(*(part.desc() if descending else part.asc() for part in order))
    total = await session.scalar(select(func.count()).select_from(grouped.subquery("tags")))
    rows = await session.execute(ordered.offset(offset).limit(limit))
    found = [TagSum(name, count, ClickSums(int(p), int(b))) for name, _, count, p, b in rows]
    return total or 0, found
