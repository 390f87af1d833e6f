"""Back-channel logout: the end of a provider's session ends ours immediately, on every node."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity import sessions
from refract.identity.authentication import Caller
from refract.identity.models import User
from refract.identity.revocation import RevocationWatcher
from tests import make
from tests.client import by_cookie, client_of, on_sqlite
from tests.conftest import make_settings
from tests.identity.browser import HOME, Browser
from tests.identity.issuer import (
    CLIENT,
    EVENT,
    ISSUER,
    claims,
    logout_token,
    publish,
    raw,
    rsa_key,
    sign,
)
from tests.identity.real_clock import runtime_by_real_clock
from tests.services_plugin import address_of
from tests.waiting import PATIENCE
from tools.servers import free_port

PATH = "/auth/oidc/work/backchannel-logout"
ISSUERS = {
    "work": Issuer(url=ISSUER, client_id=CLIENT),
    "home": Issuer(url="https://other.test", client_id=CLIENT),
}


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, issuers=ISSUERS)


@pytest.fixture
async def rt(rt: Runtime) -> Runtime:
    await publish(rt)
    return rt


async def _send(client: AsyncClient, token: str, path: str = PATH) -> httpx.Response:
    return await client.post(path, data={"logout_token": token})


async def _session(rt: Runtime, user: User, sid: str | None) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_cookie(rt, await sessions.create_session(session, rt, user, "Test", sid=sid))


async def _seen(client: AsyncClient, *browsers: dict[str, str]) -> list[int]:
    return [(await client.get("/api/v1/me", headers=headers)).status_code for headers in browsers]


async def test_a_session_ends_by_its_name_and_a_person_by_their_subject(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User, bob: User
) -> None:
    one, two, old = [await _session(rt, ada, sid) for sid in ("s-1", "s-2", None)]
    other = await _session(rt, bob, "s-9")

    ended = await _send(client, logout_token(clock.now(), sub=None))
    assert (ended.status_code, ended.headers["cache-control"]) == (200, "no-store")
    assert await _seen(client, one, two, old, other) == [401, 200, 200, 200]

    assert (await _send(client, logout_token(clock.now(), jti="2", sid="s-2"))).status_code == 200
    assert await _seen(client, two, old, other) == [
        401,
        401,
        200,
    ], "a session without a name may be the one that is meant"

    three = await _session(rt, ada, "s-3")
    assert (await _send(client, logout_token(clock.now(), jti="3", sid=None))).status_code == 200
    assert await _seen(client, three, other) == [401, 200]
    assert (
        await _send(client, logout_token(clock.now(), jti="4", sid="s-7", sub="nobody"))
    ).status_code == 200


async def test_a_stream_ends_too_and_another_issuer_ends_nothing(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        stranger = await make.person(
            session, rt, "ada2", issuer="https://other.test", subject="ada"
        )
    here, there = await _session(rt, ada, "s-1"), await _session(rt, stranger, "s-1")
    async with rt.db.read() as session:
        (browser,) = await sessions.list_sessions(session, rt, ada)
    standing = RevocationWatcher(rt)
    async with standing.watch(Caller(ada, frozenset(), session=browser)) as watched:
        await standing.close()  # it would look by itself meanwhile
        assert (await _send(client, logout_token(clock.now()))).status_code == 200
        await standing.check()

    assert watched.revoked
    assert await _seen(client, here, there) == [401, 200]


BAD: dict[str, Callable[[datetime], str]] = {
    "nothing": lambda _now: "",
    "an ID token (nonce)": lambda now: logout_token(now, nonce="n"),
    "an access token by type": lambda now: logout_token(now, header={"typ": "at+jwt"}),
    "no events": lambda now: logout_token(now, events=None),
    "another event": lambda now: logout_token(
        now, events={"http://schemas.openid.net/event/other": {}}
    ),
    "events is a text": lambda now: logout_token(
        now, events="http://schemas.openid.net/event/backchannel-logout"
    ),
    "an event that is no object": lambda now: logout_token(now, events=dict.fromkeys(EVENT, "")),
    "neither sid nor sub": lambda now: logout_token(now, sid=None, sub=None),
    "sid is a number": lambda now: logout_token(now, sid=7),
    "sid is empty": lambda now: logout_token(now, sid=""),
    "no jti": lambda now: logout_token(now, jti=None),
    "another audience": lambda now: logout_token(now, aud="somebody-else"),
    "an audience of the API": lambda now: logout_token(now, aud="http://go.test/api"),
    "another issuer": lambda now: logout_token(now, iss="https://other.test"),
    "expired": lambda now: logout_token(now, exp=int(now.timestamp()) - 61),
    "no expiry": lambda now: logout_token(now, exp=None),
    "issued long ago": lambda now: logout_token(now, iat=int(now.timestamp()) - 400),
    "issued in the future": lambda now: logout_token(now, iat=int(now.timestamp()) + 400),
    "signed by a stranger": lambda now: sign(
        claims(now, aud=CLIENT, events=EVENT, sid="s-1"), rsa_key("stranger"), typ="logout+jwt"
    ),
    "alg none": lambda now: raw({"alg": "none"}, claims(now, aud=CLIENT, events=EVENT, sid="s-1")),
}


@on_sqlite
@pytest.mark.parametrize("name", BAD)
async def test_a_logout_token_that_is_not_right_ends_nothing(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User, name: str
) -> None:
    browser = await _session(rt, ada, "s-1")

    refused = await _send(client, BAD[name](clock.now()))

    assert (refused.status_code, refused.json()["error"], refused.headers["cache-control"]) == (
        400,
        "invalid_request",
        "no-store",
    )
    assert await _seen(client, browser) == [200]


async def test_a_token_counts_once(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User
) -> None:
    token = logout_token(clock.now(), sid=None)
    first = await _send(client, token)
    browser = await _session(rt, ada, None)
    again = await asyncio.gather(*(_send(client, token) for _ in range(4)))

    assert (first.status_code, {answer.status_code for answer in again}) == (200, {400})
    assert await _seen(client, browser) == [200]


@on_sqlite
async def test_only_refusals_count_against_the_limit_of_a_network(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    limit = rt.settings.sign_ins_per_minute
    assert limit is not None
    for number in range(limit + 1):
        assert (await _send(client, logout_token(clock.now(), jti=f"j{number}"))).status_code == 200
    answers = [(await _send(client, "nonsense")).status_code for _ in range(limit + 1)]

    assert answers == [400] * limit + [429]
    assert (await _send(client, "x", "/auth/oidc/nobody/backchannel-logout")).status_code == 404


# -- the certified provider, over the network


@asynccontextmanager
async def _listening(app: WebNode, port: int) -> AsyncIterator[None]:
    """Hand what arrives on a port of this machine to the program, as a proxy would."""
    heard: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line[16:])
            for line in head.lower().split("\r\n")
            if line.startswith("content-length: ")
        )
        body = await reader.readexactly(length)
        async with client_of(app) as client:
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            said = await client.post(head.split(" ")[1], content=body, headers=kind)
        heard.append(said.status_code)
        writer.write(
            b"HTTP/1.1 %d x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % said.status_code
        )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
    assert heard == [200]


async def _register(logout_uri: str) -> dict[str, Any]:
    """A client of the provider with an address for logout tokens."""
    wanted = {
        "redirect_uris": [f"{HOME}/auth/oidc/work/callback"],
        "backchannel_logout_uri": logout_uri,
        "backchannel_logout_session_required": True,
        "post_logout_redirect_uris": [f"{HOME}/auth/signed-out"],
    }
    async with AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        made = await client.post(f"{address_of('oidc')}/reg", json=wanted)
    assert made.status_code == 201, (
        f"{made.text}: is this provider older than tools/oidc/provider.mjs?"
    )
    told: dict[str, Any] = made.json()
    return told


@asynccontextmanager
async def _program(database: str, home: Path, issuer: Issuer) -> AsyncIterator[WebNode]:
    """The program by the real clock: the provider has one of its own."""
    async with runtime_by_real_clock(database, home, issuer) as runtime:
        app = WebNode(runtime)
        try:
            yield app
        finally:
            assert app.engine is not None
            app.engine.spool.close()


@on_sqlite
async def test_signing_out_at_the_certified_provider_ends_the_session_here(
    database: str, tmp_path: Path
) -> None:
    """In two browsers of one person: the provider names the session, so the other one stays."""
    port = free_port()
    told = await _register(f"http://127.0.0.1:{port}{PATH}")
    issuer = Issuer(
        url=address_of("oidc"), client_id=told["client_id"], client_secret=told["client_secret"]
    )
    async with _program(database, tmp_path, issuer) as app, _listening(app, port):
        here, there = Browser(app), Browser(app)
        for browser in (here, there):
            await browser.sign_in("ada")
            assert (await browser.get("/api/v1/me")).status_code == 200

        asked = await here.get(f"{issuer.url}/session/end?client_id={issuer.client_id}")
        form = dict(re.findall(r'name="([^"]+)" value="([^"]+)"', asked.text))
        action = re.search(r'action="([^"]+)"', asked.text)
        assert action, asked.text
        await here.post(action[1], form | {"logout": "yes"})

        assert (await here.get("/api/v1/me")).status_code == 401
        assert (await there.get("/api/v1/me")).status_code == 200
        await here.close()
        await there.close()
