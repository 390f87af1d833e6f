"""Restricted links of other domains: the default domain decides, and no token crosses hosts."""

from typing import Any

import pytest
from httpx import AsyncClient, Response

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, client_of, on_sqlite
from tests.people import Headers

pytestmark = on_sqlite
SECRET = "https://example.com/secret"
FOLLOW = "http://go.test/auth/follow"
AS_BROWSER = {"Accept": "text/html"}


@pytest.fixture
async def links(rt: Runtime, ada: User) -> None:
    """Links of Ada's on another domain, one of each visibility."""
    async with rt.db.write() as session:
        await make.domain(session, rt, "sho.rt")
        await make.domain(session, rt, "off.example")
        for name, visibility in (("secret", "secure"), ("inside", "signed-in"), ("open", None)):
            given = {"name": name, "visibility": visibility, "domain": "sho.rt"}
            await make.link(session, rt, ada, SECRET, forward_query=True, **given)
        await make.disable_domain(session, rt, "off.example")


@pytest.fixture
async def visitor(links: None, node: WebNode) -> AsyncClient:
    return client_of(node)


async def ask(visitor: AsyncClient, link: str, headers: Headers) -> Response:
    return await visitor.get(FOLLOW, params={"link": link}, headers=headers)


async def browser_of(rt: Runtime, user: User) -> Headers:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, user)) | AS_BROWSER


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/secret", "sho.rt%2Fsecret"),
        ("/secret/more%20words?a=1&b=%2F", "sho.rt%2Fsecret%2Fmore%2520words%3Fa%3D1%26b%3D%252F"),
        ("/secret+", "sho.rt%2Fsecret%2B"),
        ("/inside", "sho.rt%2Finside"),
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_another_domain_asks_the_default_one(
    visitor: AsyncClient, path: str, asked: str, accept: str
) -> None:
    answer = await visitor.get(f"http://sho.rt{path}", headers={"Accept": accept})

    assert answer.status_code == 302
    assert answer.headers["location"] == f"{FOLLOW}?link={asked}"
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers


async def test_those_who_may_follow_it_are_redirected(
    visitor: AsyncClient, rt: Runtime, ada: User, bob: User, as_ada: Headers
) -> None:
    of_ada, of_bob = await browser_of(rt, ada), await browser_of(rt, bob)

    for headers in (of_ada, as_ada):
        found = await ask(visitor, "sho.rt/secret/more%20words?a=1&b=%2F", headers)
        assert found.status_code == 302
        assert found.headers["location"] == f"{SECRET}/more%20words?a=1&b=%2F"
        assert "no-store" in found.headers["cache-control"]
    assert (await ask(visitor, "sho.rt/inside", of_bob)).headers["location"] == SECRET
    refused = await ask(visitor, "sho.rt/secret", of_bob)
    absent = await ask(visitor, "sho.rt/absent", of_bob)
    assert (refused.status_code, absent.status_code) == (404, 404)
    assert SECRET not in refused.text


async def test_strangers_sign_in_and_come_back(
    visitor: AsyncClient, rt: Runtime, ada: User
) -> None:
    asked = await ask(visitor, "sho.rt/secret?a=1", AS_BROWSER)
    assert (asked.status_code, asked.headers["location"]) == (302, "/auth/sign-in")
    program = await ask(visitor, "sho.rt/secret", {"Accept": "application/json"})
    assert (program.status_code, program.json()["code"]) == (401, "SIGN_IN_REQUIRED")

    async with rt.db.write() as session:
        path = await make.signin_link(session, rt, ada)
    remembered = asked.headers["set-cookie"].partition(";")[0]
    page = await visitor.get(path, headers=AS_BROWSER | {"Cookie": remembered})
    cookies = f"{remembered}; {page.headers['set-cookie'].partition(';')[0]}"
    csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    done = await visitor.post(
        path,
        headers=AS_BROWSER | {"Cookie": cookies, "Origin": "http://go.test"},
        data={"csrf": csrf},
    )

    # A page, not a redirect: the policy of forms forbids one that ends on another host.
    assert done.status_code == 200
    assert 'href="/auth/follow?link=sho.rt%2Fsecret%3Fa%3D1"' in done.text


async def test_other_links_are_followed_on_their_own_domain(
    visitor: AsyncClient, as_ada: Headers
) -> None:
    answer = await ask(visitor, "sho.rt/open/more%20words?a=1&b=%2F", as_ada)

    assert answer.status_code == 302
    assert answer.headers["location"] == "http://sho.rt/open/more%20words?a=1&b=%2F"


@pytest.mark.parametrize(
    "link",
    [
        *("", "/", "sho.rt", "secret", "/secret", "sho.rt/", "sho.rt//secret", "sho.rt/ secret"),
        *(
            "evil.example/secret",
            "https://evil.example/",
            "//evil.example/",
            "sho.rt@evil.example/",
        ),
        *("https://sho.rt/secret", "go.test/secret", "off.example/secret", "SHO.RT:80/secret"),
        *("sho.rt/\\evil.example", "sho.rt/%2F%2Fevil.example", "sho.rt/\r\nX: y", "sho.rt/ä"),
    ],
)
async def test_nothing_but_links_leads_anywhere(
    visitor: AsyncClient, as_ada: Headers, link: str
) -> None:
    answer = await ask(visitor, link, as_ada)

    assert answer.status_code == 404
    assert "location" not in answer.headers


async def test_a_preview_shows_pictures_of_its_own_host(
    visitor: AsyncClient, rt: Runtime, ada: User
) -> None:
    headers = await browser_of(rt, ada)

    page = await ask(visitor, "sho.rt/secret+", headers)
    picture = await ask(visitor, "sho.rt/secret.qr", headers)

    assert page.status_code == 200
    assert 'src="/auth/follow?link=sho.rt%2Fsecret.qr"' in page.text
    assert "sho.rt/secret" in page.text
    assert picture.headers["content-type"].startswith("image/svg+xml")


async def test_a_session_counts_on_the_default_domain_only(
    visitor: AsyncClient, rt: Runtime, ada: User
) -> None:
    cookie = await browser_of(rt, ada)

    answer = await visitor.get("http://sho.rt/app/links", headers=cookie)
    asked: dict[str, Any] = {"json": {"destination": SECRET}, "headers": cookie}

    assert answer.status_code == 404
    assert (await visitor.post("http://sho.rt/api/v1/links", **asked)).status_code in (404, 405)
