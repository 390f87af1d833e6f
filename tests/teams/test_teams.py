"""Teams: creation, members, roles, leaving, and what an account's export and deletion do."""

import json

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.account_deletion import delete_account, export_account
from refract.identity.models import AuditEntry, User
from refract.identity.personal_data import AccountDeletion
from refract.registry import list_personal_data_hooks
from refract.teams.models import Team, TeamMember
from tests import make
from tests.people import Headers


async def _create(client: AsyncClient, headers: Headers, **given: str) -> dict[str, str]:
    response = await client.post("/api/v1/teams", headers=headers, json=given)
    assert response.status_code == 201, response.text
    made: dict[str, str] = response.json()
    assert response.headers["location"] == f"/api/v1/teams/{made['id']}"
    return made


async def _members(client: AsyncClient, headers: Headers, team: str) -> list[tuple[str, str]]:
    response = await client.get(f"/api/v1/teams/{team}/members", headers=headers)
    return [(member["name"], member["role"]) for member in response.json()["items"]]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Marketing", "marketing"),
        ("  Café & Friends! ", "cafe-friends"),
        ("x" * 80, "x" * 50),
    ],
)
async def test_a_handle_is_derived_from_the_name(
    client: AsyncClient, as_ada: Headers, name: str, slug: str
) -> None:
    made = await _create(client, as_ada, name=name)

    assert (made["name"], made["slug"], made["role"]) == (name.strip(), slug, "manager")


async def test_a_name_without_latin_letters_gets_a_handle_too(
    client: AsyncClient, as_ada: Headers
) -> None:
    assert (await _create(client, as_ada, name="设计组"))["slug"].startswith("team-")


async def test_a_handle_is_taken_once(
    client: AsyncClient, as_ada: Headers, as_bob: Headers
) -> None:
    await _create(client, as_ada, name="Design")
    other = await _create(client, as_bob, name="Design too", slug="design-2")

    again = await client.post("/api/v1/teams", headers=as_bob, json={"name": "Design"})
    renamed = await client.patch(
        f"/api/v1/teams/{other['id']}", headers=as_bob, json={"slug": "design"}
    )

    assert (again.status_code, again.json()["code"]) == (409, "TEAM_SLUG_TAKEN")
    assert (renamed.status_code, renamed.json()["code"]) == (409, "TEAM_SLUG_TAKEN")
    found = await client.get(f"/api/v1/teams/{other['id']}", headers=as_bob)
    assert found.json()["slug"] == "design-2"


@pytest.mark.parametrize("slug", ["-a", "A", "a b", "ü", "a/b"])
async def test_a_handle_is_plain(client: AsyncClient, as_ada: Headers, slug: str) -> None:
    response = await client.post("/api/v1/teams", headers=as_ada, json={"name": "A", "slug": slug})

    assert (response.status_code, response.json()["code"]) == (422, "INVALID_TEAM_SLUG")


async def test_members_are_added_promoted_and_removed(
    client: AsyncClient, rt: Runtime, as_ada: Headers, as_bob: Headers, bob: User, cleo: User
) -> None:
    team = (await _create(client, as_ada, name="Crew"))["id"]
    path = f"/api/v1/teams/{team}/members"
    assert (await client.get(path, headers=as_bob)).status_code == 404

    for user in (bob, cleo):
        added = await client.post(path, headers=as_ada, json={"email": user.email})
        assert (added.status_code, added.json()["role"]) == (201, "member")
    again = await client.post(path, headers=as_ada, json={"email": bob.email})
    assert again.json()["code"] == "TEAM_MEMBER_EXISTS"
    by_member = await client.post(path, headers=as_bob, json={"email": "x@example.com"})
    assert by_member.json()["code"] == "NOT_TEAM_MANAGER"

    role = {"role": "manager"}
    assert (await client.patch(f"{path}/{bob.id}", headers=as_ada, json=role)).status_code == 200
    assert (await client.delete(f"{path}/{cleo.id}", headers=as_bob)).status_code == 204

    assert await _members(client, as_bob, team) == [("Ada", "manager"), ("Bob", "manager")]
    async with rt.db.read() as session:
        lines = select(AuditEntry.action, AuditEntry.detail).where(AuditEntry.target == team)
        found = [tuple(row) for row in await session.execute(lines.order_by(AuditEntry.id))]
    assert found == [
        ("team.created", "crew"),
        ("team.member_added", f"member {bob.id}"),
        ("team.member_added", f"member {cleo.id}"),
        ("team.role_changed", f"manager {bob.id}"),
        ("team.member_removed", str(cleo.id)),
    ]


async def test_the_last_manager_can_neither_leave_nor_step_down(
    client: AsyncClient, rt: Runtime, as_ada: Headers, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        team = await make.team(session, rt, ada, bob)
    path = f"/api/v1/teams/{team.id}/members/{ada.id}"

    left = await client.delete(path, headers=as_ada)
    demoted = await client.patch(path, headers=as_ada, json={"role": "member"})

    assert [left.json()["code"], demoted.json()["code"]] == ["LAST_TEAM_MANAGER"] * 2
    await client.patch(
        f"/api/v1/teams/{team.id}/members/{bob.id}", headers=as_ada, json={"role": "manager"}
    )
    assert (await client.delete(path, headers=as_ada)).status_code == 204
    assert (await client.get(f"/api/v1/teams/{team.id}", headers=as_ada)).status_code == 404


async def test_a_list_of_teams_is_ones_own_and_an_administrator_may_see_all(
    client: AsyncClient, as_ada: Headers, as_bob: Headers, as_root: Headers
) -> None:
    for name in ("Alpha", "Gamma"):
        await _create(client, as_ada, name=name)
    await _create(client, as_bob, name="Beta")

    async def listed(headers: Headers, **params: str) -> list[str]:
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            response = await client.get(
                "/api/v1/teams", headers=headers, params={"limit": "1", **params, **cursor}
            )
            page = response.json()
            found += [team["slug"] for team in page["items"]]
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    assert await listed(as_ada) == ["alpha", "gamma"]
    assert await listed(as_bob) == ["beta"]
    assert await listed(as_root) == []
    assert await listed(as_root, everyone="true") == ["alpha", "beta", "gamma"]
    refused = await client.get("/api/v1/teams", headers=as_ada, params={"everyone": "true"})
    assert refused.json()["code"] == "ADMIN_REQUIRED"


async def test_a_deleted_account_leaves_its_teams_and_another_member_manages_them(
    rt: Runtime, ada: User, bob: User, cleo: User
) -> None:
    async with rt.db.write() as session:
        team = await make.team(session, rt, ada, cleo, bob)
        alone = await make.team(session, rt, ada, name="Alone")
    document = "".join(
        [piece async for piece in export_account(rt, ada, list_personal_data_hooks())]
    )
    exported = json.loads(document)["teams"]
    assert [(row["slug"], row["role"]) for row in exported] == [
        ("alone", "manager"),
        ("crew", "manager"),
    ]

    async with rt.db.write() as session:
        await delete_account(session, rt, AccountDeletion(ada), list_personal_data_hooks(), by=ada)

    async with rt.db.read() as session:
        rows = await session.execute(
            select(TeamMember.team_id, TeamMember.user_id, TeamMember.role)
        )
        roles = {tuple(row) for row in rows}
        teams = set(await session.scalars(select(Team.id)))
    first = min(bob.id, cleo.id)
    other = max(bob.id, cleo.id)
    assert roles == {(team.id, first, "manager"), (team.id, other, "member")}
    assert teams == {team.id, alone.id}
