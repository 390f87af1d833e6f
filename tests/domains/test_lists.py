"""Lists on other domains: the choice before publishing, addresses, and the share sheet."""

from typing import Any

import httpx
import pytest

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.people import Headers

pytestmark = on_sqlite
PAGE = {"Accept": "text/html"}


@pytest.fixture
async def as_reader(rt: Runtime, app: WebNode, ada: User) -> Headers:
    """The browser of a user who may publish on one of two domains."""
    async with rt.db.write() as session:
        await make.domain(session, rt)
        await make.domain(session, rt, "closed.test", creators="administrators")
        cookie = await make.cookie(session, rt, ada)
    assert app.engine is not None
    await app.engine.invalidator.poll()
    return by_cookie(rt, cookie) | PAGE


async def create_draft(client: httpx.AsyncClient, who: Headers) -> str:
    made = await client.post(
        "/app/lists", headers=who, data={"title": "Reading", "urls": "https://example.com/"}
    )
    return made.headers["location"]


async def publish(
    client: httpx.AsyncClient, who: Headers, draft: str, **form: Any
) -> httpx.Response:
    given = {"has_name": "1", "has_domain": "1", "slug": "reading", "title": "Reading", **form}
    return await client.post(f"{draft}/publish", headers=who, data=given)


async def test_a_draft_is_published_on_the_chosen_domain(
    client: httpx.AsyncClient, as_reader: Headers
) -> None:
    draft = await create_draft(client, as_reader)
    builder = (await client.get(draft, headers=as_reader)).text
    assert '<option value="sho.rt">sho.rt</option>' in builder
    assert "closed.test" not in builder

    assert (await publish(client, as_reader, draft, domain="sho.rt")).status_code == 303

    page = (await client.get(f"{draft}?share", headers=as_reader)).text
    assert 'href="http://sho.rt/reading"' in page
    for view in (".rss", ".json", ".md", ".png", ".qr?format=png&amp;size=1024"):
        assert f'href="http://sho.rt/reading{view}"' in page
    picture = "/app/qr?name=reading&amp;domain=sho.rt"
    assert f'src="{picture}"' in page
    shown = await client.get(picture.replace("&amp;", "&"), headers=as_reader)
    assert shown.headers["content-type"] == "image/svg+xml"
    preview = await client.get(f"{draft}/preview", headers=as_reader)
    assert preview.headers["location"] == "http://sho.rt/reading?edition=1"
    there = {"Host": "sho.rt", **PAGE}
    assert "Reading" in (await client.get("/reading", headers=there)).text
    assert "http://sho.rt/reading" in (await client.get("/reading.rss", headers=there)).text
    assert (await client.get("/reading", headers=PAGE)).status_code == 404


async def test_a_saved_domain_is_chosen_again_and_can_be_left(
    client: httpx.AsyncClient, as_reader: Headers
) -> None:
    draft = await create_draft(client, as_reader)
    form = {"has_name": "1", "has_domain": "1", "slug": "reading", "title": "Reading"}
    for domain in ("sho.rt", ""):
        saved = await client.post(draft, headers=as_reader, data={**form, "domain": domain})
        assert saved.status_code == 303
        builder = (await client.get(draft, headers=as_reader)).text
        assert f'<option value="{domain}" selected>' in builder
    await publish(client, as_reader, draft)
    assert (await client.get("/reading", headers=PAGE)).status_code == 200


async def test_names_are_checked_on_the_chosen_domain(
    client: httpx.AsyncClient, rt: Runtime, ada: User, as_reader: Headers
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="reading", domain="sho.rt")
    for domain, word in (("sho.rt", "slug-not-free"), ("", "slug-free")):
        asked = {"slug": "reading", "domain": domain}
        state = await client.get("/app/lists/availability", headers=as_reader, params=asked)
        assert word in state.text
    draft = await create_draft(client, as_reader)
    refused = await publish(client, as_reader, draft, domain="sho.rt")
    assert refused.status_code == 409
    assert '<option value="sho.rt" selected>' in refused.text


@pytest.mark.parametrize("domain", ["closed.test", "unknown.test"])
async def test_a_domain_that_one_may_not_use_is_refused(
    client: httpx.AsyncClient, as_reader: Headers, domain: str
) -> None:
    draft = await create_draft(client, as_reader)
    assert (await publish(client, as_reader, draft, domain=domain)).status_code in (403, 404)
    assert (await client.get("/reading", headers=PAGE)).status_code == 404


async def test_strangers_have_no_choice_of_domains(
    client: httpx.AsyncClient, as_reader: Headers
) -> None:
    made = await client.post("/app/lists", headers=PAGE, data={"title": "Mine"})
    cookies = {"Cookie": made.headers["set-cookie"].split(";")[0]} | PAGE
    draft = made.headers["location"]
    builder = (await client.get(draft, headers=cookies)).text
    assert 'name="domain"' not in builder
    refused = await publish(client, cookies, draft, domain="sho.rt")
    assert refused.status_code in (303, 401, 403)
    assert (await client.get("/reading", headers={"Host": "sho.rt", **PAGE})).status_code == 404
