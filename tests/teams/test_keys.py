"""API keys of teams: who makes them, what they reach, and when they end."""

from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity import keys
from refract.identity.account_deletion import delete_account
from refract.identity.authentication import Caller
from refract.identity.models import ApiKey, AuditEntry, KeyStatus, Scope, User
from refract.identity.personal_data import AccountDeletion
from refract.identity.revocation import RevocationWatcher
from refract.identity.users import get_users_by_id
from refract.links.models import LinkOwner
from refract.registry import list_personal_data_hooks
from refract.teams import service
from refract.teams.models import Team, TeamMember, TeamRole
from refract.teams.queries import TeamCaller
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.people import Headers


@pytest.fixture
async def crew(rt: Runtime, ada: User, bob: User) -> Team:
    """A team that Ada manages, with Bob in it."""
    async with rt.db.write() as session:
        return await make.team(session, rt, ada, bob)


@pytest.fixture
async def in_browser(rt: Runtime, ada: User) -> Headers:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, ada))


async def _create(client: AsyncClient, headers: Headers, team: Team, **given: object) -> Any:
    path = f"/api/v1/teams/{team.id}/keys"
    response = await client.post(path, headers=headers, json={"name": "Deploy", **given})
    assert response.status_code == 201, response.text
    return response.json()


async def test_a_key_acts_as_the_team(
    client: AsyncClient, rt: Runtime, ada: User, bob: User, crew: Team, in_browser: Headers
) -> None:
    async with rt.db.write() as session:
        own = await make.link(session, rt, ada, name="own")
        shared = await make.link(session, rt, ada, name="shared", team="crew", visibility="team")
    key = by_key((await _create(client, in_browser, crew))["key"])

    new = {"destination": "https://example.com/", "names": ["made"]}
    made = (await client.post("/api/v1/links", headers=key, json=new)).json()
    assert (made["owners"], [team["slug"] for team in made["teams"]]) == ([], ["crew"])
    listed = (await client.get("/api/v1/links", headers=key)).json()["items"]
    assert {item["names"][0] for item in listed} == {"made", "shared"}
    patched = await client.patch(
        f"/api/v1/links/{shared.id}", headers=key, json={"title": "By a key"}
    )
    assert patched.json()["title"] == "By a key"
    assert (await client.get("/shared", headers=key)).status_code == 302
    assert (await client.get(f"/api/v1/links/{own.id}", headers=key)).status_code == 404
    stats = await client.get(f"/api/v1/links/{shared.id}/stats", headers=key)
    assert stats.status_code == 200
    transfer = {"email": "bob@example.com"}
    path = f"/api/v1/links/{shared.id}/transfer"
    assert (await client.post(path, headers=key, json=transfer)).status_code == 403
    async with rt.db.read() as session:
        found = select(LinkOwner.user_id).where(LinkOwner.link_id == int(made["id"]))
        assert len(list(await session.scalars(found))) == 3  # Ada, Bob and the account of the keys


@on_sqlite
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/me"),
        ("DELETE", "/api/v1/me"),
        ("GET", "/api/v1/me/export"),
        ("GET", "/api/v1/me/invitations"),
        ("GET", "/api/v1/keys"),
        ("POST", "/api/v1/keys"),
        ("GET", "/api/v1/library"),
        ("POST", "/api/v1/items"),
        ("GET", "/api/v1/teams"),
        ("GET", "/api/v1/search?q=x"),
        ("GET", "/app/links"),
        ("GET", "/app/settings"),
    ],
)
async def test_nothing_personal_takes_a_key_of_a_team(
    client: AsyncClient, crew: Team, in_browser: Headers, method: str, path: str
) -> None:
    key = by_key((await _create(client, in_browser, crew))["key"])

    response = await client.request(method, path, headers=key)
    assert response.status_code == 403
    assert response.json()["code"] == "TEAM_KEY_FORBIDDEN"


async def test_only_managers_see_make_and_revoke_keys(
    client: AsyncClient,
    rt: Runtime,
    crew: Team,
    ada: User,
    bob: User,
    cleo: User,
    in_browser: Headers,
) -> None:
    made = await _create(client, in_browser, crew, scopes=["read"])
    assert (made["scopes"], made["parent_id"]) == (["read"], None)
    path = f"/api/v1/teams/{crew.id}/keys"
    async with rt.db.write() as session:
        as_bob, as_cleo = [
            by_cookie(rt, await make.cookie(session, rt, user)) for user in (bob, cleo)
        ]
        by_plain_key = by_key(await make.key(session, rt, ada))

    for headers, status in ((as_bob, 403), (as_cleo, 404), (by_plain_key, 403)):
        assert (await client.get(path, headers=headers)).status_code == status
        response = await client.post(path, headers=headers, json={"name": "Mine"})
        assert response.status_code == status
        response = await client.delete(f"{path}/{made['id']}", headers=headers)
        assert response.status_code == status
    wrong = await client.post(path, headers=in_browser, json={"name": "x", "scopes": ["admin"]})
    assert wrong.status_code == 422
    listed = (await client.get(path, headers=in_browser)).json()["items"]
    assert [item["id"] for item in listed] == [made["id"]]
    assert "key" not in listed[0]


async def test_the_account_of_the_keys_is_in_no_list_of_people(
    client: AsyncClient, rt: Runtime, ada: User, crew: Team, in_browser: Headers, as_root: Headers
) -> None:
    await _create(client, in_browser, crew)
    async with rt.db.read() as session:
        account = (await session.scalars(select(User).where(User.issuer == "team"))).one()

    team = (await client.get(f"/api/v1/teams/{crew.id}", headers=in_browser)).json()
    assert team["members"] == 2
    members = await client.get(f"/api/v1/teams/{crew.id}/members", headers=in_browser)
    assert {item["name"] for item in members.json()["items"]} == {"Ada", "Bob"}
    path = f"/api/v1/teams/{crew.id}/members/{account.id}"
    for response in (
        await client.delete(path, headers=in_browser),
        await client.patch(path, headers=in_browser, json={"role": "manager"}),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "TEAM_MEMBER_NOT_FOUND")
    people = (await client.get("/api/v1/admin/users", headers=as_root)).json()["items"]
    assert str(account.id) not in {item["id"] for item in people}
    await client.patch(f"/api/v1/teams/{crew.id}", headers=in_browser, json={"name": "The Crew"})
    async with rt.db.read() as session:
        assert (await get_users_by_id(session, [account.id]))[account.id].display_name == "The Crew"


async def test_a_key_stays_when_its_maker_leaves_and_ends_with_the_team(
    client: AsyncClient, rt: Runtime, ada: User, bob: User, crew: Team, in_browser: Headers
) -> None:
    key = by_key((await _create(client, in_browser, crew))["key"])
    async with rt.db.write() as session:
        await service.change_role(
            session, TeamCaller(ada.id), crew.id, bob.id, TeamRole.MANAGER, rt
        )
        await make.leave(session, rt, crew, ada)
        as_bob = by_cookie(rt, await make.cookie(session, rt, bob))

    assert (await client.get("/api/v1/links", headers=key)).status_code == 200
    path = f"/api/v1/teams/{crew.id}/keys"
    assert (await client.get(path, headers=in_browser)).status_code == 404
    assert len((await client.get(path, headers=as_bob)).json()["items"]) == 1
    async with rt.db.write() as session:
        await delete_account(session, rt, AccountDeletion(ada), list_personal_data_hooks(), by=ada)
    assert (await client.get("/api/v1/links", headers=key)).status_code == 200

    assert (await client.delete(f"/api/v1/teams/{crew.id}", headers=as_bob)).status_code == 204
    assert (await client.get("/api/v1/links", headers=key)).status_code == 401
    async with rt.db.read() as session:
        assert list(await session.scalars(select(TeamMember.user_id))) == []
        assert [row.status for row in await session.scalars(select(ApiKey))] == [KeyStatus.REVOKED]


async def test_a_revoked_key_ends_at_once_also_on_open_connections(
    client: AsyncClient, rt: Runtime, crew: Team, in_browser: Headers
) -> None:
    made = await _create(client, in_browser, crew)
    async with rt.db.read() as session:
        found = await keys.find_key(session, made["key"], rt.clock.now())
    assert found is not None
    caller = Caller(found[1], frozenset({Scope.READ}), key_id=found[0].id)
    watcher = RevocationWatcher(rt)
    async with watcher.watch(caller) as watched:
        await watcher.check()
        before = watched.revoked
        path = f"/api/v1/teams/{crew.id}/keys/{made['id']}"
        assert (await client.delete(path, headers=in_browser)).status_code == 204
        await watcher.check()
        assert (before, watched.revoked) == (False, True)
    await watcher.close()
    response = await client.get("/api/v1/links", headers=by_key(made["key"]))
    assert response.status_code == 401
    assert (await client.delete(path, headers=in_browser)).status_code == 204  # again
    unknown = await client.delete(f"/api/v1/teams/{crew.id}/keys/1", headers=in_browser)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "KEY_NOT_FOUND")


async def test_a_key_that_a_key_made_ends_with_it(
    client: AsyncClient, rt: Runtime, clock: ManualClock, ada: User, crew: Team
) -> None:
    async with rt.db.write() as session:
        parent, clear = await keys.create_key(
            session,
            rt,
            ada,
            "parent",
            [Scope.READ, Scope.WRITE, Scope.ACCOUNT],
            expires_at=rt.clock.now() + timedelta(days=1),
        )
    made = await _create(client, by_key(clear), crew)
    assert made["parent_id"] == str(parent.id)
    assert made["expires_at"] is not None

    async with rt.db.write() as session:
        await keys.revoke_key(session, ada, parent.id)
    response = await client.get("/api/v1/links", headers=by_key(made["key"]))
    assert response.status_code == 401


async def test_the_audit_log_names_the_key(
    client: AsyncClient, rt: Runtime, crew: Team, in_browser: Headers, as_root: Headers
) -> None:
    made = await _create(client, in_browser, crew)
    key = by_key(made["key"])
    link = await client.post(
        "/api/v1/links", headers=key, json={"destination": "https://example.com/"}
    )
    await client.delete(f"/api/v1/links/{link.json()['id']}", headers=key)

    entries = (await client.get("/api/v1/admin/audit", headers=as_root)).json()["items"]
    prefixes = {entry["action"]: entry["key_prefix"] for entry in entries}
    assert prefixes["link.deleted"] == made["prefix"]
    assert prefixes["team.key_created"] is None  # made in a browser
    async with rt.db.read() as session:
        created = await session.scalar(
            select(AuditEntry.detail).where(AuditEntry.action == "team.key_created")
        )
    assert created == made["prefix"]


@on_sqlite
async def test_the_page_of_a_team_makes_and_revokes_keys(
    client: AsyncClient, rt: Runtime, bob: User, crew: Team, in_browser: Headers
) -> None:
    path = f"/app/teams/{crew.id}"
    form = {"key_name": "Deploy script", "access": "read", "days": "90"}
    made = await client.post(f"{path}/keys", headers=in_browser, data=form)
    assert made.status_code == 200
    assert "Deploy script" in made.text
    assert 'id="new-key">refract_' in made.text
    for changes in ({"key_name": " "}, {"days": "7"}):
        refused = await client.post(f"{path}/keys", headers=in_browser, data=form | changes)
        assert refused.status_code == 422
    page = (await client.get(path, headers=in_browser)).text
    assert "Deploy script" in page
    assert 'id="new-key"' not in page
    async with rt.db.write() as session:
        as_bob = by_cookie(rt, await make.cookie(session, rt, bob))
        key_id = await session.scalar(select(ApiKey.id).where(ApiKey.name == "Deploy script"))
    assert "Deploy script" not in (await client.get(path, headers=as_bob)).text
    assert (await client.post(f"{path}/keys", headers=as_bob, data=form)).status_code == 403
    revoked = await client.post(f"{path}/keys/{key_id}/revoke", headers=in_browser)
    assert (revoked.status_code, revoked.headers["location"]) == (303, path)
    unknown = await client.post(f"{path}/keys/1/revoke", headers=in_browser)
    assert unknown.status_code == 404
    assert "API key not found." in unknown.text
