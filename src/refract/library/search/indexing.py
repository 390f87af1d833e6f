"""Keeping the words of items."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ARRAY, BindParameter, Table, Text, bindparam, delete, func, select
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from refract.core.db import ReadSession, WriteSession
from refract.core.rows import slices
from refract.core.settings import Dialect
from refract.core.words import encode_number, encode_texts
from refract.library.models import Item, ItemPage, ItemTag
from refract.library.search.terms import OWNER, TITLE, WORD
from refract.library.search_models import ItemSearch
from refract.tags.models import Tag

MOST_TOKENS = 10_000
"""Distinct ones of one item: a long book. What comes after is not found, and no database reaches its limits."""
MAX_INLINE = 20_000
"""Characters whose words are found on the event loop; those of more are found in a thread."""
_SLICE = 200
_SCHEME = re.compile(r"^\s*https?://(www\.)?", re.IGNORECASE)


async def index(session: WriteSession, item: Item) -> None:
    """Take in an item's words anew: title, summary, text, fetched page and tags. Called after every change of any of them."""
    await session.flush()
    await reindex(session, [item.id])


async def reindex(session: WriteSession, item_ids: Collection[int]) -> None:
    """The same for several, in four statements for each two hundred. Items that are gone are left out."""
    for some in slices(sorted(item_ids), _SLICE):
        fields = select(Item.id, Item.user_id, Item.title, Item.summary, Item.text, Item.url, Item.site).where(Item.id.in_(some))
        items = (await session.execute(fields)).all()
        tags = await _tag_names(session, some)
        pages = await _pages(session, some)
        size = sum(len(one.text) for one in items) + sum(len(text or "") for page in pages.values() for text in page)
        if size <= MAX_INLINE:
            rows = _token_rows(items, tags, pages)
        else:  # a page may have a hundred thousand words, which are looked at one by one
            rows = await asyncio.to_thread(_token_rows, items, tags, pages)
        await put(session, rows)


async def put(session: WriteSession, rows: Sequence[dict[str, Any]]) -> None:
    """Write tokens, whether or not there were any."""
    if rows:
        if session.dialect != "postgresql":
            rows = [{"number": row["number"], "words": " ".join(row["words"])} for row in rows]
        await (await session.connection()).execute(_upsert(session.dialect), rows)


async def forget(session: WriteSession, item_ids: Sequence[int]) -> None:
    for some in slices(item_ids):
        await session.execute(delete(ItemSearch).where(ItemSearch.item_id.in_(some)).execution_options(synchronize_session=False))


def tokens_of(user_id: int, titles: Iterable[str | None], texts: Iterable[str | None]) -> list[str]:
    """What the index keeps of an item: whose it is, the words of title and tags twice, those of everything else once."""
    strong = [text for text in titles if text]
    first = encode_texts(TITLE, strong, MOST_TOKENS // 10)
    rest = encode_texts(WORD, [*strong, *texts], MOST_TOKENS)
    return [encode_number(OWNER, user_id), *first, *rest]


def _token_rows(items: Sequence[Any], tags: Mapping[int, Iterable[str]], pages: Mapping[int, Iterable[str | None]]) -> list[dict[str, Any]]:
    return [{"number": item.id, "words": _tokens(item, tags.get(item.id, ()), pages.get(item.id, ()))} for item in items]


def _tokens(one: Any, tags: Iterable[str], page: Iterable[str | None]) -> list[str]:
    address = _SCHEME.sub("", one.url) if one.url else None
    text = address or one.text
    return tokens_of(one.user_id, [one.title, *tags], [one.summary, text, one.site, *page])


async def _tag_names(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    borne = select(ItemTag.item_id, Tag.name).join(Tag, Tag.id == ItemTag.tag_id).where(ItemTag.item_id.in_(item_ids))
    for item_id, name in (await session.execute(borne.order_by(Tag.id))).all():
        found.setdefault(item_id, []).append(name)
    return found


async def _pages(session: ReadSession, item_ids: Sequence[int]) -> dict[int, list[str | None]]:
    fields = select(ItemPage.item_id, ItemPage.title, ItemPage.description, ItemPage.author, ItemPage.site, ItemPage.text)
    rows = (await session.execute(fields.where(ItemPage.item_id.in_(item_ids)))).all()
    return {item_id: list(page) for item_id, *page in rows}


def _upsert(dialect: Dialect) -> Any:
    table = cast("Table", ItemSearch.__table__)
    number: BindParameter[int] = bindparam("number")
    words: BindParameter[str] = bindparam("words")
    if dialect == "postgresql":
        kept = func.array_to_tsvector(bindparam("words", type_=ARRAY(Text)))
        fresh = postgresql_insert(table).values(item_id=number, tokens=kept)
        return fresh.on_conflict_do_update(index_elements=["item_id"], set_={"tokens": fresh.excluded.tokens})
    if dialect == "sqlite":
        anew = sqlite_insert(table).values(item_id=number, tokens=words)
        return anew.on_conflict_do_update(index_elements=["item_id"], set_={"tokens": anew.excluded.tokens})
    other = mysql_insert(table).values(item_id=number, tokens=words)
    return other.on_duplicate_key_update(tokens=other.inserted.tokens)
