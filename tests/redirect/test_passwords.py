"""Links with a password: nothing about the destination before, a page that leads on after."""

import re
from html import unescape

import pytest
from httpx import ASGITransport, AsyncClient, Response

from refract.app import WebNode
from refract.clicks.spool.reader import SpoolPosition, inspect_spool, read_batch
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.limits import shared_limits
from refract.limits.shared_limits import GUESSES_PER_MINUTE
from refract.links import service
from refract.links.models import Link
from refract.links.schemas import LinkPatch
from refract.redirect.passwords import UNLOCKED_SECONDS
from tests import make
from tests.client import by_cookie, by_key, on_sqlite

PAGE = {"Accept": "text/html"}
SECRET = "open sesame"
HIDDEN = "hidden.example"


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(
            session,
            rt,
            ada,
            f"https://{HIDDEN}/",
            name="plans",
            password=SECRET,
            title="Trips",
        )


async def _guess(
    client: AsyncClient, guess: str, cookies: dict[str, str] | None = None
) -> Response:
    return await client.post("/plans", data={"password": guess}, headers=PAGE | (cookies or {}))


def _keep_cookies(response: Response) -> dict[str, str]:
    """Return what a browser would send next."""
    pairs = [cookie.partition(";")[0] for cookie in response.headers.get_list("set-cookie")]
    return {"Cookie": "; ".join(pairs)}


def count_clicks(app: WebNode, link: Link) -> int:
    assert app.engine is not None
    state, position, count = inspect_spool(app.engine.spool.directory), SpoolPosition(), 0
    while (batch := read_batch(state, position, 1 << 20)).next != position:
        count += sum(click.target == link.id for click in batch.clicks)
        position = batch.next
    return count


async def test_the_password_opens_the_link_for_an_hour(
    client: AsyncClient, app: WebNode, clock: ManualClock, link: Link
) -> None:
    asked = await client.get("/plans", headers=PAGE)
    assert asked.status_code == 200
    assert 'type="password"' in asked.text
    assert count_clicks(app, link) == 0

    right = await _guess(client, SECRET)

    # Not a redirect, which browsers refuse after a form (`form-action`).
    assert right.status_code == 200
    assert f'content="0; url=https://{HIDDEN}/"' in right.text
    assert count_clicks(app, link) == 1
    unlocked = PAGE | _keep_cookies(right)
    again = await client.get("/plans", headers=unlocked)
    assert (again.status_code, again.headers["location"]) == (302, f"https://{HIDDEN}/")
    assert again.headers["cache-control"] == "private, no-store"
    assert (await _guess(client, "wrong", unlocked)).status_code == 403
    assert app.engine is not None
    assert app.engine.cache.paths == {}

    clock.advance(UNLOCKED_SECONDS)
    assert (await client.get("/plans", headers=unlocked)).status_code == 200


@on_sqlite
@pytest.mark.parametrize("path", ["/plans", "/plans+", "/plans.qr", "/plans/extra", "/PLANS?x=1"])
@pytest.mark.parametrize("accept", ["text/html", "*/*"])
async def test_nothing_shows_the_destination_before(
    client: AsyncClient, link: Link, path: str, accept: str
) -> None:
    for method in ("GET", "HEAD", "POST"):
        seen = await client.request(method, path, headers={"Accept": accept})
        assert HIDDEN not in f"{seen.headers}{seen.text}", method
        assert "Trips" not in seen.text


@on_sqlite
async def test_programs_are_told_what_to_send(client: AsyncClient, link: Link) -> None:
    asked = await client.get("/plans")
    assert (asked.status_code, asked.json()["code"]) == (403, "LINK_PASSWORD_REQUIRED")
    wrong = await client.post("/plans", data={"password": "wrong"})
    assert (wrong.status_code, wrong.json()["code"]) == (403, "WRONG_LINK_PASSWORD")
    right = await client.post("/plans", data={"password": SECRET})
    assert right.json()["destination"] == f"https://{HIDDEN}/"


@on_sqlite
async def test_guesses_of_a_network_are_limited(
    client: AsyncClient, clock: ManualClock, link: Link
) -> None:
    answers = [await _guess(client, f"guess {number}") for number in range(GUESSES_PER_MINUTE)]
    assert {answer.status_code for answer in answers} == {403}
    assert "isn't the password of this link" in unescape(answers[0].text)

    refused = await _guess(client, SECRET)

    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert HIDDEN not in refused.text
    clock.advance(60)
    assert (await _guess(client, SECRET)).status_code == 200


@on_sqlite
async def test_wrong_guesses_of_all_networks_are_limited_together(
    app: WebNode, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "WRONG_GUESSES_PER_HOUR", 3)

    async def guess(network: int, text: str) -> int:
        transport = ASGITransport(app, client=(f"10.0.{network}.1", 80))
        async with AsyncClient(transport=transport, base_url="http://go.test") as client:
            return (await _guess(client, text)).status_code

    assert [await guess(network, "no") for network in range(4)] == [403, 403, 403, 429]
    assert await guess(9, SECRET) == 429


@on_sqlite
async def test_a_new_password_locks_out_those_who_knew_the_old_one(
    rt: Runtime, client: AsyncClient, ada: User, link: Link
) -> None:
    unlocked = PAGE | _keep_cookies(await _guess(client, SECRET))
    patch = LinkPatch(password="another one")
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as session:
        await service.edit_link(session, make.space(rt), make.who(ada), link.id, patch, checked)

    assert (await client.get("/plans", headers=unlocked)).status_code == 200
    assert (await _guess(client, SECRET)).status_code == 403
    assert (await _guess(client, "another one")).status_code == 200


@on_sqlite
async def test_a_cookie_opens_only_its_own_link(
    rt: Runtime, client: AsyncClient, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        other = await make.link(
            session, rt, ada, "https://other.example/", name="other", password=SECRET
        )
    cookies = _keep_cookies(await _guess(client, SECRET))["Cookie"]
    moved = {"Cookie": cookies.replace(str(link.id), str(other.id))}
    assert moved["Cookie"] != cookies
    assert (await client.get("/other", headers=PAGE | moved)).status_code == 200


@on_sqlite
@pytest.mark.parametrize(
    "body", [b"", b"password=", b"password=" + b"x" * 5000, b"\xff\xfe", b"password=%ff", b"&" * 99]
)
async def test_bodies_that_hold_no_password_are_wrong_ones(
    client: AsyncClient, link: Link, body: bytes
) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await client.post("/plans", content=body, headers=PAGE | kind)).status_code == 403


async def test_owners_need_no_password_and_others_signed_in_do(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, link: Link
) -> None:
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        theirs = by_cookie(rt, await make.cookie(session, rt, bob))
        my_key = by_key(await make.key(session, rt, ada))
        their_key = by_key(await make.key(session, rt, bob))

    assert (await client.get("/plans", headers=mine)).status_code == 302
    assert (await client.get("/plans", headers=theirs | PAGE)).status_code == 200
    told = await client.post("/api/v1/resolve", headers=my_key, json={"path": "/plans"})
    assert told.json()["location"] == f"https://{HIDDEN}/"
    told = await client.post("/api/v1/resolve", headers=their_key, json={"path": "/plans"})
    assert (told.json()["outcome"], told.json()["location"]) == ("password", None)


async def test_the_api_sets_changes_and_removes_it(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
    new = {"destination": f"https://{HIDDEN}/", "names": ["tour"]}

    async def send(fields: dict[str, object]) -> Response:
        return await client.post("/api/v1/links", headers=key, json=new | fields)

    assert (await send({"visibility": "password"})).json()["code"] == "PASSWORD_REQUIRED"
    refused = await send({"visibility": "public", "password": SECRET})
    assert refused.json()["code"] == "PASSWORD_UNUSED"
    assert (await send({"password": "abc"})).status_code == 422
    made = await send({"password": SECRET})
    assert (made.status_code, made.json()["visibility"]) == (201, "password")
    assert SECRET not in made.text
    assert "argon2" not in made.text
    path = f"/api/v1/links/{made.json()['id']}"

    await client.patch(path, headers=key, json={"password": "a second one"})
    history = (await client.get(f"{path}/history", headers=key)).text
    assert '"password":{"from":"hidden","to":"hidden"}' in re.sub(r"\s", "", history)
    assert "argon2" not in history
    open_again = await client.patch(path, headers=key, json={"visibility": "unlisted"})
    assert open_again.json()["visibility"] == "unlisted"
    assert (await client.get("/tour")).status_code == 302
    closed = await client.patch(path, headers=key, json={"visibility": "password"})
    assert closed.json()["code"] == "PASSWORD_REQUIRED"
    undone = await client.post(f"{path}/undo", headers=key)
    assert undone.json()["visibility"] == "password"
    assert (await client.post("/tour", data={"password": "a second one"})).status_code == 200


@on_sqlite
async def test_a_dead_link_asks_for_no_password(
    rt: Runtime, client: AsyncClient, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), link.id, rt.clock.now())
    assert (await client.get("/plans", headers=PAGE)).status_code == 410


@on_sqlite
async def test_rules_decide_once_the_password_is_right(
    rt: Runtime, client: AsyncClient, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        mine = by_key(await make.key(session, rt, ada))
    rule = {
        "destination": "https://phone.example/",
        "conditions": {"devices": ["mobile"], "countries": ["US", "XX"]},
    }
    place = f"/api/v1/links/{link.id}/rules"
    assert (await client.put(place, headers=mine, json={"rules": [rule]})).status_code == 200
    phone = {"User-Agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5) Mobile/15E148"}
    right = await client.post("/plans", data={"password": SECRET}, headers=phone)
    assert right.json()["destination"] == "https://phone.example/"
    right = await client.post("/plans", data={"password": SECRET})
    assert right.json()["destination"] == f"https://{HIDDEN}/"
    asked = {"path": "/plans", "visitor": {"agent": phone["User-Agent"], "country": "US"}}
    told = (await client.post("/api/v1/resolve", headers=mine, json=asked)).json()
    assert (told["location"], told["rule"]) == ("https://phone.example/", 1)
    assert [rule["matched"] for rule in told["rules"]] == [True]
