"""Admin pages of domains."""

import re

from httpx import AsyncClient, Response

from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import on_sqlite
from tests.people import Headers

pytestmark = on_sqlite
PATH = "/app/admin/domains"


async def add(client: AsyncClient, browser: Headers, host: str = "sho.rt") -> Response:
    return await client.post(PATH, headers=browser, data={"host": host})


async def show(client: AsyncClient, browser: Headers, host: str = "sho.rt") -> str:
    response = await client.get(f"{PATH}/{host}", headers=browser)
    assert response.status_code == 200
    return response.text


async def test_a_domain_is_added_and_says_what_to_do_next(
    client: AsyncClient, browser: Headers
) -> None:
    empty = (await client.get(PATH, headers=browser)).text
    assert "No other domains yet" in empty
    assert "go.test" in empty

    made = await add(client, browser, "Bücher.example")

    assert made.headers["location"] == f"{PATH}/xn--bcher-kva.example"
    page = await show(client, browser, "xn--bcher-kva.example")
    assert "xn--bcher-kva.example. CNAME go.test." in page
    assert 'href="http://xn--bcher-kva.example/health"' in page
    assert f'href="{PATH}/xn--bcher-kva.example"' in (await client.get(PATH, headers=browser)).text


async def test_what_was_typed_survives_an_error(client: AsyncClient, browser: Headers) -> None:
    refused = await add(client, browser, "https://sho.rt/")

    assert refused.status_code == 422
    assert 'value="https://sho.rt/"' in refused.text
    assert "enter only the host" in refused.text
    await add(client, browser)
    assert (await add(client, browser)).status_code == 409


async def test_settings_are_saved_together(
    client: AsyncClient, rt: Runtime, browser: Headers, ada: User
) -> None:
    async with rt.db.write() as session:
        slug = (await make.team(session, rt, ada, name="Campaigns")).slug
    await add(client, browser)
    form = {
        "title": "Spring",
        "creators": f"team:{slug}",
        "default_redirect_status": "301",
        "root_destination": "www.example.com",
        "unknown_destination": "https://www.example.com/404",
        "gone_destination": "",
    }

    saved = await client.post(f"{PATH}/sho.rt", headers=browser, data=form)

    assert saved.status_code == 303, saved.text
    page = await show(client, browser)
    for shown in ("https://www.example.com/", "https://www.example.com/404", "Spring"):
        assert f'value="{shown}"' in page
    assert re.search(rf'<option value="team:{slug}" selected>Team Campaigns', page)
    assert '<option value="301" selected>' in page
    assert f"Team {slug}" in (await client.get(PATH, headers=browser)).text


async def test_errors_stand_beside_their_fields(client: AsyncClient, browser: Headers) -> None:
    await add(client, browser)
    form = {"title": "Kept", "unknown_destination": "ftp://example.com", "creators": "everyone"}

    refused = await client.post(f"{PATH}/sho.rt", headers=browser, data=form)
    teamless = await client.post(f"{PATH}/sho.rt", headers=browser, data={"creators": "team"})
    long = await client.post(f"{PATH}/sho.rt", headers=browser, data={"title": "x" * 81})

    assert (refused.status_code, teamless.status_code, long.status_code) == (422, 422, 422)
    assert 'id="field-unknown_destination-error"' in refused.text
    assert 'value="ftp://example.com"' in refused.text
    assert 'value="Kept"' in refused.text
    assert "Choose the team" in teamless.text
    assert 'id="field-title-error"' in long.text


async def test_a_domain_is_disabled_enabled_and_deleted(
    client: AsyncClient, rt: Runtime, browser: Headers, ada: User
) -> None:
    await add(client, browser)
    path = f"{PATH}/sho.rt"

    assert (await client.post(f"{path}/disable", headers=browser)).status_code == 303
    assert f'action="{path}/enable"' in await show(client, browser)
    assert (await client.post(f"{path}/enable", headers=browser)).status_code == 303
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
        link.domain = "sho.rt"
    refused = await client.post(f"{path}/delete", headers=browser)
    assert refused.status_code == 409
    assert "still has links or lists (1)" in refused.text
    async with rt.db.write() as session:
        (await session.get_one(type(link), link.id)).domain = None
    assert (await client.post(f"{path}/delete", headers=browser)).headers["location"] == PATH
    assert (await client.get(path, headers=browser)).status_code == 404
