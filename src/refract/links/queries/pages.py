"""Pages of links: filters, search and four orders, each of them walked along an index.

Created order is id order. Orders by clicks have a front part, the links that were clicked, walked along the totals' index, and a rear
part, those that never were, in created order: so a link without a row of totals needs no special care, and everybody's list no sorting.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db import ReadSession
from refract.core.ids import first_id_at
from refract.core.page import Cursors, Page
from refract.core.text import fold
from refract.links.access import Who, visible_to
from refract.links.errors import SortUnavailable
from refract.links.models import Link, LinkOwner, LinkShare, LinkState, LinkTag, LinkTotals, Visibility
from refract.links.queries.find import in_state
from refract.tags.grammar import slug
from refract.tags.queries import shared_by_key

MOST_WORDS = 8


class Sort(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    CLICKS = "clicks"
    LAST_CLICK = "last_click"


class OwnerFilter(StrEnum):
    ME = "me"
    SHARED = "shared"
    PUBLIC = "public"
    ALL = "all"  # administrators only


CLICK_SORTS = (Sort.CLICKS, Sort.LAST_CLICK)


@dataclass(frozen=True, slots=True)
class LinkQuestion:
    """Which links, in which order. Without a state everything but deleted links is meant."""

    owner: OwnerFilter = OwnerFilter.ME
    status: LinkState | None = None
    tag: str | None = None
    q: str | None = None
    sort: Sort = Sort.CREATED
    created_after: datetime | None = None
    created_before: datetime | None = None
    visibility: Visibility | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of an order: the columns it goes by, what belongs to it, and which positions lie in it."""

    columns: Sequence[InstrumentedAttribute[Any]]
    belongs: ColumnElement[bool] | None = None
    joined: bool = False  # needs the totals' row


async def page_of_links(
    session: ReadSession, cursors: Cursors, who: Who, asked: LinkQuestion, now: datetime, *, limit: int, cursor: str | None
) -> Page[Link]:
    """Return one page, newest or most first. At most two queries for the links themselves, one more with a tag.

    Raises SortUnavailable for public links by clicks: their order would tell figures that only owners may see.
    """
    if asked.owner == OwnerFilter.PUBLIC and asked.sort in CLICK_SORTS:
        raise SortUnavailable(sort=asked.sort)
    bound = [who.user_id, who.is_admin, asdict(asked)]
    position = cursors.read(bound, cursor) if cursor else None
    tag_id = await _tag_id(session, asked.tag)
    if asked.tag is not None and tag_id is None:
        return Page([], None)
    rows: list[tuple[Link, Any]] = []
    parts = _parts(asked.sort)
    first = len(parts) - 1 if position is not None and not position[0] and asked.sort in CLICK_SORTS else 0
    for number, part in enumerate(parts[first:], start=first):
        resumed = position if number == first else None
        question = _filtered(part, who, asked, now, tag_id)
        rows += await _read(session, question, part, resumed, limit + 1 - len(rows), asked.sort)
        if len(rows) > limit:
            break
    page = cursors.page(bound, rows, limit, lambda row: _position(row, asked.sort))
    return Page([link for link, _ in page.items], page.next_cursor)


def _parts(sort: Sort) -> list[_Part]:
    clicked = LinkTotals.total_clicks > 0
    if sort == Sort.CREATED:
        return [_Part([Link.id])]
    if sort == Sort.UPDATED:
        return [_Part([Link.updated_at, Link.id])]
    column = LinkTotals.total_clicks if sort == Sort.CLICKS else LinkTotals.last_clicked_at
    has = clicked if sort == Sort.CLICKS else LinkTotals.last_clicked_at.is_not(None)
    never = ~select(LinkTotals.link_id).where(LinkTotals.link_id == Link.id, has).exists()
    return [_Part([column, LinkTotals.link_id], has, joined=True), _Part([Link.id], never)]


def _filtered(part: _Part, who: Who, asked: LinkQuestion, now: datetime, tag_id: int | None) -> Select[Any]:
    question: Select[Any] = select(Link, part.columns[0])
    if part.joined:
        question = question.join(LinkTotals, LinkTotals.link_id == Link.id)
    question = _of_owner(question, who, asked.owner)
    if tag_id is not None:
        question = question.join(LinkTag, and_(LinkTag.link_id == Link.id, LinkTag.tag_id == tag_id))
    wanted = [visible_to(who)]
    if part.belongs is not None:
        wanted.append(part.belongs)
    wanted.append(in_state(asked.status, now) if asked.status else Link.status != LinkState.DELETED)
    if asked.visibility is not None:
        stored, audience = asked.visibility.stored
        wanted += [Link.visibility == stored, Link.audience.is_(None) if audience is None else Link.audience == audience]
    if asked.created_after is not None:
        wanted.append(Link.id >= first_id_at(asked.created_after))
    if asked.created_before is not None:
        wanted.append(Link.id < first_id_at(asked.created_before))
    wanted += [_has_word(word, asked.owner) for word in fold(asked.q or "").split()[:MOST_WORDS]]
    return question.where(*wanted)


def _has_word(word: str, owner: OwnerFilter) -> ColumnElement[bool]:
    """Match a word. Among everybody's links also by the destination's host in ASCII, as reports and block lists name it."""
    written = Link.search_text.contains(word, autoescape=True)
    if owner != OwnerFilter.ALL:
        return written
    return or_(written, Link.destination_host.contains(word, autoescape=True))


def _of_owner(question: Select[Any], who: Who, owner: OwnerFilter) -> Select[Any]:
    if owner == OwnerFilter.ME:
        return question.join(LinkOwner, and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == who.user_id))
    if owner == OwnerFilter.SHARED:
        return question.join(LinkShare, and_(LinkShare.link_id == Link.id, LinkShare.user_id == who.user_id))
    if owner == OwnerFilter.PUBLIC:
        return question.where(Link.visibility == Visibility.PUBLIC)
    return question


async def _read(
    session: ReadSession, question: Select[Any], part: _Part, position: Sequence[Any] | None, most: int, sort: Sort
) -> list[tuple[Link, Any]]:
    if position is not None:
        question = question.where(_behind(part.columns, position[-len(part.columns) :]))
    rows = await session.execute(question.order_by(*(column.desc() for column in part.columns)).limit(most))
    value = (lambda found: found) if len(part.columns) > 1 else (lambda _found: 0 if sort == Sort.CLICKS else None)
    return [(link, value(found)) for link, found in rows]


def _behind(columns: Sequence[InstrumentedAttribute[Any]], position: Sequence[Any]) -> ColumnElement[bool]:
    """Rows behind a position. The first bound follows from the rest: said again, it lets every planner begin in the middle of the index."""
    if len(columns) == 1:
        return and_(columns[0] < position[0])
    (first, second), (value, number) = columns, position
    return and_(first <= value, or_(first < value, second < number))


def _position(row: tuple[Link, Any], sort: Sort) -> tuple[Any, ...]:
    link, value = row
    return (link.id,) if sort == Sort.CREATED else (value, link.id)


async def _tag_id(session: ReadSession, tag: str | None) -> int | None:
    if tag is None:
        return None
    key = slug(tag)
    found = (await shared_by_key(session, [key])).get(key)
    return None if found is None or found.deleted_at is not None else found.id
