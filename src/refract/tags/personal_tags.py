"""Personal tags."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.ids import IdSource
from refract.core.phrases import Phrase
from refract.tags.errors import AliasNotFound, TagExists, TagNameReserved, TagNotFound
from refract.tags.grammar import check_color, check_personal, personal_key
from refract.tags.models import Tag, TagAlias, build_tag_row


async def ensure_tags(
    session: WriteSession, ids: IdSource, user_id: int, names: Collection[str], now: datetime
) -> dict[str, Tag]:
    """Return the person's tag for each name, created or restored where necessary.

    An alias comes first, then the tag of that name, restored if it was deleted, then a new one.
    The unique key decides races. Raises `InvalidTag`.
    """
    by_key: dict[str, str] = {}
    for name in names:
        clean = check_personal(name)
        by_key.setdefault(personal_key(clean), clean)
    known = await find_tags_by_key(session, user_id, list(by_key))
    missing = sorted(set(by_key) - set(known))
    if missing:
        rows = [
            build_tag_row(number, user_id, key, by_key[key], now)
            for number, key in zip(ids.next_ids(len(missing)), missing, strict=True)
        ]
        await insert_if_absent(session, Tag, rows)
        known |= await find_tags_by_key(session, user_id, missing)
    for tag in known.values():
        if tag.deleted_at is not None:
            tag.deleted_at = None
    await session.flush()
    return {name: known[personal_key(check_personal(name))] for name in names}


@dataclass(frozen=True, slots=True)
class EnsuredTag:
    """A tag, and whether it is new, was revived or existed."""

    tag: Tag
    how: Literal["new", "revived", "existing"]


async def create_tag(
    session: WriteSession, ids: IdSource, user_id: int, name: str, color: str | None, now: datetime
) -> EnsuredTag:
    """Return the tag of this name. The colour only applies to a new or revived tag."""
    color = None if color is None else check_color(color)
    clean = check_personal(name)
    before = (await find_tags_by_key(session, user_id, [personal_key(clean)])).get(
        personal_key(clean)
    )
    how: Literal["new", "revived", "existing"] = (
        "new" if before is None else "existing" if before.deleted_at is None else "revived"
    )
    number = ids.next_id() if before is None else 0
    if before is None:
        await insert_if_absent(
            session,
            Tag,
            [build_tag_row(number, user_id, personal_key(clean), clean, now)],
        )
    tag = (await ensure_tags(session, ids, user_id, [clean], now))[clean]
    if how == "new" and tag.id != number:
        return EnsuredTag(tag, "existing")  # another request has just created it
    if how != "existing" and color is not None:
        tag.color = color
        await session.flush()
    return EnsuredTag(tag, how)


async def find_tags_by_key(
    session: ReadSession, user_id: int, keys: Collection[str]
) -> dict[str, Tag]:
    """Return the person's tags by key, deleted ones too; aliases count as their tag."""
    found: dict[str, Tag] = {}
    for batch in iter_batches(sorted(keys)):
        own = select(Tag).where(Tag.space == user_id, Tag.key.in_(batch))
        found |= {tag.key: tag for tag in await session.scalars(own)}
        merged = (
            select(TagAlias.key, Tag)
            .join(Tag, Tag.id == TagAlias.tag_id)
            .where(TagAlias.space == user_id, TagAlias.key.in_(batch))
        )
        rows = (await session.execute(merged)).all()
        found |= {key: tag for key, tag in rows}  # noqa: C416 - rows are no pairs to mypy
    return found


async def lock_tags(
    session: WriteSession, user_id: int, tag_ids: Collection[int]
) -> dict[int, Tag]:
    """Return the person's tags with these ids, deleted ones too, locked and refreshed.

    To change the tags of items, lock the tags first, in the order of their ids. Then no merge,
    deletion or other such change happens meanwhile, and usage counts stay correct.
    """
    found: dict[int, Tag] = {}
    for batch in iter_batches(sorted(set(tag_ids))):
        rows = (
            select(Tag)
            .where(Tag.space == user_id, Tag.id.in_(batch))
            .order_by(Tag.id)
            .with_for_update()
        )
        found |= {
            tag.id: tag
            for tag in await session.scalars(rows.execution_options(populate_existing=True))
        }
    return found


async def lock_live_tag(session: WriteSession, user_id: int, tag_id: int) -> Tag:
    tag = (await lock_tags(session, user_id, [tag_id])).get(tag_id)
    if tag is None or tag.deleted_at is not None:
        raise TagNotFound
    return tag


async def change_tag(
    session: WriteSession,
    user_id: int,
    tag_id: int,
    *,
    name: str | None = None,
    color: str | None = None,
) -> Tag:
    """Rename or recolour a tag. Its old name becomes available."""
    tag = await lock_live_tag(session, user_id, tag_id)
    if color is not None:
        tag.color = check_color(color)
    if name is not None:
        clean = check_personal(name)
        key = personal_key(clean)
        if key != tag.key:
            await _reject_taken_name(session, user_id, key)
        try:
            async with session.begin_nested():
                tag.name, tag.key, tag.name_key = clean, key, key
                await session.flush()
        except IntegrityError as exc:
            raise TagExists(name=clean) from exc
    await session.flush()
    return tag


async def _reject_taken_name(session: ReadSession, user_id: int, key: str) -> None:
    alias = await session.get(TagAlias, (user_id, key))
    other = await session.scalar(select(Tag).where(Tag.space == user_id, Tag.key == key))
    if alias is not None:
        means = await session.get_one(Tag, alias.tag_id)
        raise TagNameReserved(
            name=alias.name,
            why=Phrase('it\'s an alias of "{tag}", which you can delete', tag=means.name),
        )
    if other is not None and other.deleted_at is None:
        raise TagExists(name=other.name)
    if other is not None:
        raise TagNameReserved(
            name=other.name,
            why=Phrase("a deleted tag has it, which you can create again and merge with this one"),
        )


async def list_aliases(session: ReadSession, tag_ids: Collection[int]) -> dict[int, list[str]]:
    """Return the aliases of each tag, sorted by name."""
    found: dict[int, list[str]] = {tag_id: [] for tag_id in tag_ids}
    for batch in iter_batches(sorted(tag_ids)):
        for alias in await session.scalars(
            select(TagAlias).where(TagAlias.tag_id.in_(batch)).order_by(TagAlias.key)
        ):
            found[alias.tag_id].append(alias.name)
    return found


async def delete_alias(session: WriteSession, user_id: int, tag_id: int, name: str) -> None:
    """Delete an alias. Used again, the name revives the tag that had it before the merge."""
    await lock_live_tag(session, user_id, tag_id)
    statement = delete(TagAlias).where(
        TagAlias.space == user_id,
        TagAlias.key == personal_key(name.strip()),
        TagAlias.tag_id == tag_id,
    )
    result = await session.execute(statement.execution_options(synchronize_session=False))
    if not get_rowcount(result):
        raise AliasNotFound


async def delete_unused_tags(
    session: WriteSession, tag_ids: Collection[int], *, created_since: datetime
) -> None:
    """Delete those of the tags that are new and unused: what created them was undone."""
    if not tag_ids:
        return
    aliased = select(TagAlias.tag_id).where(TagAlias.tag_id.in_(tag_ids))
    named = set(await session.scalars(aliased))
    await session.execute(
        delete(Tag)
        .where(
            Tag.id.in_(sorted(set(tag_ids) - named)),
            Tag.usage_count == 0,
            Tag.created_at >= created_since,
        )
        .execution_options(synchronize_session=False)
    )
