"""Links with a click limit: never one redirect more, and nothing about the destination before."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient, Response

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.errors import UnlistedRequired
from refract.links.models import Link
from refract.links.schemas import LinkPatch
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.people import Headers
from tests.redirect.test_passwords import count_clicks

PERSON = {"Accept": "text/html", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}
HIDDEN = "hidden.example"
BOTS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "WhatsApp/2.23.20.0",
    "curl/8.5.0",
)


async def _make_link(rt: Runtime, owner: User, limit: int, **given: Any) -> Link:
    fields = {"name": "few", "title": "Trips", "click_limit": limit} | given
    async with rt.db.write() as session:
        return await make.link(session, rt, owner, f"https://{HIDDEN}/", **fields)


async def _edit(rt: Runtime, owner: User, link: Link, **fields: object) -> None:
    patch = LinkPatch.model_validate(fields)
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as session:
        await service.edit_link(session, make.space(rt), make.who(owner), link.id, patch, checked)


def _leads_on(answer: Response) -> bool:
    """Return whether an answer tells the destination."""
    return HIDDEN in f"{answer.headers}{answer.text}"


async def test_a_larger_limit_redirects_until_it_is_reached(
    rt: Runtime, client: AsyncClient, app: WebNode, ada: User
) -> None:
    link = await _make_link(rt, ada, 10, redirect_status=301)

    answers = await asyncio.gather(*(client.get("/few", headers=PERSON) for _ in range(13)))

    assert sorted(answer.status_code for answer in answers) == [301] * 10 + [410] * 3
    first = next(answer for answer in answers if answer.status_code == 301)
    assert first.headers["location"] == f"https://{HIDDEN}/"
    assert first.headers["cache-control"] == "private, no-store"
    assert count_clicks(app, link) == 10
    assert app.engine is not None
    assert app.engine.cache.paths == {}
    for path in ("/few", "/few+", "/few.qr"):
        gone = await client.get(path, headers=PERSON)
        assert (gone.status_code, _leads_on(gone)) == (410, False)
        assert "as often as its owner allows" in gone.text
    program = await client.get("/few")
    assert (program.status_code, program.json()["code"]) == (410, "LINK_LIMIT_REACHED")


async def test_a_single_use_link_counts_its_button(
    rt: Runtime, client: AsyncClient, app: WebNode, ada: User
) -> None:
    link = await _make_link(rt, ada, 1)
    for _ in range(3):  # a mail scanner looks like a browser
        asked = await client.get("/few?utm=1", headers=PERSON)
        assert (asked.status_code, _leads_on(asked)) == (200, False)
        assert 'method="post" action="/few?utm=1"' in asked.text
    assert count_clicks(app, link) == 0

    answers = await asyncio.gather(*(client.post("/few", headers=PERSON) for _ in range(5)))

    # Not a redirect, which browsers refuse after a form (`form-action`).
    assert sorted(answer.status_code for answer in answers) == [200, 410, 410, 410, 410]
    assert sum(f'content="0; url=https://{HIDDEN}/"' in answer.text for answer in answers) == 1
    assert count_clicks(app, link) == 1


@on_sqlite
@pytest.mark.parametrize(
    ("limit", "accept"), [(1, "text/html"), (9, "*/*"), (10, "text/html"), (1000, "*/*")]
)
async def test_nothing_but_a_person_learns_the_destination(  # noqa: PLR0917 - fixtures
    rt: Runtime,
    client: AsyncClient,
    app: WebNode,
    ada: User,
    as_ada: Headers,
    as_bob: Headers,
    limit: int,
    accept: str,
) -> None:
    link = await _make_link(rt, ada, limit)
    person = PERSON | {"Accept": accept}
    seen = [
        *[await client.get("/few", headers=person | {"User-Agent": bot}) for bot in BOTS],
        *[await client.post("/few", headers=person | {"User-Agent": bot}) for bot in BOTS],
        await client.head("/few", headers=person),
        *[
            await client.get("/few", headers=person | headers)
            for headers in (
                {"Sec-Purpose": "prefetch"},
                {"Purpose": "preview"},
                {"X-Moz": "prefetch"},
            )
        ],
        await client.get("/few+", headers=person),
        await client.get("/few%2B", headers=person),
        await client.get("/few.qr", headers=person),
        await client.get("/few.rss", headers=person),
        await client.get("/few.png", headers=person),
        await client.put("/few", headers=person),
        await client.post("/api/v1/resolve", json={"path": "/few"}, headers=as_bob),
        await client.post("/api/v1/resolve", json={"path": "/few+"}, headers=as_bob),
        await client.get(f"/api/v1/links/{link.id}", headers=as_bob),
    ]

    for answer in seen:
        assert not _leads_on(answer), answer.request
        assert "Trips" not in answer.text, answer.request
    assert seen[-3].json()["outcome"] == "limited"
    assert count_clicks(app, link) == 0
    own = await client.post("/api/v1/resolve", json={"path": "/few"}, headers=as_ada)
    assert own.json()["location"] == f"https://{HIDDEN}/"
    got = await client.get(f"/api/v1/links/{link.id}", headers=as_ada)
    assert got.json()["clicks_left"] == limit


@on_sqlite
async def test_a_raised_limit_lets_more_through_and_a_lowered_one_fewer(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    link = await _make_link(rt, ada, 10)

    async def follow(times: int) -> int:
        answers = [await client.get("/few", headers=PERSON) for _ in range(times)]
        return sum(answer.status_code == 302 for answer in answers)

    assert await follow(4) == 4
    await _edit(rt, ada, link, click_limit=12)
    assert await follow(3) == 3
    await _edit(rt, ada, link, click_limit=10)
    assert await follow(9) == 3
    await _edit(rt, ada, link, click_limit=13)
    assert await follow(9) == 3
    await _edit(rt, ada, link, click_limit=None)
    assert await follow(9) == 9


@on_sqlite
async def test_a_reached_limit_leads_where_its_owner_says(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    await _make_link(rt, ada, 10, limit_destination="https://sold-out.example/")
    answers = [await client.get("/few", headers=PERSON) for _ in range(11)]
    over = answers[-1]
    assert (over.status_code, over.headers["location"]) == (302, "https://sold-out.example/")
    assert over.headers["cache-control"] == "private, no-store"


@on_sqlite
async def test_a_password_is_asked_for_first(rt: Runtime, client: AsyncClient, ada: User) -> None:
    await _make_link(rt, ada, 1, password="open sesame")
    assert 'type="password"' in (await client.get("/few", headers=PERSON)).text
    wrong = await client.post("/few", data={"password": "wrong"}, headers=PERSON)
    assert (wrong.status_code, _leads_on(wrong)) == (403, False)
    right = await client.post("/few", data={"password": "open sesame"}, headers=PERSON)
    assert (right.status_code, _leads_on(right)) == (200, True)
    again = await client.post("/few", data={"password": "open sesame"}, headers=PERSON)
    assert (again.status_code, _leads_on(again)) == (410, False)


@on_sqlite
async def test_a_limited_link_cannot_be_public(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: Headers
) -> None:
    made = {"destination": f"https://{HIDDEN}/", "click_limit": 3, "visibility": "public"}
    refused = await client.post("/api/v1/links", json=made, headers=as_ada)
    assert (refused.status_code, refused.json()["code"]) == (422, "UNLISTED_REQUIRED")
    link = await _make_link(rt, ada, 3)
    with pytest.raises(UnlistedRequired):
        await _edit(rt, ada, link, visibility="public")


@on_sqlite
async def test_its_page_tells_what_is_left(rt: Runtime, client: AsyncClient, ada: User) -> None:
    link = await _make_link(rt, ada, 12)
    for _ in range(2):
        await client.get("/few", headers=PERSON)
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada))
    page = await client.get(f"/app/links/{link.id}?tab=settings", headers=cookie)
    assert "10 of 12 left" in page.text
    form = await client.get(f"/app/links/{link.id}/edit", headers=cookie)
    assert 'name="click_limit"' in form.text


@on_sqlite
async def test_an_entry_of_a_list_closes_when_its_link_gets_a_limit(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: Headers
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, f"https://{HIDDEN}/", name="few")
    made = await client.post("/api/v1/lists", headers=as_ada, json={"title": "Reading"})
    number = made.json()["id"]
    entry = {"url": "http://go.test/few"}
    added = await client.post(f"/api/v1/lists/{number}/entries", headers=as_ada, json=entry)
    assert added.status_code == 201, added.text
    published = await client.post(
        f"/api/v1/lists/{number}/publish", headers=as_ada, json={"slug": "reading"}
    )
    assert published.status_code == 200, published.text
    assert (await client.get("/reading/1", headers=PERSON)).headers["location"].count(HIDDEN) == 1

    await _edit(rt, ada, link, click_limit=1)

    for path in ("/reading/1", "/reading", "/reading.rss", "/reading.json", "/reading.md"):
        assert not _leads_on(await client.get(path, headers=PERSON)), path
    closed = await client.get("/reading/1", headers=PERSON)
    assert closed.status_code == 410
