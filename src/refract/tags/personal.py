"""Everybody's own tags."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, select

from refract.core.db import ReadSession, WriteSession
from refract.core.ids import IdSource
from refract.core.rows import insert_or_skip, slices
from refract.tags.grammar import check_personal, personal_key
from refract.tags.models import DEFAULT_COLOR, Tag, TagAlias, TagScope


async def ensure(session: WriteSession, ids: IdSource, user_id: int, names: Collection[str], now: datetime) -> dict[str, Tag]:
    """The person's tag for each name as given: an alias wins, then the tag that has the name, revived if it was deleted, else a new one.

    Raises `InvalidTag` for a name outside the grammar. The unique key settles who makes a new one.
    """
    wanted: dict[str, str] = {}
    for name in names:
        clean = check_personal(name)
        wanted.setdefault(personal_key(clean), clean)
    known = await by_key(session, user_id, list(wanted))
    missing = sorted(set(wanted) - set(known))
    if missing:
        rows = [_new(number, user_id, key, wanted[key], now) for number, key in zip(ids.next_ids(len(missing)), missing, strict=True)]
        await insert_or_skip(session, cast("Table", Tag.__table__), rows)
        known |= await by_key(session, user_id, missing)
    for tag in known.values():
        if tag.deleted_at is not None:
            tag.deleted_at = None
    await session.flush()
    return {name: known[personal_key(check_personal(name))] for name in names}


async def by_key(session: ReadSession, user_id: int, keys: Collection[str]) -> dict[str, Tag]:
    """The person's tags by folded name, deleted ones too; a merged name finds what it was merged into."""
    found: dict[str, Tag] = {}
    for some in slices(sorted(keys)):
        own = select(Tag).where(Tag.space == user_id, Tag.key.in_(some))
        found |= {tag.key: tag for tag in await session.scalars(own)}
        merged = select(TagAlias.key, Tag).join(Tag, Tag.id == TagAlias.tag_id).where(TagAlias.space == user_id, TagAlias.key.in_(some))
        found |= {key: tag for key, tag in (await session.execute(merged)).all()}  # noqa: C416 - rows are no pairs to mypy
    return found


def _new(number: int, user_id: int, key: str, name: str, now: datetime) -> dict[str, Any]:
    return {
        "id": number, "scope": TagScope.PERSONAL.value, "owner_id": user_id, "space": user_id, "key": key, "name": name, "name_key": key,
        "color": DEFAULT_COLOR, "usage_count": 0, "last_used_at": None, "created_at": now, "deleted_at": None,
    }  # fmt: skip
