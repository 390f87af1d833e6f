"""Queries about tags."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, literal, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.clock import EPOCH
from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.core.db.types import UtcDateTime
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.text import fold_text
from refract.tags.models import SHARED_SPACE, Tag


async def find_tags_by_id(session: ReadSession, ids: Collection[int]) -> dict[int, Tag]:
    found: dict[int, Tag] = {}
    for batch in iter_batches(sorted(ids)):
        found |= {
            tag.id: tag for tag in await session.scalars(select(Tag).where(Tag.id.in_(batch)))
        }
    return found


async def find_shared_tags(session: ReadSession, keys: Collection[str]) -> dict[str, Tag]:
    """Return shared tags by key or current name. A tag's own key takes precedence."""
    found: dict[str, Tag] = {}
    for batch in iter_batches(sorted(keys)):
        query = select(Tag).where(
            Tag.space == SHARED_SPACE, or_(Tag.key.in_(batch), Tag.name_key.in_(batch))
        )
        tags = (await session.scalars(query.order_by(Tag.id))).all()
        found |= {tag.name_key: tag for tag in tags} | {tag.key: tag for tag in tags}
    return {key: found[key] for key in keys if key in found}


class TagSort(StrEnum):
    NAME = "name"
    USAGE = "usage"
    LAST_USED = "last_used"


async def load_tags_page(  # noqa: PLR0913 - one per filter
    session: ReadSession,
    cursors: CursorCodec,
    visible: ColumnElement[bool],
    viewer: object,
    *,
    q: str | None,
    sort: TagSort,
    unused: bool | None = None,
    limit: int,
    cursor: str | None,
) -> Page[Tag]:
    """Return a page of visible tags: by name ascending, by usage or last use descending."""
    scope = ["tags", viewer, q, sort, unused]
    columns: list[ColumnElement[Any] | InstrumentedAttribute[Any]] = [_SORT_COLUMNS[sort], Tag.id]
    descending = sort != TagSort.NAME
    query = select(Tag).where(visible)
    if q:
        query = query.where(Tag.name_key.contains(fold_text(q), autoescape=True))
    if unused is not None:
        query = query.where(Tag.usage_count == 0 if unused else Tag.usage_count > 0)
    if cursor:
        query = query.where(
            build_after_clause(columns, cursors.decode(scope, cursor), descending=descending)
        )
    ordered = query.order_by(
        *(column.desc() if descending else column.asc() for column in columns)
    ).limit(limit + 1)
    return cursors.build_page(
        scope,
        list(await session.scalars(ordered)),
        limit,
        lambda tag: [_sort_value(tag, sort), tag.id],
    )


_NEVER_USED = EPOCH
"""Replaces NULL for tags that were never used, because databases sort NULL differently."""
_SORT_COLUMNS: dict[TagSort, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    TagSort.NAME: Tag.name_key,
    TagSort.USAGE: Tag.usage_count,
    TagSort.LAST_USED: func.coalesce(Tag.last_used_at, literal(_NEVER_USED, UtcDateTime())),
}


def _sort_value(tag: Tag, sort: TagSort) -> str | int | datetime:
    if sort == TagSort.NAME:
        return tag.name_key
    return tag.usage_count if sort == TagSort.USAGE else tag.last_used_at or _NEVER_USED
