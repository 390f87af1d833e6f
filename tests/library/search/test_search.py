"""The library's list and search: one set of queries with the same results on three databases."""

from collections.abc import Awaitable, Callable

import pytest
from httpx import AsyncClient
from sqlalchemy import select, text

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.words import encode_number, encode_texts
from refract.identity.models import User
from refract.library.models import Item, ItemStatus, ItemType, SavedPage
from refract.library.queries.browse import LibraryFilter, count_facets, list_items, search_items
from refract.library.search import index_items
from refract.library.search.index import write_tokens
from refract.library.search.jobs import (
    ReindexChange,
    ReindexItems,
    ReindexTag,
    reindex_all_items,
    reindex_change_items,
    reindex_tag_items,
)
from refract.library.search.match import find_common_choices
from refract.library.search.similar import find_similar_items
from refract.library.search.terms import OWNER_MARK, WORD, match_any_field, parse_terms
from refract.library.service import tag_changes
from refract.tags import personal_tags
from tests import make
from tests.client import by_key, on_sqlite
from tests.tags import items

Find = Callable[..., Awaitable[str]]

BOOKS = {
    "a": {"title": "Café Society", "summary": "A film by W. Allen", "tags": ["Films"]},
    "b": {
        "title": "Postgres as a queue",
        "text": "SKIP LOCKED, with 100% of the throughput",
        "tags": ["Databases", "machine learning"],
    },
    "c": {"title": "Of mice and men", "text": "the of and a in is it to", "tags": []},
    "d": {"title": "日本語の本", "summary": "東京の図書館", "tags": ["日本"]},
    "e": {
        "title": "Notes",
        "text": "cafe postgresql % _ ' \" \\ ; -- union select",
        "tags": ["Databases"],
    },
    "f": {"title": "Straßenbahn", "text": "x y z zz zebra", "tags": []},
    "g": {
        "title": "github.com thing",
        "text": "https://www.github.com/x/Repo-Name?q=1",
        "tags": [],
    },
    "h": {"title": "हिन्दी भाषा", "text": "한국어 문서 ไทย", "tags": []},
}
QUESTIONS = {
    "cafe": "ae",
    "café": "a",
    "CAFÉ": "a",
    "caf": "ae",
    "cafe\u0301": "a",
    "allen": "a",
    "w": "abe",
    "film": "a",
    "postgres": "be",
    "postgres queue": "b",
    "queue postgres": "b",
    "post que": "b",
    "postgresql": "e",
    "ostgres": "b",
    "ostgres que": "b",
    "thub": "g",
    "assenb": "f",
    "abase": "eb",
    "afé": "a",
    "tg": "",
    "-ostgres databases": "eb",
    "of": "cb",
    "the of and a in is it to": "c",
    "a": "",
    "i": "c",
    "日本": "d",
    "本語": "d",
    "語の本": "d",
    "本": "d",
    "日語": "",
    "東京": "d",
    "図書館": "d",
    "京": "d",
    "100%": "b",
    "%": "",
    "_": "",
    "'": "",
    '"skip locked"': "b",
    "union select --": "e",
    "\\": "",
    "' or 1=1": "",
    "strasse": "f",
    "STRASSENBAHN": "f",
    "z": "f",
    "zz": "f",
    "zzz": "",
    "zeb": "f",
    "github": "g",
    "repo": "g",
    "https": "",
    "www": "",
    "हिन्दी": "h",
    "हि": "h",
    "한국": "h",
    "국어": "h",
    "ไทย": "h",
    "#Databases": "eb",
    "#databases postgres": "be",
    "#data": "eb",
    '#"machine learning"': "b",
    "#machine-learning": "b",
    "#nothing": "",
    "databases": "eb",
    "machine": "b",
    "-postgres databases": "",
    "postgres -queue": "e",
    "-cafe #databases": "b",
    "-#databases cafe": "a",
}
"""Searches with the items they find.

Matches in the title or a tag come first, then others, the latest of each first.
"""
EXACT = {question: found for question, found in QUESTIONS.items() if question not in ("w", "a")}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_a_common_word_is_looked_for_in_the_rows_that_a_rare_one_leaves(
    rt: Runtime, ada: User, clock: ManualClock
) -> None:
    """The results are the same once PostgreSQL has statistics."""
    async with rt.db.write() as session:
        for number in range(120):
            await items.item(
                session,
                rt,
                ada,
                title=f"Common {number}",
                text="rare" if number in (7, 8) else "plain",
            )
        made = list(await session.scalars(select(Item.id).order_by(Item.id)))
        await index_items(session, made)
    question = match_any_field(ada.id, parse_terms("rare commo"))
    async with rt.db.read() as session:
        assert await find_common_choices(session, question) == frozenset()
        before = [item.id for item in await search_items(session, ada.id, "rare commo", 10)]
    async with rt.db.write() as session:
        await session.execute(text("ANALYZE item_search"))
    async with rt.db.read() as session:
        assert await find_common_choices(session, question) == {("w0commo", "q0commo", "p0commo")}
        assert (
            [item.id for item in await search_items(session, ada.id, "rare commo", 10)]
            == before
            == [made[8], made[7]]
        )
        assert [
            item.title for item in await search_items(session, ada.id, "common 7 -plain", 10)
        ] == ["Common 7"]


async def furnish(rt: Runtime, owner: User, clock: ManualClock) -> dict[str, Item]:
    found: dict[str, Item] = {}
    async with rt.db.write() as session:
        for name, given in BOOKS.items():
            clock.advance(60)
            fields = {key: value for key, value in given.items() if key != "tags"}
            found[name] = await items.item(session, rt, owner, *given["tags"], **fields)
        found["g"].url, found["g"].type, found["g"].site = (
            str(BOOKS["g"]["text"]),
            ItemType.ARTICLE.value,
            "github.com",
        )
        await session.flush()
        await index_items(session, [item.id for item in found.values()])
    return found


@pytest.fixture
async def library(rt: Runtime, ada: User, bob: User, clock: ManualClock) -> dict[str, Item]:
    found = await furnish(rt, ada, clock)
    async with rt.db.write() as session:
        other = await items.item(session, rt, bob, title="Café Postgres 日本 of", text="zebra")
        await index_items(session, [other.id])
    return found


@pytest.fixture
def find(rt: Runtime, ada: User, library: dict[str, Item]) -> Find:
    letters = {item.id: letter for letter, item in library.items()}

    async def ask(q: str | None = None, limit: int = 50, **given: object) -> str:
        found, cursor = "", None
        while True:
            async with rt.db.read() as session:
                library_filter = LibraryFilter(ada.id, q=q, **given)  # type: ignore[arg-type]
                page = await list_items(
                    session, CursorCodec(rt.secret), library_filter, limit=limit, cursor=cursor
                )
            if page.approximate:
                return f"~{''.join(letters[item.id] for item in page.items)}"
            found += "".join(letters[item.id] for item in page.items)
            cursor = page.next_cursor
            if cursor is None:
                return found

    return ask


async def test_the_same_answers_on_three_databases(find: Find, rt: Runtime) -> None:
    near = {"ostgres", "日語", "zzz", "https", "www"} if rt.db.dialect == "postgresql" else set()
    wrong = {q: (await find(q), expected) for q, expected in EXACT.items() if q not in near}
    assert {q: pair for q, pair in wrong.items() if pair[0] != pair[1]} == {}
    assert await find("e", limit=1) == await find("e")


async def test_typing_errors_where_there_are_trigrams(find: Find, rt: Runtime) -> None:
    expected = {"postgers": "~b", "githbu": "~g", "qqqqqq": ""}
    for q, found in expected.items():
        assert await find(q) == (found if rt.db.dialect == "postgresql" else ""), q


async def test_the_list_and_its_filters(
    find: Find, rt: Runtime, ada: User, library: dict[str, Item]
) -> None:
    assert await find() == await find(limit=3) == "hgfedcba"
    assert await find(type=ItemType.ARTICLE) == "g"
    assert await find(tags=["databases"]) == "eb"
    assert await find(tags=["Databases", "machine learning"]) == "b"
    assert await find(tags=["nothing"]) == ""
    assert await find(untagged=True) == "hgfc"
    assert await find(after=library["c"].confirmed_at, before=library["e"].confirmed_at) == "dc"
    assert await find(state=ItemStatus.DISCARDED) == ""
    assert await find("cafe", tags=["databases"]) == "e"
    async with rt.db.read() as session:
        facets = await count_facets(session, LibraryFilter(ada.id))
        assert (facets.total, facets.types, facets.untagged) == (8, {"NOTE": 7, "ARTICLE": 1}, 4)
        assert {tag.name: count for tag, count in facets.tags} == {
            "Films": 1,
            "Databases": 2,
            "machine learning": 1,
            "日本": 1,
        }
        narrowed = await count_facets(session, LibraryFilter(ada.id, q="postgres"))
        assert (narrowed.total, {tag.name: count for tag, count in narrowed.tags}) == (
            2,
            {"Databases": 2, "machine learning": 1},
        )
        assert [item.id for item in await search_items(session, ada.id, "cafe", 5)] == [
            library["a"].id,
            library["e"].id,
        ]


async def test_words_follow_every_change(
    find: Find, rt: Runtime, ada: User, library: dict[str, Item]
) -> None:
    now = rt.clock.now()
    async with rt.db.write() as session:
        page = {"url": "https://x.test/", "keywords": [], "html": "", "fetched_at": now}
        session.add(
            SavedPage(item_id=library["c"].id, text="Steam engines", title="Boilers", **page)
        )
        item = await session.get_one(Item, library["a"].id)
        item.title = "Renamed"
        await session.flush()
        await index_items(session, [library["a"].id, library["c"].id])
    assert [await find(q) for q in ("engines", "boil", "society", "renamed")] == ["c", "c", "", "a"]

    async with rt.db.write() as session:
        tags = await personal_tags.find_tags_by_key(session, ada.id, ["databases", "films"])
        merged = await tag_changes.merge_tags(
            session, rt.ids, ada.id, tags["films"].id, [tags["databases"].id], now
        )
    await reindex_change_items(rt, ReindexChange(change_id=merged.change_id))
    assert [await find(q) for q in ("databases", "films", "#databases", "#films")] == [
        "",
        "eba",
        "eba",
        "eba",
    ]
    async with rt.db.write() as session:
        await personal_tags.change_tag(session, ada.id, tags["films"].id, name="Movies")
    await reindex_tag_items(rt, ReindexTag(tag_id=tags["films"].id))
    assert [await find(q) for q in ("movies", "films")] == ["eba", ""]
    async with rt.db.write() as session:
        await session.delete(await session.get_one(Item, library["e"].id))
    assert await find("movies") == "ba"


async def test_similar_items_are_those_with_the_same_words(
    rt: Runtime, ada: User, library: dict[str, Item]
) -> None:
    async with rt.db.write() as session:
        near = await items.item(
            session, rt, ada, "Databases", title="A queue in Postgres", summary="Locked rows"
        )
        await index_items(session, [near.id])
    async with rt.db.read() as session:
        found = await find_similar_items(session, near, 10)
        assert [item.id for item, _ in found][:2] == [library["b"].id, library["e"].id]
        assert 0 < found[1][1] < found[0][1] <= 1
        assert await find_similar_items(session, library["f"], 10) == []


@pytest.mark.parametrize("q", [None, "word", "word #many"])
async def test_the_number_of_questions_does_not_grow(
    rt: Runtime, client: AsyncClient, ada: User, q: str | None
) -> None:
    async with rt.db.write() as session:
        headers = by_key(await make.key(session, rt, ada))
    counts = []
    for more in (2, 20):
        async with rt.db.write() as session:
            made = [
                (await items.item(session, rt, ada, "many", title=f"word {number}")).id
                for number in range(more)
            ]
            await index_items(session, made)
        asked: list[str] = []
        stop = count_statements(rt.db.read_engine, asked.append)
        page = (
            await client.get("/api/v1/library", headers=headers, params={"q": q} if q else {})
        ).json()
        stop()
        assert len(page["items"]) >= more
        counts.append(len([one for one in asked if one.startswith("SELECT")]))
    assert counts[0] == counts[1] <= 14


@on_sqlite
async def test_the_reader_shows_text_and_nothing_that_runs(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        headers = by_key(await make.key(session, rt, ada))
        note = await items.item(session, rt, ada, text="One <b>\nline\n\nTwo & three")
        saved = await items.item(session, rt, ada, title="Saved")
        bad = (
            "<p onclick=x>Fine <a href='javascript:x'>a</a><a href='https://e.test/?a=1'>b</a></p>"
        )
        bad += "<script>alert(1)</script><img src=x onerror=y>"
        page = {
            "url": "https://x.test/",
            "keywords": [],
            "text": "Fine a b",
            "fetched_at": rt.clock.now(),
            "author": "Ann",
        }
        session.add(
            SavedPage(
                item_id=saved.id,
                html=bad
                + "<svg><style><img src=x onerror=z></style></svg><iframe src=//e></iframe>",
                **page,
            )
        )
    first = (await client.get(f"/api/v1/items/{note.id}/reader", headers=headers)).json()
    assert (first["html"], first["words"], first["minutes"]) == (
        "<p>One &lt;b&gt;<br>line</p><p>Two &amp; three</p>",
        5,
        1,
    )
    second = (await client.get(f"/api/v1/items/{saved.id}/reader", headers=headers)).json()
    link = '<a href="https://e.test/?a=1" rel="noopener noreferrer nofollow">b</a>'
    assert second["html"] == f'<p>Fine <a rel="noopener noreferrer nofollow">a</a>{link}</p>'
    assert (second["author"], second["title"]) == ("Ann", "Saved")


async def test_items_of_an_older_release_are_indexed_again(find: Find, rt: Runtime) -> None:
    async with rt.db.write() as session:
        query = select(Item.id, Item.user_id).where(Item.title.startswith("Postgres"))
        item_id, owner = (await session.execute(query)).one()
        old = [encode_number(OWNER_MARK, owner), *encode_texts(WORD, ["Postgres as a queue"], 99)]
        await write_tokens(session, [{"number": item_id, "words": old}])
    assert await find("ostgres") in {"", "~b"}, "as a typing error at most"
    await reindex_all_items(rt, ReindexItems())
    assert await find("ostgres") == "b"
