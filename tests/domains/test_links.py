"""Domains where links are created, shown and filtered."""

import json

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.models import Link
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.people import Headers


@pytest.fixture
async def page(rt: Runtime, ada: User) -> Headers:
    """Headers of a browser in which Ada has signed in."""
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}


@pytest.fixture
async def links(rt: Runtime, ada: User) -> dict[str, Link]:
    """A link of the same name on each of two domains."""
    async with rt.db.write() as session:
        await make.domain(session, rt, "sho.rt", default_redirect_status=301)
        return {
            host: await make.link(session, rt, ada, name="plan", domain=host)
            for host in ("", "sho.rt")
        }


@on_sqlite
async def test_one_domain_is_no_choice(client: AsyncClient, page: Headers) -> None:
    assert 'name="domain"' not in (await client.get("/app/links/new", headers=page)).text
    assert 'name="domain"' not in (await client.get("/app/links", headers=page)).text


@on_sqlite
async def test_a_link_is_created_on_the_chosen_domain(
    client: AsyncClient, page: Headers, links: dict[str, Link]
) -> None:
    form = (await client.get("/app/links/new?domain=sho.rt", headers=page)).text
    assert '<option value="sho.rt" selected>sho.rt</option>' in form
    assert ">sho.rt/</span>" in form
    fields = {"destination": make.DESTINATION, "name": "new", "domain": "sho.rt", "then": "link"}

    made = await client.post(
        "/app/links", headers=page | {"HX-Request": "true"}, data=fields | {"redirect_status": ""}
    )

    saved = json.loads(made.headers["hx-trigger"])["refract:link-saved"]
    assert saved["copy"] == "http://sho.rt/new"
    shown = (await client.get(f"{saved['href']}?tab=settings", headers=page)).text
    assert '<span class="short-host">sho.rt/</span>new' in shown
    assert 'src="/app/qr?name=new&amp;domain=sho.rt"' in shown
    assert 'href="http://sho.rt/new+"' in shown
    assert "301 Permanent" in shown


@on_sqlite
async def test_a_domain_that_is_not_allowed_is_refused_at_its_field(
    client: AsyncClient, rt: Runtime, page: Headers
) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, "root.example", creators="administrators")
    fields = {"destination": make.DESTINATION, "domain": "root.example", "then": "link"}

    refused = await client.post("/app/links", headers=page, data=fields)

    assert refused.status_code == 422
    assert 'id="field-domain-error"' in refused.text
    assert "ask an administrator" in refused.text


@on_sqlite
async def test_a_link_page_names_every_address(
    client: AsyncClient, page: Headers, links: dict[str, Link]
) -> None:
    path = f"/app/links/{links['sho.rt'].id}"
    given = {"name": "second", "domain": "go.test"}

    added = await client.post(f"{path}/names", headers=page, data=given)
    shown = (await client.get(f"{path}?tab=settings", headers=page)).text

    assert added.status_code == 303, added.text
    for url in ("http://sho.rt/plan", "http://go.test/second"):
        assert f'data-copy="{url}"' in shown
    gone = await client.post(f"{path}/names/second/release", headers=page, data=given)
    assert gone.status_code == 303
    assert "go.test/second" not in (await client.get(f"{path}?tab=settings", headers=page)).text


async def test_links_are_filtered_by_domain(
    client: AsyncClient, as_ada: Headers, links: dict[str, Link]
) -> None:
    async def found(**params: str) -> list[str]:
        response = await client.get("/api/v1/links", headers=as_ada, params=params)
        return sorted(link["domain"] for link in response.json()["items"])

    assert await found() == ["go.test", "sho.rt"]
    assert await found(domain="SHO.rt") == ["sho.rt"]
    assert await found(domain="go.test") == ["go.test"]
    assert await found(domain="sho.rt", q="plan", sort="updated") == ["sho.rt"]
    assert await found(domain="absent.example") == []


@on_sqlite
async def test_the_table_shows_and_filters_domains(
    client: AsyncClient, page: Headers, links: dict[str, Link]
) -> None:
    everything = (await client.get("/app/links", headers=page)).text
    there = (await client.get("/app/links?domain=sho.rt", headers=page)).text
    here = (await client.get("/app/links?domain=go.test", headers=page)).text

    assert 'data-copy="http://sho.rt/plan"' in everything
    assert 'data-copy="http://go.test/plan"' in everything
    assert 'data-copy="http://go.test/plan"' not in there
    assert 'data-copy="http://sho.rt/plan"' not in here
    assert '<option value="sho.rt" selected>' in there
    assert '<option value="go.test" selected>' in here


@on_sqlite
async def test_a_picture_is_drawn_for_any_domain(
    client: AsyncClient, page: Headers, links: dict[str, Link]
) -> None:
    ways = [{}, {"domain": "sho.rt"}, {"domain": "go.test"}, {"domain": "absent.example"}]
    answers = [
        await client.get("/app/qr", headers=page, params={"name": "plan"} | way) for way in ways
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 404]
    default, there, named, _ = (answer.text for answer in answers)
    assert (default == named, default == there) == (True, False)
    png = {"name": "plan", "domain": "sho.rt", "format": "png", "size": "1024"}
    drawn = await client.get("/app/qr", headers=page, params=png)
    assert drawn.headers["content-type"] == "image/png"
