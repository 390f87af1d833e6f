"""No query of the library reads a whole table: list, filters, search, similar, tags, imports."""

from typing import Any

from sqlalchemy import select, text

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.models import ImportRow
from refract.library.imports import Bookmark
from refract.library.imports.decisions import SeenRows
from refract.library.imports.importer import preview_rows
from refract.library.models import Item, ItemType
from refract.library.queries.browse import (
    ArchivedFilter,
    LibraryFilter,
    count_facets,
    list_items,
)
from refract.library.search.index import build_tokens, write_tokens
from refract.library.search.similar import find_similar_items
from refract.tags import personal_tags
from refract.tags.models import Tag
from refract.tags.queries import TagSort, load_tags_page
from tests.library.test_plans import BIG as ITEM_TABLES
from tests.library.test_plans import fill_items
from tests.plans import Question, assert_no_scans

BIG = ITEM_TABLES | {"item_search"}


def _questions(rt: Runtime, ada: User, item: Item) -> dict[str, Question]:
    cursors = CursorCodec(rt.secret)

    def page(**asked: Any) -> Question:
        async def read(session: ReadSession) -> None:
            library_filter = LibraryFilter(ada.id, **asked)
            first = await list_items(session, cursors, library_filter, limit=5, cursor=None)
            if first.next_cursor:
                await list_items(
                    session, cursors, library_filter, limit=5, cursor=first.next_cursor
                )

        return read

    def tags(sort: TagSort) -> Question:
        mine = Tag.space == ada.id
        return lambda session: load_tags_page(
            session, cursors, [mine], ada.id, q=None, sort=sort, limit=50, cursor=None
        )

    rows = [
        Bookmark("1", "https://example.com/1000"),
        Bookmark("2", "A note", created_at=rt.clock.now()),
    ]
    return {
        "seed_004 library (idx_items_user_archived)": page(),
        "by type": page(type=ItemType.ARTICLE),
        "with a tag": page(tags=["t"]),
        "without a tag": page(untagged=True),
        "of a time": page(after=rt.clock.now(), before=rt.clock.now()),
        "seed_004 search": page(q="word number1200"),
        "unread": page(unread=True),
        "favorites": page(favorite=True, archived=ArchivedFilter.INCLUDED),
        "archive": page(archived=ArchivedFilter.ONLY),
        "archive and library": page(archived=ArchivedFilter.INCLUDED),
        "search for a state": page(q="is:unread"),
        "search with a state": page(q="number1200 is:favorite"),
        "search with a tag": page(q="word #t"),
        "search by beginnings": page(q="wor numb"),
        "filters with counts": lambda session: count_facets(session, LibraryFilter(ada.id)),
        "filters of a search": lambda session: count_facets(
            session, LibraryFilter(ada.id, q="number1200")
        ),
        "similar": lambda session: find_similar_items(session, item, 10),
        "tags by name": tags(TagSort.NAME),
        "tags by usage": tags(TagSort.USAGE),
        "tags by last use": tags(TagSort.LAST_USED),
        "a tag by name": lambda session: personal_tags.find_tags_by_key(session, ada.id, ["t"]),
        "what an import finds here": lambda session: preview_rows(
            session, ada.id, rows, SeenRows(), rt.clock.now()
        ),
        "rows of an import": lambda session: session.scalars(
            select(ImportRow).where(ImportRow.import_id == 1, ImportRow.outcome == "X")
        ),
    }


async def test_no_question_reads_a_whole_table(rt: Runtime) -> None:
    ada, mine = await fill_items(rt)
    async with rt.db.write() as session:
        owners = {
            row.id: row.user_id
            for row in (await session.execute(select(Item.id, Item.user_id))).all()
        }
        rows = [
            {"number": one, "words": build_tokens(owner, [f"Word number{one}"], ["text"])}
            for one, owner in owners.items()
        ]
        for some in iter_batches(rows, 2_000):
            await write_tokens(session, some)
        item = await session.get_one(Item, mine[0])
        item.title = "Word number1200"
    await _settle(rt)
    await assert_no_scans(rt, _questions(rt, ada, item), BIG)


async def _settle(rt: Runtime) -> None:
    words = {"sqlite": "ANALYZE", "postgresql": "ANALYZE", "mysql": "ANALYZE TABLE item_search"}
    async with rt.db.engine.connect() as connection:
        await connection.execute(text(words[rt.db.dialect]))
        await connection.commit()
