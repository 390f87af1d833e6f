"""Codes of unlisted links cannot be walked.

Every door counts what does not exist, by user and by network.

Security finding 8: `POST /resolve` had no limit in a browser session; 434 tries found a link. `GET
/public/lists/…` had none at all.
"""

from pathlib import Path

import pytest
from httpx import AsyncClient

from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.limits.errors import RateLimited
from refract.limits.service import charge
from refract.lists.access import ListCaller
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.conftest import make_settings
from tests.lists.clients import creator
from tests.people import ada, bob
from tests.redirect.nodes import open_place

__all__ = ["ada", "bob"]
pytestmark = on_sqlite
ALLOWED = 5
TARGET = "https://example.com/"
PAGE = {"Accept": "text/html"}
DOORS = {
    "resolve": ("POST", "/api/v1/resolve", {}),
    "follow": ("GET", "/nothing{}", {}),
    "preview": ("GET", "/nothing{}+", PAGE),
    "qr": ("GET", "/nothing{}.qr", {}),
    "names": ("GET", "/api/v1/names/nothing{}", {}),
    "list names": ("GET", "/app/lists/availability?slug=nothing{}", {}),
    "public lists": ("GET", "/api/v1/public/lists/nothing{}", {}),
    "omnibox": ("POST", "/app/omnibox", {}),
    "go": ("GET", "/app/go?q=nothing{}", {}),
}
FOR_STRANGERS = [door for door in DOORS if door not in ("resolve", "omnibox", "go")]
FOR_USERS = [door for door in DOORS if door not in ("list names", "public lists")]


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        misses_per_minute=ALLOWED,
        trusted_proxies=["127.0.0.0/8"],
    )


async def _knock(
    client: AsyncClient, door: str, number: int, headers: dict[str, str], *, network: int = 0
) -> int:
    method, path, more = DOORS[door]
    sent = (
        {"json": {"path": f"nothing{number}"}}
        if door == "resolve"
        else {"data": {"q": f"nothing{number}"}}
        if method == "POST"
        else {}
    )
    told = headers | more | {"X-Forwarded-For": f"198.51.{network}.7"}
    url = path.format(number)
    answer = await client.request(method, url, headers=told, **sent)  # type: ignore[arg-type]
    return answer.status_code


@pytest.mark.parametrize("door", FOR_STRANGERS)
async def test_a_network_of_strangers_is_stopped(client: AsyncClient, door: str) -> None:
    statuses = [await _knock(client, door, number, {}) for number in range(ALLOWED + 1)]

    assert 429 not in statuses[:ALLOWED]
    assert statuses[ALLOWED] == 429
    assert await _knock(client, door, 0, {}, network=1) != 429


@pytest.mark.parametrize("door", FOR_USERS)
async def test_a_browser_session_is_stopped_from_wherever_it_asks(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, door: str
) -> None:
    async with rt.db.write() as session:
        mine, other = [
            by_cookie(rt, await make.cookie(session, rt, person)) for person in (ada, bob)
        ]

    statuses = [
        await _knock(client, door, number, mine, network=number) for number in range(ALLOWED + 1)
    ]

    assert 429 not in statuses[:ALLOWED]
    assert statuses[ALLOWED] == 429
    assert await _knock(client, door, 0, other, network=100) != 429


async def test_all_doors_share_one_budget_and_what_exists_is_answered(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        await make.link(session, rt, ada, name="real")

    statuses = [await _knock(client, door, 0, mine) for door in FOR_USERS]
    assert statuses.count(429) == len(FOR_USERS) - ALLOWED
    assert (await client.get("/real")).status_code == 302
    assert (await client.post("/api/v1/resolve", headers=mine, json={"path": "real"})).json()[
        "outcome"
    ] == "redirect"


async def _ask(client: AsyncClient, door: str, text: str, headers: dict[str, str]) -> int:
    """Ask a door for a text, always from the same network."""
    method, path, more = DOORS[door]
    sent = (
        {"json": {"path": text}}
        if door == "resolve"
        else {"data": {"q": text}}
        if method == "POST"
        else {}
    )
    all_headers = headers | more | {"X-Forwarded-For": "198.51.0.7"}
    url = path.replace("nothing{}", text)
    sender = client.request(method, url, headers=all_headers, **sent)  # type: ignore[arg-type]
    answer = await sender
    return answer.status_code


@pytest.mark.parametrize("door", [door for door in FOR_USERS if door != "names"])
async def test_no_door_finds_a_code_once_the_limit_is_used_up(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, door: str
) -> None:
    """429 for every absent code and an answer for the others would tell them apart."""
    async with rt.db.write() as session:
        mine, other = [
            by_cookie(rt, await make.cookie(session, rt, person)) for person in (ada, bob)
        ]
        link = await make.link(session, rt, bob, name="real")
        code = encode_base62(link.id)

    before = await _ask(client, door, code, mine)
    statuses = [await _ask(client, door, f"nothing{number}", mine) for number in range(ALLOWED + 1)]

    assert statuses[-1] == 429
    spellings = [code] if door == "omnibox" else [code, f"{code}."]  # a host is shortened there
    assert {await _ask(client, door, text, mine) for text in spellings} == {429}
    assert await _ask(client, door, "real", mine) == before != 429  # names are not enumerated
    assert await _knock(client, door, 0, other, network=1) != 429


async def test_a_cached_code_is_not_found_either(rt: Runtime, ada: User) -> None:
    """The fast lane answers before the application counts anything."""
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="real")
    code = encode_base62(link.id)
    async with open_place(rt) as place, place.on_the_wire() as wire:

        async def follow(path: str, network: int) -> int:
            headers = {"X-Forwarded-For": f"198.51.{network}.7"}
            return (await wire.get(path, headers=headers)).status_code

        assert {await follow(f"/{text}", 1) for text in (code, "real")} == {302}
        assert place.cached == {f"/{code}".encode(), b"/real"}
        misses = [await follow(f"/nothing{number}", 2) for number in range(ALLOWED + 1)]
        assert misses == [404] * ALLOWED + [429]

        assert await follow(f"/{code}", 2) == 429
        assert await follow("/real", 2) == 302
        assert await follow(f"/{code}", 1) == 302


async def test_past_the_limit_no_code_is_looked_up(rt: Runtime, ada: User) -> None:
    """Every answer was 429, but a lookup in the database took longer than a known absence."""
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="plan")
    code = encode_base62(link.id)
    absent = [encode_base62(link.id + number) for number in range(1, 4)]
    headers = {"X-Forwarded-For": "198.51.0.7"}
    async with open_place(rt) as place:
        for number in range(ALLOWED + 1):
            await place.get(f"/nothing{number}", headers=headers)
        before = len(place.reader.asked), place.engine.lookup.negative_hits

        statuses = [
            (await place.get(f"/{text}{end}", headers=headers)).status_code
            for text in (code, *absent)
            for end in ("", "+", ".qr", ".", "/more")
        ]

        assert set(statuses) == {429}
        assert (len(place.reader.asked), place.engine.lookup.negative_hits) == before
        assert (await place.get("/plan", headers=headers)).status_code == 302


async def test_behind_an_unknown_proxy_nobody_blocks_the_codes_of_others(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    """Without REFRACT_TRUSTED_PROXIES every client of a proxy on this machine is 127.0.0.1."""
    async with rt.db.write() as session:
        code = encode_base62((await make.link(session, rt, ada)).id)

    statuses = [(await client.get(f"/nothing{number}")).status_code for number in range(10)]

    assert statuses[-1] == 429
    assert (await client.get(f"/{code}")).status_code == 302


NAMING_DOORS = {
    "new link": ("/api/v1/links", "names"),
    "new link, on the page": ("/app/links", "name"),
    "another name": ("/api/v1/links/{link}/names", "name"),
    "another name, on the page": ("/app/links/{link}/names", "name"),
    "the name of a list": ("/api/v1/lists/{list}/slug", "slug"),
    "the name of a list, on the page": ("/app/lists/{list}", "slug"),
}


@pytest.mark.parametrize("door", NAMING_DOORS)
async def test_requests_for_names_that_spell_codes_are_misses(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, door: str
) -> None:
    """Whether such a name is available tells whether the code exists."""
    path, field = NAMING_DOORS[door]
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        link = await make.link(session, rt, ada)
        draft = await make.list_of(session, rt, ListCaller(ada.id))
        code = encode_base62((await make.link(session, rt, bob)).id).lower()
    path = path.format(link=link.id, list=draft.id)

    async def request_name(name: str) -> int:
        value = [name] if field == "names" else name
        body = {field: value, **({} if "{" in NAMING_DOORS[door][0] else {"destination": TARGET})}
        if "/api/" in path:
            return (await client.post(path, headers=mine, json=body)).status_code
        page = await client.post(path, headers=mine, data={**body, "has_name": "1"})
        refusal = RateLimited.template.partition("{")[0]
        return 429 if refusal in page.text else page.status_code  # a form shows it at its field

    assert 429 not in [await request_name(f"road-map-{number}") for number in range(ALLOWED + 1)]
    near = [code[:-1] + digit for digit in "0123456789" if digit != code[-1]]
    statuses = [await request_name(name) for name in near[: ALLOWED + 1]]
    assert 429 not in statuses[:ALLOWED]
    assert statuses[ALLOWED] == 429
    assert await request_name(code) == 429


@pytest.mark.parametrize("stranger", [False, True])
async def test_the_entries_of_a_list_do_not_tell_which_codes_exist(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, *, stranger: bool
) -> None:
    """An entry that is a short link of ours shows its destination: a hundred per request."""
    async with rt.db.write() as session:
        mine = creator() if stranger else by_cookie(rt, await make.cookie(session, rt, ada))
        link = await make.link(session, rt, bob, "https://secret.example.com/?token=1")
        code = encode_base62(link.id)
    mine |= {"X-Forwarded-For": "198.51.0.7"}
    draft = (await client.post("/api/v1/lists", headers=mine)).json()["id"]
    base, entries = rt.settings.public_url, f"/api/v1/lists/{draft}/entries"
    guesses = [f"{base}/{code[:-2]}{number:02}" for number in range(20)]

    many = await client.post(entries, headers=mine, json={"urls": [*guesses, f"{base}/{code}"]})
    one = await client.post(entries, headers=mine, json={"url": f"{base}/{code}"})

    statuses = [row["status"] for row in many.json()["results"]]
    assert statuses == [422] * ALLOWED + [429] * (21 - ALLOWED)
    assert one.status_code == 429
    assert "secret.example.com" not in many.text + one.text
    plain = await client.post(entries, headers=mine, json={"url": TARGET})
    assert plain.status_code == 201


async def test_past_the_limit_of_creations_no_name_is_told_to_be_taken(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    limit = rt.settings.creates_per_hour
    assert limit is not None
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        await make.link(session, rt, bob, name="taken")
        now = rt.clock.now()
        await charge(session, f"creates:{ada.id}", limit, per_hour=limit, now=now)
    statuses = [
        (
            await client.post(
                "/api/v1/links", headers=mine, json={"destination": TARGET, "names": [name]}
            )
        ).status_code
        for name in ("free", "taken")
    ]

    assert statuses == [429, 429]


@pytest.mark.parametrize("dry_run", [False, True])
async def test_many_links_at_once_do_not_tell_which_codes_exist(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, *, dry_run: bool
) -> None:
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        code = encode_base62((await make.link(session, rt, bob)).id).lower()
    names = [code[:-1] + digit for digit in "0123456789" if digit != code[-1]] + [code]
    links = [{"destination": TARGET, "names": [name]} for name in names]

    many = await client.post(
        "/api/v1/links/bulk", headers=mine, json={"links": links, "dry_run": dry_run}
    )

    statuses = [row["status"] for row in many.json()["results"]]
    assert 429 not in statuses[:ALLOWED]
    assert statuses[ALLOWED:] == [429] * (len(names) - ALLOWED)


async def test_looking_up_addresses_is_limited(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    """Security finding 15: sharing told, without a limit, which addresses have an account."""
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        link = await make.link(session, rt, ada)
    doors = [f"/api/v1/links/{link.id}/{door}" for door in ("shares", "owners", "transfer")]

    statuses = [
        (
            await client.post(doors[n % 3], headers=mine, json={"email": f"nobody{n}@example.com"})
        ).status_code
        for n in range(101)
    ]
    assert set(statuses[:100]) == {404}
    assert statuses[100] == 429
    for door in (*doors, f"/app/links/{link.id}/shares"):
        known = (
            await client.post(door, headers=mine, json={"email": bob.email})
            if "api" in door
            else None
        )
        known = known or await client.post(door, headers=mine, data={"email": bob.email})
        assert known.status_code == 429
