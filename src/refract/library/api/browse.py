"""The library: list and search, counts for filters, similar items, reading."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field, StringConstraints

from refract.core.pagination import CursorCodec
from refract.core.schemas import Id, OutputSchema, Timestamp
from refract.core.threads import WorkThreadPool
from refract.identity.dependencies import ReadCaller
from refract.library.errors import ItemNotFound
from refract.library.models import ItemStatus, ItemType, SavedPage
from refract.library.queries import items as queries_items
from refract.library.queries.browse import (
    ArchivedFilter,
    LibraryFilter,
    LibrarySort,
    LibraryView,
    count_facets,
    list_items,
)
from refract.library.queries.serializers import serialize_items
from refract.library.reader_view import build_reader_view
from refract.library.schemas import ItemOut, ItemTagOut
from refract.library.search.similar import find_similar_items
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

library_router = api_router("/library", "library")
router = api_router("/items", "items")

StateParam = Annotated[
    ItemStatus, Query(description="Status of the items. Default: confirmed ones.")
]
TypeParam = Annotated[ItemType | None, Query(description="Only notes, or only articles.")]
TagsParam = Annotated[
    list[Annotated[str, StringConstraints(max_length=200)]] | None,
    Query(max_length=20, description="A tag's name or id. Items must have all of several."),
]
UntaggedParam = Annotated[bool, Query(description="Only items without any tag.")]
UnreadParam = Annotated[
    bool | None, Query(description="Only unread items, or only read ones (`false`).")
]
FavoriteParam = Annotated[
    bool | None, Query(description="Only favorites, or only other items (`false`).")
]
ArchivedParam = Annotated[
    ArchivedFilter | None,
    Query(
        description=(
            "Only archived items (`true`), only other items (`false`), or both (`any`)."
            " Default: `any` with `q`, otherwise `false`."
        )
    ),
]
ConfirmedAfterParam = Annotated[
    Timestamp | None, Query(description="Confirmed at this time or later.")
]
ConfirmedBeforeParam = Annotated[Timestamp | None, Query(description="Confirmed before this time.")]
SortParam = Annotated[
    LibrarySort,
    Query(description="Order of the list by date. With `q` the best matches are first."),
]
SearchParam = Annotated[
    str | None,
    Query(
        max_length=200,
        description=(
            "Words of title, summary, notes, text, page or tags, matched by their beginning; in"
            " titles, tags and hosts also inside a word. `#tag` requires a tag; `is:unread`,"
            " `is:read`, `is:favorite` and `is:archived` a reading state; `-word`, `-#tag` and"
            " `-is:unread` exclude."
        ),
        examples=['postgres queue #databases -"redis"'],
    ),
]


async def _parse_filter(
    actor: ReadCaller,
    q: SearchParam = None,
    tag: TagsParam = None,
    type: TypeParam = None,  # noqa: A002 - name of the filter
    state: StateParam = ItemStatus.ARCHIVED,
    untagged: UntaggedParam = False,
    after: ConfirmedAfterParam = None,
    before: ConfirmedBeforeParam = None,
    unread: UnreadParam = None,
    favorite: FavoriteParam = None,
    archived: ArchivedParam = None,
) -> LibraryFilter:
    return LibraryFilter(
        actor.user.id,
        state,
        type,
        tuple(tag or ()),
        untagged,
        after,
        before,
        q,
        unread=unread,
        favorite=favorite,
        archived=archived,
    )


LibraryFilterQuery = Annotated[LibraryFilter, Depends(_parse_filter)]


class LibraryPage(OutputSchema):
    items: list[ItemOut]
    next_cursor: str | None
    approximate: bool = Field(
        default=False,
        description="No item has these words; these are similar (PostgreSQL with trigrams).",
    )


class LibraryTagCount(OutputSchema):
    tag: ItemTagOut
    items: int


class TypeCount(OutputSchema):
    type: ItemType
    items: int


class LibraryFilters(OutputSchema):
    """The number of items that each further filter would leave, among the newest 1,000."""

    total: int = Field(
        description="At most 1,001, which means more than 1,000: then all numbers are minimums."
    )
    types: list[TypeCount]
    tags: list[LibraryTagCount] = Field(
        description="The fifty most frequent tags, most frequent first."
    )
    untagged: int
    unread: int = Field(
        description=(
            "Unread items: like the next two, at most 1,001 of all items, whatever reading states"
            " are chosen."
        )
    )
    favorites: int
    archived: int


class SimilarItem(OutputSchema):
    item: ItemOut
    likeness: float = Field(description="Between 0 and 1.")


class SimilarItems(OutputSchema):
    items: list[SimilarItem]
    next_cursor: str | None = None


class ReadingOut(OutputSchema):
    """An item to read. `html` is structured text: nothing in it runs, loads or styles anything."""

    title: str | None
    author: str | None
    site: str | None
    url: str | None
    language: str | None
    published_at: datetime | None
    html: str
    words: int
    minutes: int


@library_router.get("")
async def list_library(
    library_filter: LibraryFilterQuery,
    rt: Rt,
    sort: SortParam = LibrarySort.NEWEST,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
) -> LibraryPage:
    """List your library, newest confirmed first unless `sort` says otherwise.

    Archived items are left out, unless `archived` or a search asks for them.
    With `q`: items whose title and tags have all words come first, and the latest captured first in
    each group.
    """
    chosen = replace(library_filter, sort=sort)
    async with rt.db.read() as session:
        page = await list_items(session, CursorCodec(rt.secret), chosen, limit=limit, cursor=cursor)
        items = await serialize_items(session, page.items)
    return LibraryPage(items=items, next_cursor=page.next_cursor, approximate=page.approximate)


@library_router.get("/filters")
async def count_filters(library_filter: LibraryFilterQuery, rt: Rt) -> LibraryFilters:
    """Count the items that each further filter would leave: type, tag, untagged, reading state."""
    async with rt.db.read() as session:
        facets = await count_facets(session, library_filter)
    tags = [
        LibraryTagCount(
            tag=ItemTagOut(id=item_tag.id, name=item_tag.name, color=item_tag.color), items=count
        )
        for item_tag, count in facets.tags
    ]
    types = [TypeCount(type=ItemType(kind), items=count) for kind, count in facets.types.items()]
    return LibraryFilters(
        total=facets.total,
        types=types,
        tags=tags,
        untagged=facets.untagged,
        unread=facets.views[LibraryView.UNREAD],
        favorites=facets.views[LibraryView.FAVORITES],
        archived=facets.views[LibraryView.ARCHIVE],
    )


@router.get("/{item_id}/similar", responses=problems(ItemNotFound))
async def list_similar(
    item_id: Id,
    actor: ReadCaller,
    rt: Rt,
    limit: Annotated[int, Query(ge=1, le=50, description="Maximum number of items.")] = 10,
) -> SimilarItems:
    """List your confirmed items that share words with this one, most similar first."""
    async with rt.db.read() as session:
        found = await find_similar_items(
            session, await queries_items.get_own_item(session, actor.user.id, item_id), limit
        )
        cards = await serialize_items(session, [item for item, _ in found])
    return SimilarItems(
        items=[
            SimilarItem(item=card, likeness=score)
            for card, (_, score) in zip(cards, found, strict=True)
        ]
    )


@router.get("/{item_id}/reader", responses=problems(ItemNotFound))
async def read_saved(item_id: Id, actor: ReadCaller, rt: Rt) -> ReadingOut:
    """Read the saved text of an item; for a note, the note."""
    async with rt.db.read() as session:
        item = await queries_items.get_own_item(session, actor.user.id, item_id)
        page = await session.get(SavedPage, item_id)
    return ReadingOut.model_validate(
        await rt.singleton(WorkThreadPool).run(build_reader_view, item, page)
    )
