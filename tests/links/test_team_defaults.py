"""Tags and domain that new links of a team start with."""

from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.teams.models import Team
from tests import make
from tests.client import by_cookie, by_key, on_sqlite

HOST = "sho.rt"
NEW = {"destination": "https://example.com/plan", "team": "crew"}


@pytest.fixture
async def crew(rt: Runtime, ada: User, bob: User) -> Team:
    """Ada manages it, Bob is a member. There is a second domain."""
    async with rt.db.write() as session:
        await make.domain(session, rt, HOST)
        return await make.team(session, rt, ada, bob)


async def _keys(rt: Runtime, *users: User) -> list[dict[str, str]]:
    async with rt.db.write() as session:
        return [by_key(await make.key(session, rt, user)) for user in users]


async def _create(client: AsyncClient, headers: dict[str, str], **given: Any) -> tuple[Any, Any]:
    made = await client.post("/api/v1/links", headers=headers, json=NEW | given)
    assert made.status_code == 201, made.text
    return made.json()["domain"], made.json()["tags"]


async def test_new_links_of_a_team_start_with_its_tags_on_its_domain(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, crew: Team
) -> None:
    as_ada, as_bob = await _keys(rt, ada, bob)
    path, defaults = f"/api/v1/teams/{crew.id}/defaults", {"domain": HOST, "tags": ["Plans", "Q4"]}
    refused = await client.put(path, headers=as_bob, json=defaults)
    assert (refused.status_code, refused.json()["code"]) == (403, "NOT_TEAM_MANAGER")
    saved = (await client.put(path, headers=as_ada, json=defaults)).json()
    assert (saved["default_domain"], saved["default_tags"]) == (HOST, ["Plans", "Q4"])

    async with rt.db.write() as session:
        service = by_key(await make.team_key(session, rt, crew, ada))
    assert await _create(client, as_bob) == (HOST, ["Plans", "Q4"])
    assert await _create(client, service) == (HOST, ["Plans", "Q4"])
    assert await _create(client, as_bob, tags=["Mine"]) == (HOST, ["Mine"])
    assert await _create(client, as_bob, tags=[], domain="go.test") == ("go.test", [])
    assert await _create(client, as_bob, team=None) == ("go.test", [])

    cleared = (await client.put(path, headers=as_ada, json={})).json()
    assert (cleared["default_domain"], cleared["default_tags"]) == (None, [])
    assert await _create(client, as_bob) == ("go.test", [])


@on_sqlite
async def test_a_default_domain_must_be_there_and_is_cleared_when_it_is_deleted(
    rt: Runtime, client: AsyncClient, ada: User, root: User, crew: Team
) -> None:
    (as_ada,) = await _keys(rt, ada)
    path = f"/api/v1/teams/{crew.id}/defaults"
    unknown = await client.put(path, headers=as_ada, json={"domain": "no.example"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "DOMAIN_NOT_FOUND")
    await client.put(path, headers=as_ada, json={"domain": HOST})
    async with rt.db.write() as session:
        as_root = by_key(await make.key(session, rt, root, *make.ALL))

    assert (await client.delete(f"/api/v1/domains/{HOST}", headers=as_root)).status_code == 204
    team = (await client.get(f"/api/v1/teams/{crew.id}", headers=as_ada)).json()
    assert team["default_domain"] is None


@on_sqlite
async def test_the_pages_set_and_show_the_defaults(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, crew: Team
) -> None:
    async with rt.db.write() as session:
        as_ada, as_bob = [
            by_cookie(rt, await make.cookie(session, rt, user)) for user in (ada, bob)
        ]
    path = f"/app/teams/{crew.id}"
    form = {"tags": "Plans, Q4", "domain": HOST}
    assert (await client.post(f"{path}/defaults", headers=as_ada, data=form)).status_code == 303
    assert 'value="Plans, Q4"' in (await client.get(path, headers=as_ada)).text
    wrong = await client.post(f"{path}/defaults", headers=as_ada, data={"domain": "no.example"})
    assert wrong.status_code == 404
    assert "There&#39;s no domain" in wrong.text

    new = (await client.get("/app/links/new?team=crew", headers=as_bob)).text
    assert 'value="Plans, Q4"' in new
    assert f'<option value="{HOST}" selected' in new
    plain = (await client.get("/app/links/new", headers=as_bob)).text
    assert 'value="Plans, Q4"' not in plain
    assert "data-team-defaults" in plain
