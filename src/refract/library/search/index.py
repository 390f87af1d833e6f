"""The search index: tokens of items."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Insert, Text, bindparam, func, select

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import build_upsert, upsert
from refract.core.words import encode_number, encode_parts, encode_texts
from refract.library.models import Item, ItemTag, SavedPage
from refract.library.search.models import ItemSearch
from refract.library.search.terms import OWNER_MARK, PART, TITLE, TITLE_PART, WORD
from refract.tags.models import Tag

MAX_TOKENS = 10_000
"""Distinct tokens per item, enough for a long book.

Words after that are not found, which keeps every database within its limits.
"""
MAX_INLINE_CHARACTERS = 20_000
"""Longer texts are tokenised in a thread instead of on the event loop."""
_BATCH_SIZE = 200
_SCHEME = re.compile(r"^\s*https?://(www\.)?", re.IGNORECASE)


async def index_item(session: WriteSession, item: Item) -> None:
    """Index an item anew: title, summary, notes, text, fetched page and tags.

    Called after every change of them.
    """
    await session.flush()
    await index_items(session, [item.id])


async def index_bare_item(session: WriteSession, item: Item) -> None:
    """Index a new item, which has no tags and no page yet. Nothing is read."""
    if len(item.text) + len(item.notes or "") > MAX_INLINE_CHARACTERS:
        rows = await asyncio.to_thread(_build_token_rows, [item], {}, {})
    else:
        rows = _build_token_rows([item], {}, {})
    await write_tokens(session, rows)


async def index_items(session: WriteSession, item_ids: Collection[int]) -> None:
    """Index several items, by four statements per two hundred. Deleted ones are left out."""
    for batch in iter_batches(sorted(item_ids), _BATCH_SIZE):
        fields = select(
            Item.id,
            Item.user_id,
            Item.title,
            Item.summary,
            Item.notes,
            Item.text,
            Item.url,
            Item.site,
        ).where(Item.id.in_(batch))
        items = (await session.execute(fields)).all()
        tags = await _load_tag_names(session, batch)
        pages = await _load_pages(session, batch)
        size = sum(len(item.text) + len(item.notes or "") for item in items) + sum(
            len(text or "") for page in pages.values() for text in page
        )
        if size <= MAX_INLINE_CHARACTERS:
            rows = _build_token_rows(items, tags, pages)
        else:  # a page may have a hundred thousand words
            rows = await asyncio.to_thread(_build_token_rows, items, tags, pages)
        await write_tokens(session, rows)


async def write_tokens(session: WriteSession, rows: Sequence[dict[str, Any]]) -> None:
    """Insert or update tokens."""
    if not rows:
        return
    if session.dialect == "postgresql":
        await (await session.connection()).execute(_build_vector_upsert(), rows)
    else:
        texts = [{"item_id": row["number"], "tokens": " ".join(row["words"])} for row in rows]
        await upsert(session, ItemSearch, texts, ["tokens"])


def build_tokens(
    user_id: int,
    titles: Iterable[str | None],
    texts: Iterable[str | None],
    host: str | None = None,
) -> list[str]:
    """Return the tokens of an item.

    They are its owner, the words of title and tags twice, all other words once, and the parts of
    words of title, tags and host.
    """
    strong = [text for text in titles if text]
    first = encode_texts(TITLE, strong, MAX_TOKENS // 10)
    rest = encode_texts(WORD, [*strong, *texts, host], MAX_TOKENS)
    parts = encode_parts(TITLE_PART, strong, MAX_TOKENS // 10)
    parts |= encode_parts(PART, [host], MAX_TOKENS // 10)
    return [encode_number(OWNER_MARK, user_id), *first, *rest, *parts]


def _build_token_rows(
    items: Sequence[Any],
    tags: Mapping[int, Iterable[str]],
    pages: Mapping[int, Iterable[str | None]],
) -> list[dict[str, Any]]:
    return [
        {
            "number": item.id,
            "words": _build_item_tokens(item, tags.get(item.id, ()), pages.get(item.id, ())),
        }
        for item in items
    ]


def _build_item_tokens(item: Any, tags: Iterable[str], page: Iterable[str | None]) -> list[str]:
    address = _SCHEME.sub("", item.url) if item.url else None
    text = address or item.text
    titles, texts = [item.title, *tags], [item.summary, item.notes, text, *page]
    return build_tokens(item.user_id, titles, texts, item.site)


async def _load_tag_names(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    query = (
        select(ItemTag.item_id, Tag.name)
        .join(Tag, Tag.id == ItemTag.tag_id)
        .where(ItemTag.item_id.in_(item_ids))
    )
    for item_id, name in (await session.execute(query.order_by(Tag.id))).all():
        found.setdefault(item_id, []).append(name)
    return found


async def _load_pages(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[str | None]]:
    fields = select(
        SavedPage.item_id,
        SavedPage.title,
        SavedPage.description,
        SavedPage.author,
        SavedPage.site,
        SavedPage.text,
    )
    rows = (await session.execute(fields.where(SavedPage.item_id.in_(item_ids)))).all()
    return {item_id: list(page) for item_id, *page in rows}


@cache
def _build_vector_upsert() -> Insert:
    words: ColumnElement[Any] = bindparam("words", type_=ARRAY(Text))
    statement = build_upsert("postgresql", ItemSearch, ["tokens"])
    return statement.values(item_id=bindparam("number"), tokens=func.array_to_tsvector(words))
