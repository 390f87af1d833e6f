"""Creating, renaming and counting tags."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import update

from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.ids import IdSource
from refract.identity import audit
from refract.tags import queries
from refract.tags.errors import TagExists
from refract.tags.grammar import check_color, check_shared, slugify
from refract.tags.models import Tag, build_tag_row


async def ensure_shared_tags(
    session: WriteSession, ids: IdSource, names: Collection[str], now: datetime
) -> dict[str, Tag]:
    """Return the shared tag for each name, created or revived where necessary.

    The slug decides which names are the same tag, the unique key decides races. Names must have
    passed `check_shared`.
    """
    by_slug: dict[str, str] = {}
    for name in names:
        by_slug.setdefault(slugify(name), name)
    known = await queries.find_shared_tags(session, list(by_slug))
    missing = sorted(set(by_slug) - set(known))
    if missing:
        numbers = ids.next_ids(len(missing))
        rows = [
            build_tag_row(number, None, key, by_slug[key], now)
            for number, key in zip(numbers, missing, strict=True)
        ]
        await insert_if_absent(session, Tag, rows)
        known |= await queries.find_shared_tags(session, missing)
    await _revive_tags(session, [known[key] for key in by_slug])
    return {name: known[slugify(name)] for name in names}


async def create_shared_tag(
    session: WriteSession, ids: IdSource, name: str, color: str | None, now: datetime
) -> tuple[Tag, bool]:
    """Return the shared tag of this name, and whether it is new or revived.

    The colour only applies in that case.
    """
    clean = check_shared(name)
    color = None if color is None else check_color(color)
    before = (await queries.find_shared_tags(session, [slugify(clean)])).get(slugify(clean))
    made = before is None or before.deleted_at is not None
    tag = (await ensure_shared_tags(session, ids, [clean], now))[clean]
    if made and color is not None:
        tag.color = color
        await session.flush()
    return tag, made


async def find_live_shared_tags(session: ReadSession, names: Collection[str]) -> dict[int, Tag]:
    """Return the existing shared tags among these names, by id."""
    found = await queries.find_shared_tags(session, {slugify(name) for name in names})
    return {tag.id: tag for tag in found.values() if tag.deleted_at is None}


async def adjust_usage(session: WriteSession, changes: Mapping[int, int], now: datetime) -> None:
    """Change the usage count of each tag. An increase sets the time of last use."""
    for tag_id, change in sorted(
        changes.items()
    ):  # in one order everywhere, so that callers cannot deadlock
        if change:
            used = {"last_used_at": now} if change > 0 else {}
            moved = (
                update(Tag)
                .where(Tag.id == tag_id)
                .values(usage_count=Tag.usage_count + change, **used)
            )
            await session.execute(moved.execution_options(synchronize_session=False))


async def change_shared_tag(
    session: WriteSession,
    tag: Tag,
    *,
    by: int | None,
    at: datetime,
    name: str | None = None,
    color: str | None = None,
) -> Tag:
    """Rename or recolour a shared tag. Its slug stays, so references stay valid."""
    if name is not None:
        name = check_shared(name)
        other = (await queries.find_shared_tags(session, [slugify(name)])).get(slugify(name))
        if other is not None and other.id != tag.id:
            raise TagExists(name=other.name)
        tag.name, tag.name_key = name, slugify(name)
    if color is not None:
        tag.color = check_color(color)
    audit.add_entry(session, "tag.changed", at=at, actor_id=by, target=tag.key)
    await session.flush()
    return tag


async def _revive_tags(session: WriteSession, tags: Collection[Tag]) -> None:
    for tag in tags:
        if tag.deleted_at is not None:
            tag.deleted_at = None
    await session.flush()
