"""The user's tags, rules and items that a proposal is based on."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from refract.core.db.session import ReadSession
from refract.library.enrichment.offline import build_word_profile
from refract.library.enrichment.types import NeighbourItem, TaggingRule, UserBackground
from refract.library.models import Item, ItemStatus, ItemTag, Suggestion, SuggestionStatus
from refract.library.queries import items as queries_items
from refract.tags.models import Tag, TagAlias

MAX_TAGS = 1_000
MAX_NEIGHBOURS = 300
_MAX_NEIGHBOUR_TEXT = 800


async def load_background(session: ReadSession, user_id: int, item_id: int) -> UserBackground:
    """Return a user's tags, rules and latest confirmed items.

    Their number does not depend on the size of the library.
    """
    live = (
        select(Tag)
        .where(Tag.space == user_id, Tag.deleted_at.is_(None))
        .order_by(Tag.usage_count.desc(), Tag.id)
        .limit(MAX_TAGS)
    )
    vocabulary = {tag.key: tag.name for tag in await session.scalars(live)}
    merged = (
        select(TagAlias.key, Tag.name)
        .join(Tag, Tag.id == TagAlias.tag_id)
        .where(TagAlias.space == user_id)
        .limit(MAX_TAGS)
    )
    rules = [
        TaggingRule(rule.pattern, tuple(rule.tags))
        for rule in await queries_items.list_tag_rules(session, user_id)
    ]
    return UserBackground(
        vocabulary=vocabulary,
        aliases={row[0]: row[1] for row in (await session.execute(merged)).all()},
        rules=rules,
        neighbours=await _load_neighbours(session, user_id, item_id),
        unwanted=await _load_unwanted_keys(session, user_id, item_id),
    )


async def _load_neighbours(session: ReadSession, user_id: int, item_id: int) -> list[NeighbourItem]:
    newest = (
        select(Item.id, Item.title, Item.summary, Item.text)
        .where(Item.user_id == user_id, Item.status == ItemStatus.ARCHIVED, Item.id != item_id)
        .order_by(Item.confirmed_at.desc(), Item.id.desc())
        .limit(MAX_NEIGHBOURS)
    )
    rows = (await session.execute(newest)).all()
    tags: dict[int, list[str]] = {row.id: [] for row in rows}
    if rows:
        query = (
            select(ItemTag.item_id, Tag.name)
            .join(Tag, Tag.id == ItemTag.tag_id)
            .where(ItemTag.item_id.in_(list(tags)))
        )
        for number, name in (await session.execute(query)).all():
            tags[number].append(name)
    return await asyncio.to_thread(_build_neighbours, rows, tags)


def _build_neighbours(
    rows: Sequence[Any], tags: Mapping[int, Sequence[str]]
) -> list[NeighbourItem]:
    """Count the words of three hundred items.

    Slow (a tenth of a second and more): call it in a thread.
    """
    return [
        NeighbourItem(
            build_word_profile(row.title or "", row.summary or "", row.text[:_MAX_NEIGHBOUR_TEXT]),
            tuple(tags[row.id]),
        )
        for row in rows
        if tags[row.id]
    ]


async def _load_unwanted_keys(session: ReadSession, user_id: int, item_id: int) -> frozenset[str]:
    refused = select(Suggestion.normalised_name).where(
        Suggestion.user_id == user_id, Suggestion.status == SuggestionStatus.REJECTED
    )
    query = (
        select(Tag.key).join(ItemTag, ItemTag.tag_id == Tag.id).where(ItemTag.item_id == item_id)
    )
    return frozenset(await session.scalars(refused.distinct())) | frozenset(
        await session.scalars(query)
    )
