"""Sign-in with a provider: attacks, refusals, and an unavailable provider."""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import Response
from sqlalchemy import func, select

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity.models import BrowserSession, User, UserStatus
from tests import make
from tests.client import by_cookie, client_of, on_sqlite
from tests.conftest import make_settings
from tests.identity.browser import Browser
from tests.identity.issuer import CLIENT, Provider, provider_at_work, rsa_key, sign

pytestmark = on_sqlite


@pytest.fixture
async def provider(clock: ManualClock) -> AsyncIterator[Provider]:
    async with provider_at_work(clock.now) as started:
        yield started


@pytest.fixture
async def other_provider(clock: ManualClock) -> AsyncIterator[Provider]:
    async with provider_at_work(clock.now) as started:
        yield started


@pytest.fixture
def settings(
    database: str, tmp_path: Path, provider: Provider, other_provider: Provider
) -> Settings:
    issuers = {
        "work": Issuer(url=provider.url, client_id=CLIENT, label="Work"),
        "home": Issuer(url=other_provider.url, client_id=CLIENT, domains=("example.com",)),
    }
    return make_settings(tmp_path / "data", database_url=database, issuers=issuers)


@pytest.fixture
async def rt(rt: Runtime) -> AsyncIterator[Runtime]:
    yield rt
    await rt.close()


@pytest.fixture
async def browser(app: WebNode) -> AsyncIterator[Browser]:
    one = Browser(app)
    yield one
    await one.close()


async def _question(browser: Browser, provider: Provider, name: str = "work") -> dict[str, str]:
    """Begin a sign-in; the answer is what the provider was asked."""
    sent = await browser.get(f"/auth/oidc/{name}", stop_at=provider.url)
    asked = {
        key: values[0] for key, values in parse_qs(urlsplit(sent.headers["location"]).query).items()
    }
    provider.nonce = asked["nonce"]
    return asked


async def _answer(
    browser: Browser, asked: dict[str, str], name: str = "work", **given: Any
) -> Response:
    answer = {"code": "c", "state": asked["state"], **given}
    query = "&".join(f"{key}={value}" for key, value in answer.items() if value is not None)
    return await browser.get(f"/auth/oidc/{name}/callback?{query}")


async def _signed_in(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(BrowserSession)) or 0


async def test_the_question_is_bound_and_the_code_redeemed_with_its_verifier(
    browser: Browser, provider: Provider, rt: Runtime
) -> None:
    asked = await _question(browser, provider)
    landed = await _answer(browser, asked)

    assert str(landed.url) == "http://go.test/"
    assert {
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "nonce",
        "code_challenge",
        "code_challenge_method",
    } <= set(asked)
    assert (asked["code_challenge_method"], asked["redirect_uri"]) == (
        "S256",
        "http://go.test/auth/oidc/work/callback",
    )
    assert len(provider.last_form["code_verifier"][0]) >= 43
    assert await _signed_in(rt) == 1


async def test_two_sign_ins_share_neither_state_nor_nonce_nor_challenge(
    browser: Browser, provider: Provider
) -> None:
    first, second = [await _question(browser, provider) for _ in range(2)]

    assert not {first[name] for name in ("state", "nonce", "code_challenge")} & {
        second[name] for name in second
    }


async def test_a_session_that_was_planted_before_is_worth_nothing_after(
    browser: Browser, provider: Provider, rt: Runtime
) -> None:
    """Session fixation: a planted session is ended and replaced by a new one at sign-in."""
    async with rt.db.write() as session:
        planted = await make.cookie(session, rt, await make.person(session, rt, "mallory"))
    browser.cookies.set("refract", planted, domain="go.test")
    await _answer(browser, await _question(browser, provider))

    assert browser.cookies["refract"] != planted
    assert await _signed_in(rt) == 1
    async with client_of(WebNode(rt)) as client:
        assert (await client.get("/api/v1/me", headers=by_cookie(rt, planted))).status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        "no cookie",
        "another browser's",
        "state missing",
        "state wrong",
        "too late",
        "twice",
        "forged cookie",
    ],
)
async def test_login_csrf_an_answer_to_another_question_lets_nobody_in(
    app: WebNode, browser: Browser, provider: Provider, rt: Runtime, clock: ManualClock, wrong: str
) -> None:
    asked = await _question(browser, provider)
    answer: dict[str, Any] = {}
    match wrong:
        case "no cookie":
            browser.cookies.clear()
        case "another browser's":
            await _question(browser, provider)
        case "state missing":
            answer = {"state": None}
        case "state wrong":
            answer = {"state": "x" * 43}
        case "too late":
            clock.advance(601)
        case "twice":
            await _answer(browser, asked)
            await browser.post("/auth/sign-out", {})
        case "forged cookie":
            browser.cookies.set("refract_sign_in", "A" * 100, domain="go.test")
    refused = await _answer(browser, asked, **answer)

    assert refused.status_code == 403
    assert "Start again" in refused.text
    assert ("it took too long" in refused.text) == (wrong == "too late")
    assert await _signed_in(rt) == 0


async def test_mix_up_one_providers_answer_is_not_anothers(
    browser: Browser, provider: Provider, other_provider: Provider, rt: Runtime
) -> None:
    asked = await _question(browser, provider)

    assert (await _answer(browser, asked, name="home")).status_code == 403
    assert (await _answer(browser, asked, iss=other_provider.url)).status_code == 403
    assert other_provider.asked["/token"] == provider.asked["/token"] == 0
    assert await _signed_in(rt) == 0


@pytest.mark.parametrize("wrong", ["nonce", "signature", "audience", "issuer", "not a token"])
async def test_a_lying_id_token_lets_nobody_in(
    browser: Browser, provider: Provider, rt: Runtime, wrong: str
) -> None:
    bend: dict[str, Any] = {
        "nonce": lambda body: sign(body | {"nonce": "other"}, typ="JWT"),
        "signature": lambda body: sign(body, rsa_key("stranger"), typ="JWT"),
        "audience": lambda body: sign(body | {"aud": "somebody"}, typ="JWT"),
        "issuer": lambda body: sign(body | {"iss": "https://evil.test"}, typ="JWT"),
        "not a token": lambda _body: "hello",
    }
    provider.id_token = bend[wrong]

    assert (await _answer(browser, await _question(browser, provider))).status_code == 403
    assert await _signed_in(rt) == 0


async def test_userinfo_about_somebody_else_is_not_believed(
    browser: Browser, provider: Provider, rt: Runtime
) -> None:
    provider.profile = {"sub": "root", "email": "root@example.com", "email_verified": True}
    await _answer(browser, await _question(browser, provider))

    async with rt.db.read() as session:
        user = (await session.scalars(select(User))).one()
    assert (user.subject, user.email, user.email_verified) == ("ada", "", False)


@pytest.mark.parametrize("verified", [False, "true", 1, None], ids=str)
async def test_nobody_is_linked_by_an_address(
    browser: Browser, provider: Provider, rt: Runtime, verified: Any
) -> None:
    """Claiming an email in use creates a separate account, which is not found by that email."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
    provider.profile = {"sub": "ada", "email": "ada@example.com", "email_verified": verified}
    await _answer(browser, await _question(browser, provider))

    async with rt.db.read() as session:
        new = (await session.scalars(select(User).where(User.issuer == provider.url))).one()
    assert new.id != ada.id
    assert not new.email_verified


@pytest.mark.parametrize(
    ("profile", "status"),
    [
        ({"email": "ada@example.com", "email_verified": True}, 200),
        ({"email": "ada@EXAMPLE.com", "email_verified": True}, 200),
        ({"email": "ada@example.com", "email_verified": False}, 403),
        ({"email": "ada@example.com.evil.test", "email_verified": True}, 403),
        ({}, 403),
    ],
)
async def test_only_the_domains_that_are_allowed(
    browser: Browser, other_provider: Provider, profile: dict[str, Any], status: int
) -> None:
    other_provider.profile = {"sub": "ada", **profile}

    assert (
        await _answer(browser, await _question(browser, other_provider, "home"), "home")
    ).status_code == status


async def test_who_is_suspended_cannot_sign_in(
    browser: Browser, provider: Provider, rt: Runtime
) -> None:
    async with rt.db.write() as session:
        await make.person(session, rt, "ada", issuer=provider.url, status=UserStatus.SUSPENDED)
    refused = await _answer(browser, await _question(browser, provider))

    assert refused.status_code == 403
    assert "suspended" in refused.text


@pytest.mark.parametrize("error", ["access_denied", "<script>alert(1)</script>"])
async def test_a_refusal_at_the_provider_is_told_in_our_own_words(
    browser: Browser, provider: Provider, error: str
) -> None:
    told = await _answer(
        browser,
        await _question(browser, provider),
        code=None,
        error=error,
        error_description="<b>evil</b>",
    )

    assert told.status_code == 403
    assert "Continue with Work" in told.text
    assert "evil" not in told.text
    assert "<script>alert" not in told.text


@pytest.mark.parametrize(
    "next_",
    ["https://evil.test/", "//evil.test", "/\\evil.test", "/roadmap", "javascript:alert(1)"],
)
async def test_no_address_says_where_a_sign_in_leads(
    browser: Browser, provider: Provider, next_: str
) -> None:
    sent = await browser.get(
        f"/auth/oidc/work?next={next_}&return_to={next_}", stop_at=provider.url
    )
    asked = {
        key: values[0] for key, values in parse_qs(urlsplit(sent.headers["location"]).query).items()
    }
    provider.nonce = asked["nonce"]
    landed = await _answer(browser, asked, next=next_)

    assert str(landed.url) == "http://go.test/"


async def test_sign_in_links_are_refused_where_a_provider_is_configured(rt: Runtime) -> None:
    async with rt.db.write() as session:
        link = await make.signin_link(session, rt, await make.person(session, rt))
    for wish, status in (("auto", 403), ("off", 403), ("on", 200)):
        rt.settings = rt.settings.model_copy(update={"signin_links": wish})
        async with client_of(WebNode(rt)) as client:
            assert (await client.get(link)).status_code == status, wish
            page = await client.get("/auth/sign-in", headers={"Accept": "text/html"})
            assert ("refract signin-link" in page.text) is (wish == "on")
    async with client_of(WebNode(rt)) as client:
        assert (await client.post(link, headers={"Origin": "http://go.test"})).status_code == 303


@pytest.mark.parametrize("https", [True, False])
async def test_the_cookies_of_a_sign_in_are_guarded(
    rt: Runtime, provider: Provider, https: bool
) -> None:
    rt.settings = rt.settings.model_copy(
        update={"base_url": "https://go.test" if https else "http://go.test"}
    )
    rt.settings.__dict__.pop("public_url", None)
    async with client_of(WebNode(rt)) as client:
        sent = await client.get("/auth/oidc/work")
    cookie = sent.headers["set-cookie"]

    assert cookie.startswith("__Host-refract_sign_in=" if https else "refract_sign_in=")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert ("Secure" in cookie.split("; ")) is https


# -- how often


async def test_a_network_sets_out_and_comes_back_only_so_often(
    rt: Runtime, provider: Provider, clock: ManualClock
) -> None:
    """Both steps share a limit per network; beyond it, the provider gets no more requests."""
    rt.settings = rt.settings.model_copy(
        update={"sign_ins_per_minute": 4, "trusted_proxies": (ip_network("127.0.0.1/32"),)}
    )
    async with client_of(WebNode(rt)) as client:

        async def status(path: str, address: str) -> int:
            return (
                await client.get(path, headers={"X-Forwarded-For": address, "Accept": "text/html"})
            ).status_code

        here, back = "/auth/oidc/work", "/auth/oidc/work/callback?code=c&state=s"
        assert [await status(path, "198.51.100.7") for path in (here, back, here, back)] == [
            303,
            403,
            303,
            403,
        ]
        assert [
            await status(path, "198.51.100.8") for path in (here, back, "/auth/oidc/nobody")
        ] == [429] * 3
        assert await status(here, "203.0.113.7") == 303
        refused = await client.get(here, headers={"X-Forwarded-For": "198.51.100.7"})
        assert (refused.json()["code"], refused.headers["retry-after"]) == ("RATE_LIMITED", "15")
        assert await status("/auth/sign-in", "198.51.100.7") == 200
        clock.advance(15)
        assert [await status(here, "198.51.100.7") for _ in range(2)] == [303, 429]
    assert provider.asked["/token"] == 0


async def test_no_limit_where_none_is_wanted(rt: Runtime, provider: Provider) -> None:
    rt.settings = rt.settings.model_copy(update={"sign_ins_per_minute": None})
    async with client_of(WebNode(rt)) as client:
        assert {(await client.get("/auth/oidc/work")).status_code for _ in range(100)} == {303}


async def test_who_was_too_fast_can_still_finish(
    rt: Runtime, browser: Browser, provider: Provider, clock: ManualClock
) -> None:
    """The answer of the provider is not used up by being refused for haste."""
    rt.settings = rt.settings.model_copy(update={"sign_ins_per_minute": 1})
    asked = await _question(browser, provider)
    assert (await _answer(browser, asked)).status_code == 429
    clock.advance(60)

    assert str((await _answer(browser, asked)).url) == "http://go.test/"
    assert await _signed_in(rt) == 1


# -- claims are untrusted text


async def test_claims_become_one_plain_line_each(
    browser: Browser, provider: Provider, rt: Runtime
) -> None:
    provider.profile = {
        "sub": "ada",
        "email": "not an address\r\nBcc: x",
        "email_verified": True,
        "name": "Ada\u202e\x00<script>alert(1)</script>\n" + "x" * 500,
        "picture": "javascript:alert(1)",
    }
    landed = await _answer(browser, await _question(browser, provider))

    async with rt.db.read() as session:
        user = (await session.scalars(select(User))).one()
    assert (user.email, user.email_verified, user.avatar_url) == ("", False, None)
    assert user.display_name.startswith("Ada <script>alert(1)</script> xxx")
    assert len(user.display_name) == 100
    assert "<script>alert" not in landed.text


async def test_an_attempt_counts_once_even_if_the_provider_takes_its_code_twice(
    rt: Runtime, app: WebNode, provider: Provider, browser: Browser
) -> None:
    """The finding: with the cookie and the callback URL a sign-in could be replayed."""
    asked = await _question(browser, provider)
    attempt = browser.cookies["refract_sign_in"]
    async with client_of(app) as thief:
        callback = f"/auth/oidc/work/callback?code=c&state={asked['state']}"
        answers = [
            await thief.get(
                callback, headers={"Cookie": f"refract_sign_in={attempt}", "User-Agent": "Test"}
            )
            for _ in range(2)
        ]

    assert [answer.status_code for answer in answers] == [303, 403]
    assert (provider.asked["/token"], await _signed_in(rt)) == (2, 1)


async def test_a_provider_that_was_away_can_be_asked_again_with_the_same_attempt(
    rt: Runtime, provider: Provider, browser: Browser
) -> None:
    asked = await _question(browser, provider)
    provider.bent["/token"] = b"not JSON"
    assert (await _answer(browser, asked)).status_code == 503
    del provider.bent["/token"]

    assert (await _answer(browser, asked)).status_code == 200
    assert await _signed_in(rt) == 1
