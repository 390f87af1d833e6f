"""Sign-in, sign-out and tokens with a real, certified OpenID provider."""

import base64
import hashlib
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from sqlalchemy import select

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.identity.models import AuditEntry, User
from tests.identity.browser import HOME, Browser, host_of
from tests.identity.issuer import bearer
from tests.identity.real_clock import runtime_by_real_clock
from tests.services_plugin import address_of
from tests.waiting import PATIENCE

API = f"{HOME}/api"


@pytest.fixture
async def rt(database: str, tmp_path: Path) -> AsyncIterator[Runtime]:
    """By the real clock: the provider has one of its own."""
    issuer = Issuer(
        url=address_of("oidc"),
        client_id="refract",
        client_secret="the secret of the test client",  # type: ignore[arg-type]
        label="The provider",
        audiences=(API,),
        parties=("script",),
        admins=("Root@example.com", "unverified-root@example.com"),
    )
    async with runtime_by_real_clock(database, tmp_path, issuer) as runtime:
        yield runtime


@pytest.fixture
async def browser(app: WebNode) -> AsyncIterator[Browser]:
    one = Browser(app)
    yield one
    await one.close()


async def _me(browser: Browser) -> dict[str, Any]:
    response = await browser.get("/api/v1/me")
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


async def test_somebody_signs_in_and_out_like_in_a_browser(rt: Runtime, browser: Browser) -> None:
    page = await browser.get("/auth/sign-in")
    assert "Continue with The provider" in page.text
    assert "refract signin-link" not in page.text

    home = await browser.sign_in("ada")

    assert (str(home.url), home.status_code) == (f"{HOME}/", 200)
    me = await _me(browser)
    assert (me["email"], me["display_name"], me["role"]) == (
        "ada@example.com",
        "Ada of the Provider",
        "user",
    )
    assert "refract_sign_in" not in browser.cookies

    out = await browser.post("/auth/sign-out", {})
    onward = re.search(r'content="0; url=([^"]+)"', out.text)
    assert onward, out.text
    asked = await browser.get(onward[1].replace("&amp;", "&"))
    assert host_of(asked) == urlsplit(rt.settings.issuers["work"].url).netloc
    form = dict(re.findall(r'name="([^"]+)" value="([^"]+)"', asked.text))
    action = re.search(r'action="([^"]+)"', asked.text)
    assert action
    back = await browser.post(action[1], form | {"logout": "yes"})

    assert (str(back.url).partition("?")[0], back.status_code) == (f"{HOME}/auth/signed-out", 200)
    assert (await browser.get("/api/v1/me")).status_code == 401
    again = await browser.get("/auth/oidc/work")
    assert 'value="login"' in again.text, "the provider's own session must have ended too"


async def test_signing_in_again_is_the_same_account_told_anew(
    rt: Runtime, browser: Browser, app: WebNode
) -> None:
    await browser.sign_in("ada")
    first = await _me(browser)
    async with rt.db.write() as session:
        user = await session.get_one(User, int(first["id"]))
        user.email, user.display_name, user.nickname = "old@example.com", "Old", "Countess"
    other = Browser(app)
    await other.sign_in("ada")
    second = await _me(other)
    await other.close()

    assert second["id"] == first["id"]
    assert (second["email"], second["display_name"], second["nickname"]) == (
        "ada@example.com",
        "Ada of the Provider",
        "Countess",
    )
    async with rt.db.read() as session:
        assert list(await session.scalars(select(AuditEntry.action).order_by(AuditEntry.id))) == [
            "account.made",
            "signed_in",
            "signed_in",
        ]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("name", "role"), [("root", "admin"), ("unverified-root", "user")])
async def test_administrators_by_setting_need_an_address_that_was_verified(
    browser: Browser, name: str, role: str
) -> None:
    await browser.sign_in(name)

    assert (await _me(browser))["role"] == role


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_program_brings_a_token_refreshes_it_and_goes_on(
    rt: Runtime, app: WebNode, browser: Browser
) -> None:
    told = await _tokens_for_a_script(rt, browser, "grace")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOME) as client:
        first = await client.get("/api/v1/me", headers=bearer(told["access_token"]))
        renewed = await _redeem(
            rt,
            {
                "grant_type": "refresh_token",
                "refresh_token": told["refresh_token"],
                "resource": API,
            },
        )
        second = await client.post(
            "/api/v1/links",
            headers=bearer(renewed["access_token"]),
            json={"destination": "https://example.com"},
        )
        id_token = await client.get("/api/v1/me", headers=bearer(told["id_token"]))

    assert (first.status_code, second.status_code) == (200, 201)
    assert renewed["access_token"] != told["access_token"]
    assert second.json()["owners"][0]["user_id"] == first.json()["id"]
    assert id_token.status_code == 401, "an ID token opens nothing"


async def _tokens_for_a_script(rt: Runtime, browser: Browser, name: str) -> dict[str, Any]:
    """What a command line tool would do: code and PKCE with a client of its own, for our API."""
    verifier = secrets.token_urlsafe(32)
    challenge = (
        base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    )
    question = {
        "response_type": "code", "client_id": "script", "redirect_uri": f"{HOME}/script",
        "scope": "openid offline_access api", "code_challenge": challenge,
        "code_challenge_method": "S256", "resource": API, "prompt": "consent",
    }  # fmt: skip
    issuer = rt.settings.issuers["work"].url
    form = await browser.get(f"{issuer}/auth?{urlencode(question)}")
    sent_back = await browser.identify(form, name, stop_at=f"{HOME}/script")
    code = parse_qs(urlsplit(sent_back.headers["location"]).query)["code"][0]
    return await _redeem(
        rt,
        {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": f"{HOME}/script",
            "resource": API,
        },
    )


async def _redeem(rt: Runtime, form: dict[str, str]) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        response = await client.post(
            f"{rt.settings.issuers['work'].url}/token", data={"client_id": "script", **form}
        )
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told
