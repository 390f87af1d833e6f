"""Queries about tags."""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.text import fold_text
from refract.tags.models import SHARED_SPACE, Tag, TagAlias


async def find_tags_by_id(session: ReadSession, ids: Collection[int]) -> dict[int, Tag]:
    found: dict[int, Tag] = {}
    for batch in iter_batches(sorted(ids)):
        found |= {
            tag.id: tag for tag in await session.scalars(select(Tag).where(Tag.id.in_(batch)))
        }
    return found


async def find_shared_tags(session: ReadSession, keys: Collection[str]) -> dict[str, Tag]:
    """Return shared tags by key, current name, or a name that was merged into them.

    A tag's own key takes precedence over the names of others.
    """
    found: dict[str, Tag] = {}
    for batch in iter_batches(sorted(keys)):
        query = select(Tag).where(
            Tag.space == SHARED_SPACE, or_(Tag.key.in_(batch), Tag.name_key.in_(batch))
        )
        tags = (await session.scalars(query.order_by(Tag.id))).all()
        found |= {tag.name_key: tag for tag in tags} | {tag.key: tag for tag in tags}
        gone = [key for key in batch if key not in found or found[key].deleted_at is not None]
        if gone:
            found |= await _find_merged_tags(session, gone)
    return {key: found[key] for key in keys if key in found}


async def _find_merged_tags(session: ReadSession, keys: Collection[str]) -> dict[str, Tag]:
    query = (
        select(TagAlias.key, Tag)
        .join(Tag, Tag.id == TagAlias.tag_id)
        .where(TagAlias.space == SHARED_SPACE, TagAlias.key.in_(keys), Tag.deleted_at.is_(None))
    )
    return dict((await session.execute(query)).all())


class TagSort(StrEnum):
    NAME = "name"
    USAGE = "usage"
    LAST_USED = "last_used"


async def load_tags_page(  # noqa: PLR0913 - one per filter
    session: ReadSession,
    cursors: CursorCodec,
    visible: Sequence[ColumnElement[bool]],
    viewer: object,
    *,
    q: str | None,
    sort: TagSort,
    unused: bool | None = None,
    limit: int,
    cursor: str | None,
) -> Page[Tag]:
    """Return a page of visible tags: by name ascending, by usage or last use descending.

    `visible` has a condition for each space, because an index has the order of one space. Tags that
    were never used come last, by a query of their own: databases sort NULL differently.
    """
    scope = ["tags", viewer, q, sort, unused]
    query = select(Tag)
    if q:
        query = query.where(Tag.name_key.contains(fold_text(q), autoescape=True))
    if unused is not None:
        query = query.where(Tag.usage_count == 0 if unused else Tag.usage_count > 0)
    position = cursors.decode(scope, cursor) if cursor else None
    rows: list[Tag] = []
    if sort != TagSort.LAST_USED:
        rows = await _read_sorted(
            session, visible, query, [_SORT_COLUMNS[sort], Tag.id], position, limit + 1
        )
    else:
        if position is None or position[0] is not None:
            used = query.where(Tag.last_used_at.is_not(None))
            columns = [Tag.last_used_at, Tag.id]
            rows = await _read_sorted(session, visible, used, columns, position, limit + 1)
            position = None
        if len(rows) <= limit:
            never = query.where(Tag.last_used_at.is_(None))
            after = None if position is None else position[1:]
            rows += await _read_sorted(
                session, visible, never, [Tag.id], after, limit + 1 - len(rows)
            )
    return cursors.build_page(scope, rows, limit, lambda tag: [_sort_value(tag, sort), tag.id])


async def _read_sorted(
    session: ReadSession,
    visible: Sequence[ColumnElement[bool]],
    query: Select[Tag],
    columns: Sequence[InstrumentedAttribute[Any]],
    position: Sequence[Any] | None,
    limit: int,
) -> list[Tag]:
    """Return the next tags of all spaces: names in ascending order, all else in descending."""
    descending = columns[0] is not Tag.name_key
    if position is not None:
        query = query.where(build_after_clause(columns, position, descending=descending))
    query = query.order_by(*(column.desc() if descending else column.asc() for column in columns))
    rows = [tag for condition in visible for tag in await _read(session, query, condition, limit)]
    if len(visible) > 1:
        rows.sort(
            key=lambda tag: [getattr(tag, column.key) for column in columns], reverse=descending
        )
    return rows[:limit]


async def _read(
    session: ReadSession, query: Select[Tag], condition: ColumnElement[bool], limit: int
) -> list[Tag]:
    return list(await session.scalars(query.where(condition).limit(limit)))


_SORT_COLUMNS: dict[TagSort, InstrumentedAttribute[Any]] = {
    TagSort.NAME: Tag.name_key,
    TagSort.USAGE: Tag.usage_count,
}


def _sort_value(tag: Tag, sort: TagSort) -> str | int | datetime | None:
    if sort == TagSort.NAME:
        return tag.name_key
    return tag.usage_count if sort == TagSort.USAGE else tag.last_used_at
