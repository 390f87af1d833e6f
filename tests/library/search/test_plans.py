"""No question about the library reads a whole table: list, filters, search, similar items, tags, imports."""

from typing import Any

import pytest
from sqlalchemy import event, select, text

from refract.core.db import ReadSession
from refract.core.page import Cursors
from refract.core.rows import slices
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.import_models import ImportRow
from refract.library.importing import Bookmark
from refract.library.importing.bring import try_out
from refract.library.importing.judging import Earlier
from refract.library.models import Item, ItemType
from refract.library.search.indexing import put, tokens_of
from refract.library.search.similar import similar_items
from refract.library.shelf import Shelf, facets_of, page_of_items
from refract.tags import personal
from refract.tags.models import Tag
from refract.tags.queries import TagSort, page_of_tags
from tests.library import test_plans as filled
from tests.library.test_plans import Question
from tests.links import test_plans as plans

BIG = filled.BIG | {"item_search"}


def _questions(rt: Runtime, ada: User, item: Item) -> dict[str, Question]:
    cursors = Cursors(rt.secret)

    def page(**asked: Any) -> Question:
        async def read(session: ReadSession) -> None:
            shelf = Shelf(ada.id, **asked)
            first = await page_of_items(session, cursors, shelf, limit=5, cursor=None)
            if first.next_cursor:
                await page_of_items(session, cursors, shelf, limit=5, cursor=first.next_cursor)

        return read

    def tags(sort: TagSort) -> Question:
        mine = Tag.space == ada.id
        return lambda session: page_of_tags(session, cursors, mine, ada.id, q=None, sort=sort, limit=50, cursor=None)

    rows = [Bookmark("1", "https://example.com/1000"), Bookmark("2", "A note", created_at=rt.clock.now())]
    return {
        "seed_004 library (idx_items_user_archived)": page(),
        "by type": page(type=ItemType.ARTICLE),
        "with a tag": page(tags=["t"]),
        "without a tag": page(untagged=True),
        "of a time": page(after=rt.clock.now(), before=rt.clock.now()),
        "seed_004 search": page(q="word number1200"),
        "search with a tag": page(q="word #t"),
        "search by beginnings": page(q="wor numb"),
        "filters with counts": lambda session: facets_of(session, Shelf(ada.id)),
        "filters of a search": lambda session: facets_of(session, Shelf(ada.id, q="number1200")),
        "similar": lambda session: similar_items(session, item, 10),
        "tags by name": tags(TagSort.NAME),
        "tags by usage": tags(TagSort.USAGE),
        "tags by last use": tags(TagSort.LAST_USED),
        "a tag by name": lambda session: personal.by_key(session, ada.id, ["t"]),
        "what an import finds here": lambda session: try_out(session, ada.id, rows, Earlier(), rt.clock.now()),
        "rows of an import": lambda session: session.scalars(select(ImportRow).where(ImportRow.import_id == 1, ImportRow.outcome == "X")),
    }


async def test_no_question_reads_a_whole_table(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "BIG", BIG)
    ada, mine = await filled._fill(rt)
    async with rt.db.write() as session:
        owners = {row.id: row.user_id for row in (await session.execute(select(Item.id, Item.user_id))).all()}
        rows = [{"number": one, "words": tokens_of(owner, [f"Word number{one}"], ["text"])} for one, owner in owners.items()]
        for some in slices(rows, 2_000):
            await put(session, some)
        item = await session.get_one(Item, mine[0])
        item.title = "Word number1200"
    await _settle(rt)
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    report: list[str] = []
    for name, question in _questions(rt, ada, item).items():
        asked.clear()
        event.listen(rt.db.reading_engine.sync_engine, "before_cursor_execute", note)
        async with rt.db.read() as reading:
            await question(reading)
        event.remove(rt.db.reading_engine.sync_engine, "before_cursor_execute", note)
        for statement, parameters in [one for one in asked if one[0].startswith("SELECT")]:
            report += [f"{name}: {fault}\n{statement}" for fault in await plans._faults(rt, statement, parameters)]
    assert not report, "\n\n".join(report)


async def _settle(rt: Runtime) -> None:
    words = {"sqlite": "ANALYZE", "postgresql": "ANALYZE", "mysql": "ANALYZE TABLE item_search"}
    async with rt.db.engine.connect() as connection:
        await connection.execute(text(words[rt.db.dialect]))
        await connection.commit()
