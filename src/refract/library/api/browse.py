"""The library: list and search, counts for filters, similar items, reading."""

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import Field, StringConstraints

from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id, Output, Timestamp
from refract.core.threads import WorkThreads
from refract.identity.actors import Reader
from refract.library import queries
from refract.library.cards import cards_of
from refract.library.edge import ASKING
from refract.library.errors import ItemNotFound
from refract.library.models import ItemPage, ItemStatus, ItemType
from refract.library.reader import reading_of
from refract.library.schemas import ItemOut, ItemTagOut
from refract.library.search.similar import similar_items
from refract.library.shelf import Shelf, facets_of, page_of_items
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, Limit, Rt, api_router

library_router = api_router("/library", "library")
router = api_router("/items", "items")

State = Annotated[ItemStatus, Query(description="Left out: what is confirmed.")]
Type = Annotated[ItemType | None, Query(description="Only notes, or only articles.")]
Tags = Annotated[
    list[Annotated[str, StringConstraints(max_length=200)]] | None,
    Query(max_length=20, description="A tag's name or id; several must all be there."),
]
Untagged = Annotated[bool, Query(description="Only items without any tag.")]
After = Annotated[Timestamp | None, Query(description="Confirmed at this moment or later.")]
Before = Annotated[Timestamp | None, Query(description="Confirmed before this moment.")]
Words = Annotated[
    str | None,
    Query(
        max_length=200,
        description="Words of title, summary, text, page or tags, each by its beginning; `#tag` is borne, `-word` and `-#tag` are not.",
        examples=['postgres queue #databases -"redis"'],
    ),
]


class LibraryPage(Output):
    items: list[ItemOut]
    next_cursor: str | None
    approximate: bool = Field(default=False, description="Nothing has these words; these are near to them (PostgreSQL with trigrams).")


class TagCount(Output):
    tag: ItemTagOut
    items: int


class TypeCount(Output):
    type: ItemType
    items: int


class LibraryFilters(Output):
    """How many items each further filter would leave."""

    total: int
    types: list[TypeCount]
    tags: list[TagCount] = Field(description="The fifty most frequent, the most frequent first.")
    untagged: int


class SimilarItem(Output):
    item: ItemOut
    likeness: float = Field(description="Between 0 and 1.")


class SimilarItems(Output):
    items: list[SimilarItem]
    next_cursor: str | None = None


class ReadingOut(Output):
    """An item to read. `html` holds text with its structure: nothing in it runs, loads or styles anything."""

    title: str | None
    author: str | None
    site: str | None
    url: str | None
    language: str | None
    published_at: datetime | None
    html: str
    words: int
    minutes: int


@library_router.get("", responses=problems(*ASKING, InvalidCursor))
async def list_library(
    actor: Reader,
    rt: Rt,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    q: Words = None,
    tag: Tags = None,
    type: Type = None,  # noqa: A002 - what the filter is called
    state: State = ItemStatus.ARCHIVED,
    untagged: Untagged = False,
    after: After = None,
    before: Before = None,
) -> LibraryPage:
    """My library, the newest confirmed first. With words: title and tags that have them all first, the latest captured first in each."""
    shelf = Shelf(actor.user.id, state, type, tuple(tag or ()), untagged, after, before, q)
    async with rt.db.read() as session:
        page = await page_of_items(session, Cursors(rt.secret), shelf, limit=limit, cursor=cursor)
        items = await cards_of(session, page.items)
    return LibraryPage(items=items, next_cursor=page.next_cursor, approximate=page.approximate)


@library_router.get("/filters", responses=problems(*ASKING))
async def count_filters(
    actor: Reader,
    rt: Rt,
    q: Words = None,
    tag: Tags = None,
    type: Type = None,  # noqa: A002 - what the filter is called
    state: State = ItemStatus.ARCHIVED,
    untagged: Untagged = False,
    after: After = None,
    before: Before = None,
) -> LibraryFilters:
    """How many items of a list each further filter would leave: by type, by tag, without tags."""
    shelf = Shelf(actor.user.id, state, type, tuple(tag or ()), untagged, after, before, q)
    async with rt.db.read() as session:
        facets = await facets_of(session, shelf)
    tags = [TagCount(tag=ItemTagOut(id=one.id, name=one.name, color=one.color), items=count) for one, count in facets.tags]
    types = [TypeCount(type=ItemType(kind), items=count) for kind, count in facets.types.items()]
    return LibraryFilters(total=facets.total, types=types, tags=tags, untagged=facets.untagged)


@router.get("/{item_id}/similar", responses=problems(*ASKING, ItemNotFound))
async def list_similar(
    item_id: Id, actor: Reader, rt: Rt, limit: Annotated[int, Query(ge=1, le=50, description="How many at most.")] = 10
) -> SimilarItems:
    """Confirmed items of mine that share words with this one, the likest first."""
    async with rt.db.read() as session:
        found = await similar_items(session, await queries.own_item(session, actor.user.id, item_id), limit)
        cards = await cards_of(session, [item for item, _ in found])
    return SimilarItems(items=[SimilarItem(item=card, likeness=score) for card, (_, score) in zip(cards, found, strict=True)])


@router.get("/{item_id}/reader", responses=problems(*ASKING, ItemNotFound))
async def read_saved(item_id: Id, actor: Reader, rt: Rt) -> ReadingOut:
    """The saved text of an item, for reading; of a note, the note."""
    async with rt.db.read() as session:
        item = await queries.own_item(session, actor.user.id, item_id)
        page = await session.get(ItemPage, item_id)
    return ReadingOut.model_validate(await rt.part(WorkThreads).run(reading_of, item, page))
