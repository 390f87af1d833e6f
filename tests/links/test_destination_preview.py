"""The check of a destination while it is typed into the form."""

import pytest
from httpx import AsyncClient

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.pages.preview import PREVIEWS_PER_MINUTE
from refract.links.safety.blocked_domains import block_domain
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.fetching import settings, web
from tests.lists.pages_server import Site, page, redirect

__all__ = ["settings", "web"]

pytestmark = on_sqlite


@pytest.fixture
async def as_ada(client: AsyncClient, rt: Runtime, ada: User) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_cookie(rt, await make.cookie(session, rt, ada)))
    return client


async def _look(client: AsyncClient, destination: str) -> str:
    answer = await client.get("/app/links/look", params={"destination": destination})
    assert answer.status_code == 200, answer.text
    return answer.text.strip()


async def test_the_title_of_the_page_is_offered(as_ada: AsyncClient, web: Site) -> None:
    web.pages["/good"] = page(b"<title>Tom &amp; <i>Jerry</i></title>")
    web.pages["/inside"] = redirect("http://10.0.0.1/")

    said = await _look(as_ada, f"  {web.url('/good')} ")

    assert "Tom &amp; &lt;i&gt;Jerry&lt;/i&gt;" in said
    assert 'data-fill="field-title"' in said
    assert "isn’t encrypted" in said
    for silent in ("/404", "/inside"):
        assert "data-fill" not in await _look(as_ada, web.url(silent))


async def test_what_speaks_against_it_is_said_and_nothing_is_fetched(
    as_ada: AsyncClient, rt: Runtime, ada: User, web: Site
) -> None:
    async with rt.db.write() as session:
        await block_domain(session, "bad.example", reason="", by=ada.id, at=rt.clock.now())

    assert "bad.example" in await _look(as_ada, "https://bad.example/x")
    assert "already a Refract link" in await _look(as_ada, f"{rt.settings.public_url}/roadmap")
    assert "circle-alert" in await _look(as_ada, "javascript://alert(1)")
    assert "look" not in await _look(as_ada, "https://unfinished.example/{1}")
    assert "isn’t encrypted" in await _look(as_ada, f"{web.url('/jira')}/{{1}}")
    for unfinished in ("", "exam"):
        assert await _look(as_ada, unfinished) == ""
    assert web.asked == []


async def test_own_links_to_the_same_destination_are_named(
    as_ada: AsyncClient, rt: Runtime, ada: User, web: Site
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, web.url("/plans"), name="plans")

    said = await _look(as_ada, web.url("/plans"))

    assert f'<a href="/app/links/{link.id}">/plans</a>' in said
    assert "already has" not in await _look(as_ada, web.url("/plans/2"))
    itself = await as_ada.get(
        "/app/links/look", params={"destination": web.url("/plans"), "link": str(link.id)}
    )
    assert "already has" not in itself.text


async def test_the_card_has_title_and_description_of_the_page(
    as_ada: AsyncClient, web: Site
) -> None:
    web.pages["/card"] = page(
        b'<title>Plans</title><meta name="description" content="What we do next.">'
    )

    said = await _look(as_ada, web.url("/card"))

    assert 'id="live-card" hx-swap-oob="true"' in said
    assert "What we do next." in said


async def test_looking_has_an_end(as_ada: AsyncClient, clock: ManualClock, web: Site) -> None:
    for _ in range(PREVIEWS_PER_MINUTE):
        await _look(as_ada, "javascript://alert(1)")

    assert (
        await as_ada.get("/app/links/look", params={"destination": web.url("/")})
    ).status_code == 429
    await _look(as_ada, "unfinished costs nothing")
    assert web.asked == []
    clock.advance(10)
    await _look(as_ada, "javascript://alert(1)")
