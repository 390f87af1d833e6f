"""Strangers see no link of anybody, by any door.

Security finding 6: `/app/suggest` and the 404 page gave strangers the names and destinations of
`public` links, without a limit.
"""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.enums import Visibility
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from tests import make
from tests.client import by_cookie, by_key
from tests.people import ada, bob

__all__ = ["ada", "bob"]

SECRETS = ("plans-of-ada", "merger", "Merger talks", "price 5m")
PAGE = {"Accept": "text/html"}
DOORS = {
    "suggestions for browsers": ("GET", "/app/suggest?q=plans", {}),
    "suggestions, exact": ("GET", "/app/suggest?q=plans-of-ad", {}),
    "did you mean, for programs": ("GET", "/plans-of-adb", {}),
    "did you mean, for people": ("GET", "/plans-of-adb", PAGE),
    "did you mean, preview": ("GET", "/plans-of-adb+", PAGE),
    "did you mean, QR": ("GET", "/plans-of-adb.qr", {}),
    "free names": ("GET", "/api/v1/names/plans-of-adb", {}),
    "search": ("GET", "/api/v1/search?q=merger", {}),
    "search page": ("GET", "/app/search?q=merger", PAGE),
    "omnibox": ("GET", "/app/omnibox?q=plans", PAGE),
    "go": ("GET", "/app/go?q=plans-of-adb", PAGE),
    "list of links": ("GET", "/api/v1/links?owner=public", {}),
    "table of links": ("GET", "/app/links?owner=public", PAGE),
    "resolve": ("POST", "/api/v1/resolve", {}),
    "tags": ("GET", "/api/v1/tags", {}),
    "start page": ("GET", "/", PAGE),
}


@pytest.mark.parametrize("door", DOORS)
async def test_a_stranger_sees_no_link_by_any_door(
    rt: Runtime, client: AsyncClient, ada: User, door: str
) -> None:
    fields = {"title": "Merger talks", "notes": "price 5m", "tags": ["merger"]}
    given = {Visibility.TEAM: {"team": "crew"}, Visibility.PASSWORD: {"password": "open sesame"}}
    async with rt.db.write() as session:
        await make.team(session, rt, ada)
        links = [
            await make.link(
                session,
                rt,
                ada,
                "https://merger.example.com/",
                name=f"plans-of-ada{end}",
                visibility=visibility,
                **fields,
                **given.get(visibility, {}),
            )
            for end, visibility in zip(("", "m", "n", "p", "s", "t"), Visibility, strict=True)
        ]
    method, path, headers = DOORS[door]

    answer = await client.request(
        method, path, headers=headers, json={"path": "plans-of-adb"} if method == "POST" else None
    )

    told = answer.text.replace("plans-of-adb", "")  # what was asked for may be repeated
    assert not [
        secret for secret in (*SECRETS, *(str(link.id) for link in links)) if secret in told
    ]


async def test_a_stranger_is_offered_published_lists(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        maker = ListMaker(ada.id, None)
        made = await make.list_of(session, rt, maker, "https://example.com/", title="Reading")
        await lists.set_draft_slug(session, make.space(rt), maker, made.id, "reading-room")
        await lists.publish_list(session, make.space(rt), maker, made.id)

    assert (await client.get("/app/suggest?q=read")).json()[1] == ["reading-room"]
    assert (await client.get("/reading-roon")).json()["suggestions"] == ["reading-room"]


async def test_somebody_signed_in_is_offered_public_links(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="handbook", visibility="public")
        headers = by_cookie(rt, await make.cookie(session, rt, bob))

    assert (await client.get("/app/suggest?q=hand", headers=headers)).json()[1] == ["handbook"]


async def test_suggestions_are_limited_for_each_network(rt: Runtime, client: AsyncClient) -> None:
    """150 of 150 in a row were answered."""
    answers = [(await client.get("/app/suggest?q=p")).status_code for _ in range(150)]

    assert answers[0] == 200
    assert answers[-1] == 429


async def test_deleted_links_stay_with_their_owners(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    """Security finding 7: a deleted public link, notes and all, stayed listed for everyone signed
    in.
    """
    async with rt.db.write() as session:
        as_ada, as_bob = [by_key(await make.key(session, rt, person)) for person in (ada, bob)]
    fields = {
        "destination": "https://secret-deal.example.com/merger",
        "notes": "price 5m",
        "visibility": "public",
        "names": ["deal"],
    }
    link = (await client.post("/api/v1/links", headers=as_ada, json=fields)).json()
    shared = await client.post(
        f"/api/v1/links/{link['id']}/shares", headers=as_ada, json={"email": bob.email}
    )
    assert shared.status_code == 201
    assert (await client.delete(f"/api/v1/links/{link['id']}", headers=as_ada)).status_code == 204

    for query in (
        "owner=public",
        "owner=public&status=deleted",
        "owner=public&status=deleted&q=5m",
        "owner=shared&status=deleted",
    ):
        page = await client.get(f"/api/v1/links?{query}", headers=as_bob)
        assert page.json()["items"] == [], query
    for path in (
        f"/links/{link['id']}",
        f"/links/{link['id']}/owners",
        f"/links/{link['id']}/stats",
    ):
        assert (await client.get(f"/api/v1{path}", headers=as_bob)).status_code == 404, path
    mine = await client.get("/api/v1/links?status=deleted", headers=as_ada)
    assert [one["id"] for one in mine.json()["items"]] == [link["id"]]
