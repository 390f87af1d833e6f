"""Suspending a person puts their links and lists on hold.

The finding: a suspended spammer's API key was refused, and all their links went on redirecting.
"""

from dataclasses import dataclass

import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.models import Link
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.lists.schemas import ListCreate
from tests import make
from tests.client import by_cookie, by_key

PAGE = {"Accept": "text/html"}


@dataclass
class Place:
    """Eve with a link that Bob co-owns and a published list; an administrator."""

    eve: User
    bob: User
    link: Link
    slug: str
    admin: dict[str, str]
    co_owner: dict[str, str]

    @property
    def path(self) -> str:
        return f"/api/v1/admin/users/{self.eve.id}"


@pytest.fixture
async def place(rt: Runtime) -> Place:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        eve, bob = await make.person(session, rt, "eve"), await make.person(session, rt, "bob")
        link = await make.link(session, rt, eve, "https://one.example/", name="frame-up")
        await service.add_owner(session, make.who(eve), link.id, bob.email, rt.clock.now())
        draft = await make.list_of(
            session, rt, ListMaker(eve.id), "https://two.example/", title="Reading"
        )
        found = await lists.publish_list(session, make.space(rt), ListMaker(eve.id), draft.id)
        admin, co_owner = (
            by_key(await make.key(session, rt, root, *make.ALL)),
            by_key(await make.key(session, rt, bob)),
        )
    return Place(eve, bob, link, found.slug or "", admin, co_owner)


async def test_links_and_lists_answer_410_everywhere_and_come_back(
    client: AsyncClient, place: Place
) -> None:
    link = ["/frame-up", f"/{encode_base62(place.link.id)}", "/frame-up+", "/frame-up.qr"]
    page = [f"/{place.slug}{rest}" for rest in ("", "/1", ".rss", ".json", ".md", ".png", ".qr")]
    api = [f"/api/v1/public/lists/{place.slug}"]
    before = [(await client.get(path)).status_code for path in link + page + api]
    assert set(before) == {200, 302}

    suspended = await client.patch(place.path, headers=place.admin, json={"status": "suspended"})

    assert suspended.json()["held_at"] is not None
    assert {
        path: (await client.get(path)).status_code for path in link + page + api
    } == dict.fromkeys(link + page + api, 410)

    active = await client.patch(place.path, headers=place.admin, json={"status": "active"})

    assert active.json()["held_at"] is None
    assert [(await client.get(path)).status_code for path in link + page + api] == before


async def test_the_page_is_neutral(client: AsyncClient, place: Place) -> None:
    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})

    page, problem = (
        await client.get("/frame-up", headers=PAGE),
        (await client.get("/frame-up")).json(),
    )

    assert page.status_code == 410
    assert "is unavailable" in page.text
    assert problem["code"] == "LINK_UNAVAILABLE"
    for word in ("suspend", "hold", "one.example", ">eve<"):
        assert word not in (page.text + str(problem)).lower().replace("placeholder", "")


async def test_what_was_cached_is_forgotten_and_nothing_is_cached_anew(
    client: AsyncClient, rt: Runtime, app: WebNode, place: Place
) -> None:
    assert app.engine is not None
    rt.clock.advance(1)  # type: ignore[attr-defined]  # what has just changed is not cached yet
    await client.get("/frame-up")
    assert b"/frame-up" in app.engine.cache.paths

    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})
    assert app.engine.cache.paths == {}
    assert (await client.get("/frame-up")).status_code == 410

    assert app.engine.cache.paths == {}


async def test_an_administrator_may_say_otherwise(client: AsyncClient, place: Place) -> None:
    kept = await client.patch(
        place.path, headers=place.admin, json={"status": "suspended", "keep_links": True}
    )
    assert (kept.json()["status"], kept.json()["held_at"]) == ("suspended", None)
    assert (await client.get("/frame-up")).status_code == 302

    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})
    assert (await client.get("/frame-up")).status_code == 410


async def test_owners_and_administrators_see_that_it_is_on_hold(
    client: AsyncClient, rt: Runtime, place: Place
) -> None:
    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})

    for headers in (place.admin, place.co_owner):
        assert (await client.get(f"/api/v1/links/{place.link.id}", headers=headers)).json()[
            "status"
        ] == "on_hold"
    held = await client.get("/api/v1/links?status=on_hold", headers=place.co_owner)
    active = await client.get("/api/v1/links?status=active", headers=place.co_owner)
    assert [link["id"] for link in held.json()["items"]] == [str(place.link.id)]
    assert active.json()["items"] == []
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, place.bob))
    page = (await client.get(f"/app/links/{place.link.id}", headers=cookie | PAGE)).text
    assert "On hold" in page
    assert "owner’s account is suspended" in page
    assert "On hold" in (await client.get("/app/links", headers=cookie | PAGE)).text


async def test_a_link_that_an_administrator_gives_to_somebody_else_works_again(
    client: AsyncClient, place: Place
) -> None:
    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})
    assert (await client.get("/frame-up")).status_code == 410

    await client.post(
        f"/api/v1/links/{place.link.id}/transfer",
        headers=place.admin,
        json={"email": place.bob.email},
    )

    assert (await client.get("/frame-up")).status_code == 302


async def test_an_entry_that_follows_a_held_link_is_gone(
    client: AsyncClient, rt: Runtime, place: Place
) -> None:
    async with rt.db.write() as session:
        maker = ListMaker(place.bob.id)
        made = await lists.create_list(
            session, make.space(rt), maker, ListCreate(title="Following")
        )
        address = make.address("https://one.example/", link_id=place.link.id)
        await lists.add_entries(session, make.space(rt), maker, made.id, [address])
        slug = (await lists.publish_list(session, make.space(rt), maker, made.id)).slug
    assert (await client.get(f"/{slug}/1")).status_code == 302

    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})

    assert (await client.get(f"/{slug}/1")).status_code == 410


async def test_the_form_says_otherwise_by_a_tick(
    client: AsyncClient, rt: Runtime, place: Place
) -> None:
    async with rt.db.write() as session:
        cookie = by_cookie(
            rt, await make.cookie(session, rt, await make.admin(session, rt, "other"))
        )
    people = f"/app/admin/people/{place.eve.id}"

    await client.post(f"{people}/suspend", headers=cookie, data={"keep_links": "1"})
    assert (await client.get("/frame-up")).status_code == 302
    await client.post(f"{people}/restore", headers=cookie)
    await client.post(f"{people}/suspend", headers=cookie)
    assert (await client.get("/frame-up")).status_code == 410
    assert "Links on hold" in (await client.get("/app/admin/people", headers=cookie | PAGE)).text


async def test_holds_are_in_the_audit_log(client: AsyncClient, place: Place) -> None:
    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})
    await client.patch(place.path, headers=place.admin, json={"status": "active"})

    log = (await client.get("/api/v1/admin/audit", headers=place.admin)).json()["items"]

    told = [line["action"] for line in log if line["target"] == str(place.eve.id)]
    assert told == ["links.released", "status.changed", "links.held", "status.changed"]


async def test_nobody_else_finds_what_is_on_hold(
    client: AsyncClient, rt: Runtime, place: Place
) -> None:
    """The finding: links on hold stayed listed, and lists on hold were suggested to visitors."""
    maker = ListMaker(place.eve.id)
    async with rt.db.write() as session:
        public = await make.link(
            session, rt, place.eve, "https://spam.example/", name="spam-page", visibility="public"
        )
        shared = await make.link(session, rt, place.eve, "https://spam.example/shared")
        draft = await make.list_of(session, rt, maker, "https://two.example/")
        await lists.set_draft_slug(session, make.space(rt), maker, draft.id, "spam-list")
        await lists.publish_list(session, make.space(rt), maker, draft.id)
        cleo = await make.person(session, rt, "cleo")
        await service.share_link(
            session, make.who(place.eve), shared.id, cleo.email, rt.clock.now()
        )
        colleague = by_key(await make.key(session, rt, cleo))
    paths = [
        "/api/v1/links?owner=public",
        "/api/v1/links?owner=shared",
        "/app/suggest?q=spam",
        "/spam-lost",
    ]
    paths += [f"/api/v1/links/{link.id}" for link in (public, shared)]
    told = ("spam.example", "spam-page", "spam-list")

    async def telling(headers: dict[str, str]) -> set[str]:
        answers = {path: (await client.get(path, headers=headers)).text for path in paths}
        return {path for path, text in answers.items() if any(word in text for word in told)}

    assert await telling(colleague) == set(paths)
    assert await telling({}) == {"/app/suggest?q=spam", "/spam-lost"}

    await client.patch(place.path, headers=place.admin, json={"status": "suspended"})

    assert await telling(colleague) | await telling({}) == set()
