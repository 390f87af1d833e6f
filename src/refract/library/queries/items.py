"""Queries for items."""

from collections.abc import Sequence

from sqlalchemy import func, select, union_all

from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.urls import BadUrl, parse_web_url
from refract.library.errors import ItemNotFound
from refract.library.models import Item, ItemStatus, ItemUndo, SavedPage, Suggestion, TagRule
from refract.library.recognition import compute_url_digest

EXCERPT_CHARACTERS = 600
SEARCHED_CHARACTERS = 50_000


async def get_own_item(session: ReadSession, user_id: int, item_id: int) -> Item:
    """Return the user's own item. Raises `ItemNotFound`, for items of others too."""
    item = await session.scalar(select(Item).where(Item.id == item_id, Item.user_id == user_id))
    if item is None:
        raise ItemNotFound
    return item


async def list_urls(session: ReadSession, user_id: int, item_ids: Sequence[int]) -> list[str]:
    """Return the URLs of the user's items, in the order of the ids. Notes have none."""
    query = select(Item.id, Item.url).where(Item.id.in_(item_ids), Item.user_id == user_id)
    found = {item_id: url for item_id, url in await session.execute(query) if url}
    return [found[item_id] for item_id in item_ids if item_id in found]


async def lock_item_row(
    session: WriteSession, item_id: int, user_id: int | None = None
) -> Item | None:
    """Return the item, locked until the transaction ends.

    On PostgreSQL rows that refer to it, such as its tags, can still be added and removed: a change
    of a tag on many items does not wait for locks on them.
    """
    mine = (
        select(Item)
        .where(Item.id == item_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    item: Item | None = await session.scalar(
        mine if user_id is None else mine.where(Item.user_id == user_id)
    )
    return item


async def list_pending_items(
    session: ReadSession,
    cursors: CursorCodec,
    user_id: int,
    *,
    status: ItemStatus | None,
    limit: int,
    cursor: str | None,
) -> Page[Item]:
    """Return items that are being processed or wait for review, newest first."""
    binding = ["pending", user_id, status]
    query = select(Item).where(Item.user_id == user_id, Item.pending)
    if status is not None:
        query = query.where(Item.status == status)
    if cursor:
        query = query.where(
            build_after_clause([Item.id], cursors.decode(binding, cursor), descending=True)
        )
    rows = (await session.scalars(query.order_by(Item.id.desc()).limit(limit + 1))).all()
    return cursors.build_page(binding, rows, limit, lambda item: [item.id])


async def count_pending_items(session: ReadSession, user_id: int) -> int:
    """Return how many items are pending, counted no further than pages show."""
    pending = select(Item.id).where(Item.user_id == user_id, Item.pending).limit(100).subquery()
    return await session.scalar(select(func.count()).select_from(pending)) or 0


async def load_excerpt(session: ReadSession, item_id: int) -> str | None:
    """Return the beginning of the page that was fetched for an item, if there is one."""
    beginning = func.substr(SavedPage.text, 1, EXCERPT_CHARACTERS)
    return await session.scalar(select(beginning).where(SavedPage.item_id == item_id))


async def load_page_texts(session: ReadSession, item_ids: Sequence[int]) -> dict[int, str]:
    """Return the beginning of the text of fetched pages, long enough to find most words in it."""
    beginning = func.substr(SavedPage.text, 1, SEARCHED_CHARACTERS)
    query = select(SavedPage.item_id, beginning).where(SavedPage.item_id.in_(item_ids))
    return {item_id: str(text) for item_id, text in await session.execute(query)}


async def get_suggestions(
    session: ReadSession, item_ids: Sequence[int]
) -> dict[int, list[Suggestion]]:
    """Return the suggestions of each item, most confident first."""
    found: dict[int, list[Suggestion]] = {item_id: [] for item_id in item_ids}
    if item_ids:
        ordered = (
            select(Suggestion)
            .where(Suggestion.item_id.in_(item_ids))
            .order_by(Suggestion.confidence.desc(), Suggestion.id)
        )
        for suggestion in await session.scalars(ordered):
            found[suggestion.item_id].append(suggestion)
    return found


async def find_duplicates(
    session: ReadSession, user_id: int, items: Sequence[Item]
) -> dict[int, int]:
    """Return the earliest other item with the same page for each item that has one.

    Pages are the same by the saved URL or by the canonical one.
    """
    digests = {
        digest for item in items for digest in (item.url_digest, item.canonical_digest) if digest
    }
    if not digests:
        return {}
    conditions = (Item.user_id == user_id, Item.status != ItemStatus.DISCARDED)
    by_url = select(Item.id, Item.url_digest).where(
        *conditions, Item.url_digest.in_(sorted(digests))
    )
    by_canonical = select(Item.id, Item.canonical_digest).where(
        *conditions, Item.canonical_digest.in_(sorted(digests))
    )
    first: dict[str, int] = {}
    for item_id, digest in (await session.execute(union_all(by_url, by_canonical))).all():
        first[str(digest)] = min(item_id, first.get(str(digest), item_id))
    found: dict[int, int] = {}
    for item in items:
        earlier = [
            first[digest] for digest in (item.url_digest, item.canonical_digest) if digest in first
        ]
        if earlier and min(earlier) < item.id:
            found[item.id] = min(earlier)
    return found


async def list_tag_rules(session: ReadSession, user_id: int) -> Sequence[TagRule]:
    return (
        await session.scalars(
            select(TagRule).where(TagRule.user_id == user_id).order_by(TagRule.position)
        )
    ).all()


async def get_undo(session: ReadSession, item_id: int) -> ItemUndo | None:
    return await session.scalar(select(ItemUndo).where(ItemUndo.item_id == item_id))


MAX_SAVED_ITEMS = 5


async def find_saved_items(session: ReadSession, user_id: int, url: str) -> list[dict[str, str]]:
    """Return the user's items of a page, for the page of a link that leads there."""
    try:
        digest = compute_url_digest(parse_web_url(url))
    except BadUrl:
        return []
    query = (
        select(Item.id, Item.title, Item.text)
        .where(
            Item.user_id == user_id,
            Item.url_digest == digest,
            Item.status != ItemStatus.DISCARDED,
        )
        .order_by(Item.id)
        .limit(MAX_SAVED_ITEMS)
    )
    rows = await session.execute(query)
    return [{"id": str(number), "title": title or text[:80]} for number, title, text in rows]
