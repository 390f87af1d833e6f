"""Teams as owners of lists: rights, transfers, edits by several members, keys, deletion."""

from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select, update

from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.lists.models import LinkList
from refract.lists.service import RETENTION, purge_old_lists
from refract.registry import list_team_hooks
from refract.teams import service as teams
from refract.teams.errors import TeamOwnsLists
from refract.teams.models import Team
from refract.teams.queries import TeamCaller
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.lists.clients import code, creator, new_list, published, read

URL = "https://example.com/page"


@pytest.fixture
async def crew(rt: Runtime, ada: User, bob: User) -> Team:
    """Ada manages it, Bob is a member."""
    async with rt.db.write() as session:
        return await make.team(session, rt, ada, bob)


@pytest.fixture
async def keys(rt: Runtime, ada: User, bob: User, cleo: User) -> dict[str, dict[str, str]]:
    async with rt.db.write() as session:
        people = {"ada": ada, "bob": bob, "cleo": cleo}
        return {name: by_key(await make.key(session, rt, user)) for name, user in people.items()}


async def _change(
    client: AsyncClient, headers: dict[str, str], found: dict[str, Any], title: str, **more: str
) -> tuple[int, str]:
    path = f"/api/v1/lists/{found['id']}"
    response = await client.patch(path, headers=headers | more, json={"title": title})
    return response.status_code, response.json().get("code", response.json().get("title"))


async def test_members_edit_a_list_of_their_team_and_managers_transfer_it(
    client: AsyncClient, crew: Team, keys: dict[str, dict[str, str]]
) -> None:
    found = await new_list(client, keys["bob"], URL, team="crew")
    assert found["team"] == {"team_id": str(crew.id), "slug": "crew", "name": "Crew"}
    own = await new_list(client, keys["ada"], URL)

    assert await _change(client, keys["ada"], found, "By Ada") == (200, "By Ada")
    assert await _change(client, keys["bob"], found, "By Bob") == (200, "By Bob")
    assert await _change(client, keys["cleo"], found, "By Cleo") == (404, "LIST_NOT_FOUND")
    listed = (await client.get("/api/v1/lists", headers=keys["ada"])).json()["items"]
    assert [row["id"] for row in listed] == [own["id"], found["id"]]
    filtered = (await client.get("/api/v1/lists?team=crew", headers=keys["ada"])).json()["items"]
    assert [row["id"] for row in filtered] == [found["id"]]
    assert (await client.get("/api/v1/lists?team=crew", headers=keys["cleo"])).json()["items"] == []

    path, take = f"/api/v1/lists/{found['id']}/transfer", {"team": None}
    refused = await client.post(path, headers=keys["bob"], json=take)
    assert code(refused) == (403, "NOT_TEAM_MANAGER")
    assert code(await client.post(path, headers=keys["cleo"], json=take)) == (404, "LIST_NOT_FOUND")
    assert (await client.post(path, headers=keys["ada"], json=take)).json()["team"] is None
    assert await _change(client, keys["bob"], found, "Not mine") == (404, "LIST_NOT_FOUND")


async def test_who_leaves_is_kept_out_of_lists_at_once(
    rt: Runtime, client: AsyncClient, crew: Team, bob: User, keys: dict[str, dict[str, str]]
) -> None:
    found = await new_list(client, keys["bob"], URL, team="crew")
    async with rt.db.write() as session:
        await make.leave(session, rt, crew, bob)

    assert await _change(client, keys["bob"], found, "Still here") == (404, "LIST_NOT_FOUND")
    assert (await client.get("/api/v1/lists", headers=keys["bob"])).json()["items"] == []
    assert await _change(client, keys["ada"], found, "Ours") == (200, "Ours")


async def test_all_editions_follow_a_transfer(
    rt: Runtime, client: AsyncClient, crew: Team, ada: User, keys: dict[str, dict[str, str]]
) -> None:
    first = await published(client, keys["ada"], "reading", URL)
    draft = (await client.post(f"/api/v1/lists/{first['id']}/editions", headers=keys["ada"])).json()
    path = f"/api/v1/lists/{draft['id']}/transfer"
    moved = await client.post(path, headers=keys["ada"], json={"team": "crew"})
    assert moved.json()["team"]["slug"] == "crew"

    assert (await read(client, keys["bob"], first["id"]))["team"]["slug"] == "crew"
    done = await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=keys["bob"])
    assert (done.status_code, done.json()["edition"]) == (200, 2)
    page = await client.get("/reading")
    assert (page.status_code, page.headers.get("x-robots-tag")) == (200, None)
    async with rt.db.read() as session:
        entry = select(AuditEntry).where(AuditEntry.action == "list.transferred")
        noted = (await session.scalars(entry)).one()
        assert (noted.actor_id, noted.target, noted.detail) == (ada.id, draft["id"], "crew")


@on_sqlite
async def test_only_ones_own_teams_can_be_given_lists(
    client: AsyncClient, crew: Team, keys: dict[str, dict[str, str]]
) -> None:
    own = await new_list(client, keys["cleo"], URL)
    path = f"/api/v1/lists/{own['id']}/transfer"
    for slug in (crew.slug, "nobodys"):
        made = await client.post("/api/v1/lists", headers=keys["cleo"], json={"team": slug})
        given = await client.post(path, headers=keys["cleo"], json={"team": slug})
        assert [code(made), code(given)] == [(404, "TEAM_NOT_FOUND")] * 2
    anonymous = await client.post("/api/v1/lists", headers=creator(), json={"team": "crew"})
    assert code(anonymous) == (404, "TEAM_NOT_FOUND")


async def test_a_version_that_another_member_changed_is_not_overwritten(
    client: AsyncClient, crew: Team, keys: dict[str, dict[str, str]]
) -> None:
    found = await new_list(client, keys["ada"], team="crew")
    path = f"/api/v1/lists/{found['id']}"
    seen = (await client.get(path, headers=keys["bob"])).headers["etag"]

    assert await _change(client, keys["ada"], found, "First", **{"If-Match": seen}) == (
        200,
        "First",
    )
    assert await _change(client, keys["bob"], found, "Second", **{"If-Match": seen}) == (
        412,
        "VERSION_MISMATCH",
    )
    assert (await read(client, keys["bob"], found["id"]))["title"] == "First"


@on_sqlite
async def test_the_page_says_who_changed_what_and_refuses_to_replace_it(
    rt: Runtime,
    client: AsyncClient,
    crew: Team,
    ada: User,
    bob: User,
    keys: dict[str, dict[str, str]],
) -> None:
    found = await new_list(client, keys["ada"], team="crew")
    async with rt.db.write() as session:
        as_ada, as_bob = [
            by_cookie(rt, await make.cookie(session, rt, user)) for user in (ada, bob)
        ]
    path, version = f"/app/lists/{found['id']}", str(found["version"])
    saved = {"title": "Ada’s title", "version": version}
    assert (await client.post(path, headers=as_ada, data=saved)).status_code == 303

    assert "Ada" in (await client.get(path, headers=as_bob)).text
    late = await client.post(
        path, headers=as_bob, data={"title": "Bob’s title", "version": version}
    )
    assert late.status_code == 409
    assert "has changed these details" in late.text
    assert "Bob’s title" in late.text
    assert (await read(client, keys["bob"], found["id"]))["title"] == "Ada’s title"
    again = {"title": "Ada again", "version": version}  # her own change is no conflict
    assert (await client.post(path, headers=as_ada, data=again)).status_code == 303


async def test_a_key_of_a_team_makes_lists_for_it_and_does_not_transfer_them(
    rt: Runtime, client: AsyncClient, crew: Team, ada: User, keys: dict[str, dict[str, str]]
) -> None:
    async with rt.db.write() as session:
        service = by_key(await make.team_key(session, rt, crew, ada))

    found = await published(client, service, "release-notes", URL)
    assert found["team"]["slug"] == "crew"
    assert (await read(client, keys["bob"], found["id"]))["slug"] == "release-notes"
    path = f"/api/v1/lists/{found['id']}/transfer"
    refused = await client.post(path, headers=service, json={"team": None})
    assert code(refused) == (403, "NOT_TEAM_MANAGER")
    browser = creator()
    draft = await new_list(client, browser, URL)
    claim = await client.post("/api/v1/lists/claim", headers=service | browser)
    assert claim.json()["claimed"] == 0
    assert await _change(client, service | browser, draft, "Taken") == (404, "LIST_NOT_FOUND")
    assert await _change(client, browser, draft, "Mine") == (200, "Mine")


async def test_a_team_that_owns_lists_is_not_deleted(
    rt: Runtime, client: AsyncClient, crew: Team, ada: User, keys: dict[str, dict[str, str]]
) -> None:
    found = await new_list(client, keys["ada"], URL, team="crew")
    caller, hooks = TeamCaller(ada.id), list_team_hooks()
    async with rt.db.write() as session:
        with pytest.raises(TeamOwnsLists):
            await teams.delete_team(session, caller, crew.id, hooks, rt)
    await client.delete(f"/api/v1/lists/{found['id']}", headers=keys["bob"])
    async with rt.db.write() as session:
        await teams.delete_team(session, caller, crew.id, hooks, rt)

    async with rt.db.read() as session:
        left = (await session.scalars(select(LinkList))).one()
        assert (left.owner_id, left.team_id) == (None, None)
    undone = await client.post(f"/api/v1/lists/{found['id']}/undo", headers=keys["ada"])
    assert code(undone) == (404, "LIST_NOT_FOUND")


@on_sqlite
async def test_an_old_draft_of_a_team_is_not_abandoned(
    rt: Runtime, client: AsyncClient, crew: Team, keys: dict[str, dict[str, str]]
) -> None:
    found = await new_list(client, keys["ada"], URL, team="crew")
    async with rt.db.write() as session:
        await session.execute(update(LinkList).values(updated_at=rt.clock.now() - 2 * RETENTION))
        assert await purge_old_lists(session, rt.clock.now()) == 0
    assert (await read(client, keys["ada"], found["id"]))["entry_count"] == 1
