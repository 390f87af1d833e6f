"""Metadata of a provider that is unavailable, slow or inconsistent."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity.errors import IssuerUnavailable
from refract.identity.oidc import providers
from refract.identity.oidc.accounts import user_from_bearer_token
from refract.identity.oidc.providers import OidcProviders
from tests import make
from tests.client import by_cookie, client_of, on_sqlite
from tests.conftest import make_settings
from tests.identity.issuer import CLIENT, Provider, bearer, claims, provider_at_work, rsa_key, sign

DISCOVERY = "/.well-known/openid-configuration"
HOUR = 3600.0


@pytest.fixture
async def provider(clock: ManualClock) -> AsyncIterator[Provider]:
    async with provider_at_work(clock.now) as started:
        yield started


@pytest.fixture
def settings(database: str, tmp_path: Path, provider: Provider) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        issuers={"work": Issuer(url=provider.url, client_id=CLIENT)},
    )


@pytest.fixture
async def rt(rt: Runtime) -> AsyncIterator[Runtime]:
    yield rt
    await rt.close()


def _token(clock: ManualClock, provider: Provider, **header: str) -> str:
    return sign(claims(clock.now(), iss=provider.url, aud=CLIENT), **header)


async def _good(rt: Runtime, clock: ManualClock, provider: Provider) -> bool:
    good = await user_from_bearer_token(rt, _token(clock, provider)) is not None
    await _settle(rt)
    return good


async def _settle(rt: Runtime) -> None:
    """Let a refresh in the background come to its end."""
    task = rt.singleton(OidcProviders).by_name["work"]._refresh_task
    if task is not None:
        await asyncio.gather(task, return_exceptions=True)


def _again(rt: Runtime) -> Runtime:
    """Return a runtime on the same database that has not fetched any metadata."""
    return Runtime(
        settings=rt.settings, db=Database(rt.settings), clock=rt.clock, ids=rt.ids, secret=rt.secret
    )


async def test_an_issuer_down_for_an_hour_stops_nobody(
    rt: Runtime, clock: ManualClock, provider: Provider
) -> None:
    """Sessions and tokens with known keys keep working for a day, also in new processes."""
    assert await _good(rt, clock, provider)
    async with rt.db.write() as session:
        browser = by_cookie(
            rt, await make.cookie(session, rt, await make.person(session, rt, "bob"))
        )
    provider.bent = {DISCOVERY: b"null", "/keys": b"null"}
    asked = provider.asked.total()

    for _ in range(4):
        clock.advance(HOUR)
        assert await _good(rt, clock, provider)
    assert provider.asked.total() > asked, "it was asked in vain meanwhile"
    fresh = _again(rt)
    assert await _good(fresh, clock, provider)
    app = WebNode(fresh)
    async with client_of(app) as client:
        assert (await client.get("/api/v1/me", headers=browser)).status_code == 200
        assert (
            await client.get("/api/v1/me", headers=bearer(_token(clock, provider)))
        ).status_code == 200
        clock.advance(21 * HOUR)
        answer = await client.get("/api/v1/me", headers=bearer(_token(clock, provider)))
        assert (answer.status_code, answer.json()["code"]) == (503, "ISSUER_UNAVAILABLE")
        assert (await client.get("/api/v1/me", headers=browser)).status_code == 200
        page = await client.get("/auth/oidc/work", headers={"Accept": "text/html"})
        assert page.status_code == 503
    assert app.engine is not None
    app.engine.spool.close()
    await fresh.close()
    await fresh.db.close()

    provider.bent = {}
    clock.advance(providers.RETRY_INTERVAL)
    assert await _good(rt, clock, provider)


@on_sqlite
async def test_keys_are_asked_for_once_an_hour_and_not_more(
    rt: Runtime, clock: ManualClock, provider: Provider
) -> None:
    for _ in range(20):
        assert await _good(rt, clock, provider)
    assert provider.asked == {DISCOVERY: 1, "/keys": 1}
    clock.advance(HOUR)
    for _ in range(20):
        assert await _good(rt, clock, provider)

    assert provider.asked == {DISCOVERY: 2, "/keys": 2}


@on_sqlite
async def test_many_at_once_ask_once(rt: Runtime, clock: ManualClock, provider: Provider) -> None:
    assert all(
        await asyncio.gather(
            *(user_from_bearer_token(rt, _token(clock, provider)) for _ in range(20))
        )
    )
    assert provider.asked == {DISCOVERY: 1, "/keys": 1}


@on_sqlite
async def test_a_new_key_is_found_at_once_and_a_withdrawn_one_is_no_longer_used(
    rt: Runtime, clock: ManualClock, provider: Provider
) -> None:
    assert await _good(rt, clock, provider)
    provider.keys = [rsa_key("rsa-2")]
    new = sign(claims(clock.now(), iss=provider.url, aud=CLIENT), rsa_key("rsa-2"), kid="rsa-2")

    assert await user_from_bearer_token(rt, new) is not None
    assert await user_from_bearer_token(rt, _token(clock, provider)) is None


@on_sqlite
async def test_a_flood_of_unknown_key_ids_is_not_a_flood_of_questions(
    rt: Runtime, clock: ManualClock, provider: Provider
) -> None:
    for number in range(50):
        assert (
            await user_from_bearer_token(rt, _token(clock, provider, kid=f"made-up-{number}"))
            is None
        )

    assert provider.asked[DISCOVERY] <= 2


@on_sqlite
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (DISCOVERY, b"{}"),
        (DISCOVERY, b"[" * 100_000),
        (DISCOVERY, b'{"issuer": "https://evil.test"}'),
        (DISCOVERY, b'{"padding": "' + b"x" * 600_000 + b'"}'),
        ("/keys", b'{"keys": []}'),
        ("/keys", b'{"keys": [{"kty": "oct", "k": "AAAA"}]}'),
        ("/keys", b"hello"),
    ],
    ids=[
        "nothing",
        "nested",
        "another issuer",
        "too long",
        "no keys",
        "a shared secret",
        "not JSON",
    ],
)
async def test_a_provider_that_is_wrong_about_itself_is_not_used(
    rt: Runtime, clock: ManualClock, provider: Provider, path: str, body: bytes
) -> None:
    provider.bent = {path: body}

    with pytest.raises(IssuerUnavailable):
        await user_from_bearer_token(rt, _token(clock, provider))


@on_sqlite
async def test_endpoints_that_are_not_https_are_refused(
    rt: Runtime, clock: ManualClock, provider: Provider
) -> None:
    document = {
        "issuer": provider.url,
        "jwks_uri": "http://evil.test/keys",
        "authorization_endpoint": "https://a.test",
        "token_endpoint": "https://a.test",
    }
    provider.bent = {DISCOVERY: json.dumps(document).encode()}

    with pytest.raises(IssuerUnavailable):
        await user_from_bearer_token(rt, _token(clock, provider))
    assert provider.asked["/keys"] == 0
