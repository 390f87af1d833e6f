"""S7: security headers of every class of response."""

from collections.abc import AsyncIterator, Callable
from http.cookies import SimpleCookie

import pytest
from fastapi import APIRouter
from httpx import AsyncClient, Response

from proofs.security import COUNTED
from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.sessions import create_signin_link
from refract.web.static_files import static
from tests import make
from tests.client import by_cookie, by_key, client_of, on_sqlite
from tests.conftest import make_settings

pytestmark = on_sqlite

PAGE = {"Accept": "text/html,application/xhtml+xml"}
BROKEN = APIRouter(include_in_schema=False)


@BROKEN.get("/app/broken")
async def broken() -> None:
    raise ZeroDivisionError


@pytest.fixture(params=["http://go.test", "https://go.test"])
async def rt(request: pytest.FixtureRequest, rt: Runtime) -> Runtime:
    """The runtime, behind http and behind https."""
    rt.settings = make_settings(
        rt.settings.data_dir,
        base_url=request.param,
        database_url=rt.settings.database_url,
        max_body_bytes=2048,
    )
    return rt


@pytest.fixture
async def client(app: WebNode) -> AsyncIterator[AsyncClient]:
    app.api.include_router(BROKEN)
    async with client_of(app) as asking:
        yield asking


@pytest.fixture
async def browser(rt: Runtime) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))


async def _responses(client: AsyncClient, browser: dict[str, str]) -> dict[str, Response]:
    """One of each class."""
    asked = {
        "page for a stranger": client.get("/", headers=PAGE),
        "page for somebody": client.get("/", headers=PAGE | browser),
        "sign-in page": client.get("/auth/sign-in", headers=PAGE),
        "signed-out page": client.get("/auth/signed-out", headers=PAGE),
        "sign-in that failed, for people": client.get(
            "/auth/oidc/nobody/callback?state=x", headers=PAGE
        ),
        "export": client.get("/api/v1/me/export", headers=browser),
        "403 for people": client.get("/app/admin", headers=PAGE | browser),
        "documentation page": client.get("/api/docs", headers=PAGE),
        "settings": client.get("/app/settings", headers=PAGE | browser),
        "JSON": client.get("/api/v1/me", headers=browser),
        "OpenAPI document": client.get("/api/openapi.json"),
        "created": client.post("/api/v1/keys", headers=browser, json={"name": "x"}),
        "nothing to say": client.delete("/api/v1/me/sessions", headers=browser),
        "health": client.get("/health"),
        "metrics": client.get("/metrics"),
        "static file": client.get(static("css/app.css")),
        "compressed file": client.get(static("js/app.js"), headers={"Accept-Encoding": "gzip"}),
        "icon": client.get("/favicon.ico"),
        "robots": client.get("/robots.txt"),
        "401 for programs": client.get("/api/v1/me"),
        "401 for people": client.get("/app/settings", headers=PAGE),
        "403": client.patch("/api/v1/me", headers={"Cookie": browser["Cookie"]}, json={}),
        "404 for programs": client.get("/api/v1/nothing"),
        "404 for people": client.get("/app/nothing", headers=PAGE),
        "404 outside": client.get("/nothing-here"),
        "405": client.put("/api/v1/me", json={}),
        "413": client.post("/api/v1/keys", headers=browser, content=b"x" * 3000),
        "400 at the door": client.get("/api/%00"),
        "500 for programs": client.get("/app/broken"),
        "500 for people": client.get("/app/broken", headers=PAGE),
        "HEAD of a page": client.head("/", headers=PAGE),
        "HEAD of JSON": client.head("/health"),
        "HEAD of nothing": client.head("/api/v1/nothing"),
        "redirect inside": client.get("/auth/sign-in", headers=PAGE | browser),
        "sign-out": client.post("/auth/sign-out", headers=browser),
    }
    return {name: await question for name, question in asked.items()}


async def test_every_response_class_is_guarded(
    client: AsyncClient,
    browser: dict[str, str],
    rt: Runtime,
    record_property: Callable[[str, object], None],
) -> None:
    responses = await _responses(client, browser)
    record_property(COUNTED, len(responses))
    for name, response in responses.items():
        headers = response.headers
        policy = {
            rule.partition(" ")[0]: rule.partition(" ")[2]
            for rule in headers["content-security-policy"].split("; ")
        }
        assert policy["default-src"] == "'none'", name
        assert policy["frame-ancestors"] == "'none'", name
        assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "http:", "https:"} & set(
            headers["content-security-policy"].split()
        ), name
        assert headers["x-content-type-options"] == "nosniff", name
        assert headers["x-frame-options"] == "DENY", name
        assert headers["referrer-policy"] == "strict-origin-when-cross-origin", name
        assert headers["cross-origin-resource-policy"] == "same-origin", name
        assert "permissions-policy" in headers, name
        assert len(headers["x-request-id"]) == 16, name
        assert "server" not in headers, name
        assert "x-powered-by" not in headers, name
        assert ("strict-transport-security" in headers) is rt.settings.https, name
        assert all(len(headers.get_list(one)) == 1 for one in headers if one != "set-cookie"), name
        assert "ZeroDivisionError" not in response.text, name


async def test_each_class_answers_as_itself(client: AsyncClient, browser: dict[str, str]) -> None:
    statuses = {
        name: response.status_code for name, response in (await _responses(client, browser)).items()
    }

    assert {
        name: status
        for name, status in statuses.items()
        if name[:3].isdigit() and int(name[:3]) != status
    } == {}
    assert [
        statuses[name]
        for name in ("page for a stranger", "JSON", "created", "nothing to say", "redirect inside")
    ] == [
        200,
        200,
        201,
        204,
        303,
    ]


async def test_pages_and_answers_are_never_kept_files_for_ever(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    for name, response in (await _responses(client, browser)).items():
        wanted = {
            "static file": "public, max-age=31536000, immutable",
            "compressed file": "public, max-age=31536000, immutable",
            "icon": "public, max-age=86400",
            "robots": "public, max-age=3600",
            "documentation page": "no-cache",  # the same for every stranger, with an ETag
            "OpenAPI document": "no-cache",
        }.get(name, "no-store")
        assert response.headers["cache-control"] == wanted, name


async def test_a_file_under_a_wrong_digest_is_not_kept_for_ever(client: AsyncClient) -> None:
    response = await client.get("/static/0123456789/css/app.css")

    assert response.headers["cache-control"] == "no-cache"


async def test_problems_are_problems_and_pages_are_pages(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    for name, response in (await _responses(client, browser)).items():
        if response.status_code >= 400:
            kind = (
                "text/html; charset=utf-8"
                if name.endswith("people")
                else "application/problem+json"
            )
            assert response.headers["content-type"] == kind, name
    answer = await client.get("/api/v1/me")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_head_is_get_without_a_body(client: AsyncClient) -> None:
    for path in (
        "/",
        "/health",
        "/robots.txt",
        static("css/app.css"),
        "/api/docs",
        "/api/v1/nothing",
    ):
        head, get = await client.head(path), await client.get(path)
        assert head.status_code == get.status_code, path
        assert head.content == b"", path
        assert set(head.headers) == set(get.headers), path
        assert head.headers["content-length"] == get.headers["content-length"] or path in (
            "/",
            "/api/docs",
        ), path


async def test_a_page_allows_only_its_own_scripts_and_styles(client: AsyncClient) -> None:
    policy = (await client.get("/", headers=PAGE)).headers["content-security-policy"]

    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "form-action 'self'" in policy
    assert "base-uri 'none'" in policy


def _cookies(response: Response) -> SimpleCookie:
    jar = SimpleCookie()
    for line in response.headers.get_list("set-cookie"):
        jar.load(line)
    return jar


async def test_cookies_are_closed_to_scripts_and_other_sites(
    client: AsyncClient, rt: Runtime
) -> None:
    async with rt.db.write() as session:
        path = (await create_signin_link(session, rt, await make.person(session, rt))).removeprefix(
            rt.settings.public_url
        )
    visit = await client.get(path, headers=PAGE)
    signed_in = await client.post(path, headers={"Origin": rt.settings.public_url})
    signed_out = await client.post("/auth/sign-out", headers={"Origin": rt.settings.public_url})

    https = rt.settings.https
    name = "__Host-refract" if https else "refract"
    assert name in _cookies(signed_in)
    for response in (visit, signed_in, signed_out):
        assert _cookies(response), response.request.url
        for cookie in _cookies(response).values():
            assert cookie["httponly"], cookie
            assert cookie["samesite"].lower() == "lax"
            assert cookie["path"] == "/"
            assert cookie["domain"] == ""
            assert bool(cookie["secure"]) is https
    assert len(_cookies(signed_in)[name].value) >= 43
    assert _cookies(signed_out)[name]["max-age"] == "0"


async def test_a_key_sees_what_it_has_left(client: AsyncClient, rt: Runtime) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, await make.person(session, rt)))

    first, second = [await client.get("/api/v1/me", headers=key) for _ in range(2)]

    assert first.headers["ratelimit-limit"] == "1000"
    assert (
        int(first.headers["ratelimit-remaining"]) - int(second.headers["ratelimit-remaining"]) == 1
    )


async def test_a_redirect_is_guarded_and_carries_no_request_id(
    client: AsyncClient, rt: Runtime
) -> None:
    async with rt.db.write() as session:
        await make.link(
            session, rt, await make.person(session, rt), "https://example.com/plans", name="roadmap"
        )

    for response in (await client.get("/roadmap"), await client.head("/roadmap")):
        assert response.status_code == 302
        assert response.headers["location"] == "https://example.com/plans"
        assert "x-request-id" not in response.headers
        assert response.headers["cache-control"] == "private, no-store"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "strict-origin-when-cross-origin"
        assert (
            response.headers["content-security-policy"]
            == "default-src 'none'; frame-ancestors 'none'"
        )
        assert "server" not in response.headers
        assert "set-cookie" not in response.headers
