"""Tags of imported items."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.ids import IdSource
from refract.imports.models import ImportRun
from refract.library.imports.rows import Bookmark, TagRow
from refract.library.models import Item, ItemTag
from refract.tags import personal_tags
from refract.tags.grammar import personal_key
from refract.tags.models import Tag, TagAlias
from refract.tags.service import adjust_usage


async def ensure_import_tags(
    session: WriteSession,
    ids: IdSource,
    import_run: ImportRun,
    bookmarks: Mapping[int, Bookmark],
    tag_rows: Sequence[TagRow],
    now: datetime,
) -> dict[str, Tag]:
    """Return all tags that the rows name. New ones are recorded, for a roll-back of the import."""
    names = list(
        dict.fromkeys(
            [
                *(name for row in bookmarks.values() for name in row.tags),
                *(row.name for row in tag_rows),
            ]
        )
    )
    if not names:
        return {}
    before = await personal_tags.find_tags_by_key(
        session, import_run.user_id, {personal_key(name) for name in names}
    )
    deleted_ids = {tag.id for tag in before.values() if tag.deleted_at is not None}
    found = await personal_tags.ensure_tags(session, ids, import_run.user_id, names, now)
    known = {tag.id for tag in before.values()}
    made = sorted({tag.id for tag in found.values()} - known)
    import_run.made_tags = {
        "made": [*import_run.made_tags["made"], *map(str, made)],
        "revived": [
            *import_run.made_tags["revived"],
            *(str(number) for number in sorted({tag.id for tag in found.values()} & deleted_ids)),
        ],
    }
    for row in tag_rows:
        if found[row.name].id in made:
            found[row.name].color = row.color
        await _add_aliases(session, import_run.user_id, found[row.name], row, now)
    await session.flush()
    return found


async def _add_aliases(
    session: WriteSession, user_id: int, tag: Tag, row: TagRow, now: datetime
) -> None:
    """Add the aliases of an imported tag, except those that are taken."""
    keys = {personal_key(alias): alias for alias in row.aliases}
    taken = await personal_tags.find_tags_by_key(session, user_id, keys)
    fresh = [
        {"space": user_id, "key": key, "tag_id": tag.id, "name": keys[key], "created_at": now}
        for key in sorted(set(keys) - set(taken))
    ]
    await insert_if_absent(session, TagAlias, fresh)


async def tag_items(
    session: WriteSession, tags_by_item: Mapping[int, Sequence[int]], now: datetime
) -> None:
    """Tag new items. Tags that are deleted at this very moment are left out."""
    named = {tag_id for tag_ids in tags_by_item.values() for tag_id in tag_ids}
    if not named:
        return
    owner = await session.scalar(select(Item.user_id).where(Item.id == next(iter(tags_by_item))))
    locked = await personal_tags.lock_tags(session, int(owner or 0), named)
    live = {tag_id for tag_id, tag in locked.items() if tag.deleted_at is None}
    pairs = [
        (item_id, tag_id)
        for item_id, tag_ids in tags_by_item.items()
        for tag_id in sorted(set(tag_ids) & live)
    ]
    rows = [{"item_id": item_id, "tag_id": tag_id, "created_at": now} for item_id, tag_id in pairs]
    await insert_rows(session, ItemTag, rows)
    await adjust_usage(session, Counter(tag_id for _, tag_id in pairs), now)
