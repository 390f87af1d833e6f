"""What a domain answers where there is no link."""

from datetime import timedelta

import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import client_of, on_sqlite
from tests.people import Headers
from tests.waiting import eventually

pytestmark = on_sqlite
API = "/api/v1/domains"
FULL, BARE = "http://full.example", "http://bare.example"
HOME, UNKNOWN, GONE = (f"https://www.example.com/{word}" for word in ("home", "unknown", "gone"))
AS_BROWSER = {"Accept": "text/html"}


@pytest.fixture
async def visitor(
    rt: Runtime, ada: User, clock: ManualClock, node: WebNode, client: AsyncClient, as_root: Headers
) -> AsyncClient:
    """A domain with all fallbacks and one without, each with an expired link."""
    given = {
        "root_destination": HOME,
        "unknown_destination": UNKNOWN,
        "gone_destination": GONE,
        "default_redirect_status": 307,
    }
    await client.post(API, headers=as_root, json={"host": "full.example", **given})
    await client.post(API, headers=as_root, json={"host": "bare.example"})
    soon = clock.now() + timedelta(hours=1)
    async with rt.db.write() as session:
        for host in ("full.example", "bare.example"):
            await make.link(session, rt, ada, name="old", domain=host, expires_at=soon)
    clock.advance(7200)
    await eventually(lambda: node.engine and node.engine.domains.get("bare.example"))
    return client_of(node)


@pytest.mark.parametrize(
    ("path", "destination", "status"),
    [("/", HOME, 404), ("/unknown", UNKNOWN, 404), ("/old", GONE, 410), ("/old+", GONE, 410)],
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_each_fallback_is_optional(
    visitor: AsyncClient, path: str, destination: str, status: int, accept: str
) -> None:
    led = await visitor.get(FULL + path, headers={"Accept": accept})
    left = await visitor.get(BARE + path, headers={"Accept": accept})

    assert (led.status_code, led.headers["location"]) == (302, destination)
    assert left.status_code == status
    for answer in (led, left):
        assert "set-cookie" not in answer.headers


async def test_pages_of_other_domains_lead_to_the_web_app(visitor: AsyncClient) -> None:
    for path in ("/", "/unknown", "/old"):
        page = (await visitor.get(BARE + path, headers=AS_BROWSER)).text
        assert 'href="http://go.test/"' in page
        assert 'href="http://go.test/auth/sign-in"' in page
        assert "/manifest.webmanifest" not in page
        assert 'href="/auth' not in page
        assert 'href="/"' not in page
    assert "nothing here" in (await visitor.get(f"{BARE}/", headers=AS_BROWSER)).text


async def test_a_changed_fallback_counts_at_once(
    visitor: AsyncClient, client: AsyncClient, as_root: Headers, node: WebNode
) -> None:
    changes = {"unknown_destination": None, "root_destination": GONE}
    await client.patch(f"{API}/full.example", headers=as_root, json=changes)

    async def is_changed() -> bool:
        return (await visitor.get(f"{FULL}/unknown")).status_code == 404

    await eventually(is_changed)
    assert (await visitor.get(f"{FULL}/")).headers["location"] == GONE


async def test_a_disabled_domain_is_misdirected(
    visitor: AsyncClient, client: AsyncClient, as_root: Headers
) -> None:
    await client.patch(f"{API}/full.example", headers=as_root, json={"state": "disabled"})

    async def is_refused() -> bool:
        return (await visitor.get(f"{FULL}/old")).status_code == 421

    await eventually(is_refused)
    assert (await visitor.get(f"{BARE}/old")).status_code == 410


async def test_links_take_the_redirect_status_of_their_domain(
    visitor: AsyncClient, client: AsyncClient, as_ada: Headers
) -> None:
    body = {"destination": make.DESTINATION, "domain": "full.example"}

    usual = await client.post("/api/v1/links", headers=as_ada, json=body)
    chosen = await client.post(
        "/api/v1/links", headers=as_ada, json=body | {"redirect_status": 301}
    )

    assert (usual.json()["redirect_status"], chosen.json()["redirect_status"]) == (307, 301)
    assert usual.json()["short_url"].startswith(f"{FULL}/")
    assert (await visitor.get(usual.json()["short_url"])).status_code == 307


async def test_only_those_who_may_create_links_there_do(
    visitor: AsyncClient,
    client: AsyncClient,
    as_root: Headers,
    as_ada: Headers,
    as_bob: Headers,
    rt: Runtime,
    ada: User,
) -> None:
    async with rt.db.write() as session:
        team = await make.team(session, rt, ada, name="Campaigns")
    path = f"{API}/bare.example"

    async def statuses() -> list[int]:
        body = {"destination": make.DESTINATION, "domain": "bare.example"}
        return [
            (await client.post("/api/v1/links", headers=headers, json=body)).status_code
            for headers in (as_root, as_ada, as_bob)
        ]

    assert await statuses() == [201, 201, 201]
    await client.patch(path, headers=as_root, json={"creators": "team", "team": team.slug})
    assert await statuses() == [201, 201, 403]
    await client.patch(path, headers=as_root, json={"creators": "administrators"})
    assert await statuses() == [201, 403, 403]
    await client.patch(path, headers=as_root, json={"state": "disabled"})
    assert await statuses() == [409, 409, 409]


async def test_crawlers_may_read_other_domains(visitor: AsyncClient) -> None:
    assert (await visitor.get(f"{BARE}/robots.txt")).text == "User-agent: *\nDisallow:\n"
    assert "Disallow: /app\n" in (await visitor.get("http://go.test/robots.txt")).text
