"""Search across the caller's own links, lists and items, with a constant number of queries."""

import re
from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import Scope, User
from refract.library.models import SavedPage
from refract.library.search import index_items
from refract.links import queries, service
from tests import make
from tests.client import by_cookie, by_key


async def _headers(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user, Scope.READ, Scope.WRITE))


async def _found(
    client: AsyncClient, headers: dict[str, str], **query: Any
) -> list[tuple[str, str]]:
    answer = await client.get("/api/v1/search", headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return [(one["kind"], one["title"]) for one in answer.json()["items"]]


async def test_links_lists_and_items_by_their_words_and_only_mine(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    mine, theirs = await _headers(rt, ada), await _headers(rt, bob)
    for headers, name in ((mine, "plans"), (theirs, "plans-too")):
        made = await client.post(
            "/api/v1/links",
            headers=headers,
            json={"destination": "https://example.com/", "names": [name]},
        )
        assert made.status_code == 201
        assert (
            await client.post("/api/v1/lists", headers=headers, json={"title": f"List of {name}"})
        ).status_code == 201

        assert (
            await client.post(
                "/api/v1/items",
                headers=headers,
                json={"text": f"Thoughts on {name}", "enrich": False},
            )
        ).status_code == 201

    assert await _found(client, mine, q="plans") == [
        ("link", "/plans"),
        ("list", "List of plans"),
        ("item", "Thoughts on plans"),
    ]
    assert await _found(client, mine, q="plans", kinds="lists") == [("list", "List of plans")]
    assert await _found(client, mine, q="nothing") == []
    assert await _found(client, mine, q="%") == []


async def test_public_links_of_others_come_after_own_ones(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    mine, theirs = await _headers(rt, ada), await _headers(rt, bob)
    for headers, name, visibility in (
        (mine, "plans", "public"),
        (theirs, "plans-public", "public"),
        (theirs, "plans-unlisted", "unlisted"),
    ):
        body = {"destination": "https://example.com/", "names": [name], "visibility": visibility}
        assert (await client.post("/api/v1/links", headers=headers, json=body)).status_code == 201

    both = [("link", "/plans"), ("link", "/plans-public")]
    assert await _found(client, mine, q="plans") == both
    assert await _found(client, mine, q="plans", limit=1) == both[:1]


@pytest.mark.parametrize(
    "query", [{"q": ""}, {"q": "x", "kinds": "links,pigs"}, {"q": "x", "limit": 0}, {}]
)
async def test_what_cannot_be_searched_is_said(
    rt: Runtime, client: AsyncClient, ada: User, query: dict[str, str]
) -> None:
    answer = await client.get("/api/v1/search", headers=await _headers(rt, ada), params=query)
    assert answer.status_code == 422


PAGES = (
    "/app/omnibox?q=road",
    "/app/links?q=road",
    "/app/tags",
    "/",
    "/app/search?q=road",
    "/app/library",
    "/app/review",
    "/app/lists/add?url=x",
)


async def test_pages_cost_the_same_at_3_and_at_300_links(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    headers = await _headers(rt, ada)
    counts: list[list[int]] = []
    made = 0
    for total in (3, 300):
        async with rt.db.write() as session:
            wishes = [
                await make.new_link(rt, f"https://example.com/{n}", names=[f"road-{n}"], tags=["x"])
                for n in range(made, total)
            ]
            await service.create_links(session, rt, ada, wishes, charged=False)
        made = total
        counts.append([])
        async with rt.db.read() as session:
            page = await queries.suggest_names(session, "road-0", make.who(ada), rt.clock.now(), 1)
        assert page[0][1] is not None
        for path in (*PAGES, f"/app/links/{page[0][1].id}"):
            asked: list[str] = []
            stop = count_statements(rt.db.read_engine, asked.append)
            answer = await client.get(path, headers=headers | {"Accept": "text/html"})
            stop()
            assert answer.status_code == 200
            counts[-1].append(len([one for one in asked if one.startswith("SELECT")]))
    assert counts[0] == counts[1]
    assert max(counts[1]) <= 20


@pytest.mark.parametrize("typed", ["//evil.test", "///evil.test", "/\\evil.test", "//evil.test//x"])
async def test_the_command_bar_never_leads_to_another_site(
    rt: Runtime, client: AsyncClient, ada: User, typed: str
) -> None:
    """Security review, Low: `//evil.test` redirected to `//evil.test`."""
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada))

    answer = await client.post("/app/omnibox", headers=cookie, data={"q": typed})
    onward = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
    assert onward is not None
    assert onward[1].startswith("/")
    assert not onward[1].startswith(("//", "/\\"))


async def test_hits_are_marked_counted_and_explained(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        headers = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
    for number in range(12):
        body = {
            "destination": f"https://example.com/steam/{number}",
            "names": [f"engine-{number}"],
            "title": "Engines",
            "notes": "About <boilers>" if not number else None,
        }
        assert (await client.post("/api/v1/links", headers=headers, json=body)).status_code == 201
    await client.post("/api/v1/lists", headers=headers, json={"title": "Of steam"})
    made = await client.post(
        "/api/v1/items",
        headers=headers,
        json={"text": "A pressure cooker.", "enrich": False, "new_tags": ["Steam"]},
    )
    async with rt.db.write() as session:
        page = SavedPage(
            item_id=int(made.json()["id"]),
            url="https://example.com/",
            keywords=[],
            text="It whistles. " * 100 + "Then the valve opens.",
            html="",
            fetched_at=rt.clock.now(),
        )
        session.add(page)
        await session.flush()
        await index_items(session, [page.item_id])

    found = await _search_page(client, headers, "steam")
    assert re.findall(r'card-title">(\w+) <span class="count number">(\d+)', found) == [
        ("Links", "12"),
        ("Lists", "1"),
        ("Library", "1"),
    ]
    assert found.count('class="hit"') == 12, "ten links, a list, an item"
    assert "https://example.com/<mark>steam</mark>/1" in found
    assert 'hit-where">Destination' in found
    assert "Of <mark>steam</mark>" in found
    assert 'hit-where">Tag</span> <mark>Steam</mark>' in found
    assert found.count("View all") == 1

    assert 'hit-where">Notes</span> About &lt;<mark>boil</mark>ers&gt;' in await _search_page(
        client, headers, "boil"
    )
    explained = await _search_page(client, headers, "valve")
    assert 'hit-where">Page text</span> …' in explained
    assert "the <mark>valve</mark> opens." in explained


async def _search_page(client: AsyncClient, headers: dict[str, str], q: str) -> str:
    answer = await client.get("/app/search", headers=headers, params={"q": q})
    assert answer.status_code == 200
    return " ".join(answer.text.split()).replace(
        '> <span class="hit-where', '><span class="hit-where'
    )
