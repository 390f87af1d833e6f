"""Links and lists of a deleted account go to a person or a team."""

import asyncio

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.account_deletion import delete_account
from refract.identity.heirs import choose_heir
from refract.identity.models import User, UserStatus
from refract.identity.revocation_log import append_revocations, get_log_path, read_revocations
from refract.links.models import Link, LinkOwner, LinkTeam
from refract.lists.models import LinkList
from refract.registry import list_personal_data_hooks
from refract.teams.models import Team, TeamMember
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.lists.clients import new_list, published
from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "root"]
URL = "https://example.com/page"


@pytest.fixture
async def crew(rt: Runtime, ada: User, bob: User) -> Team:
    """Ada manages it, Bob is a member."""
    async with rt.db.write() as session:
        return await make.team(session, rt, ada, bob)


async def _sign_in(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, user))


async def _key(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user))


async def _link(rt: Runtime, owner: User, *others: User) -> int:
    async with rt.db.write() as session:
        link = await make.link(session, rt, owner)
        session.add_all(make.co_owner(link, other, rt.clock.now()) for other in others)
        return link.id


async def _owners(rt: Runtime, link_id: int) -> tuple[set[int], set[int], int | None, int | None]:
    """Return the owning users and teams of a link, and which of them are primary."""
    async with rt.db.read() as session:
        users = list(await session.scalars(select(LinkOwner).where(LinkOwner.link_id == link_id)))
        teams = list(await session.scalars(select(LinkTeam).where(LinkTeam.link_id == link_id)))
    return (
        {row.user_id for row in users},
        {row.team_id for row in teams},
        next((row.user_id for row in users if row.is_primary), None),
        next((row.team_id for row in teams if row.is_primary), None),
    )


async def test_a_team_takes_over_links_and_lists_and_several_owners_stay(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User, crew: Team
) -> None:
    alone, shared = await _link(rt, bob), await _link(rt, bob, cleo)
    as_bob, as_ada = await _key(rt, bob), await _key(rt, ada)
    draft = await new_list(client, as_bob, URL)
    public = await published(client, as_bob, "reading", URL)

    leaving = await _sign_in(rt, bob)
    gone = await client.delete("/api/v1/me?heir=crew", headers=leaving)
    assert gone.status_code == 204
    assert await _owners(rt, alone) == ({ada.id}, {crew.id}, None, crew.id)
    assert await _owners(rt, shared) == ({cleo.id}, set(), cleo.id, None)
    mine = (await client.get("/api/v1/lists", headers=as_ada)).json()["items"]
    assert [row["id"] for row in mine] == [public["id"], draft["id"]]
    assert {row["team"]["slug"] for row in mine} == {"crew"}
    assert (await client.get("/reading")).status_code == 200
    changed = await client.patch(
        f"/api/v1/links/{alone}", headers=as_ada, json={"title": "Ours now"}
    )
    assert changed.status_code == 200


async def test_a_person_takes_over_links_and_lists(
    rt: Runtime, client: AsyncClient, bob: User, cleo: User, crew: Team
) -> None:
    alone = await _link(rt, bob)
    draft = await new_list(client, await _key(rt, bob), URL)

    leaving = await _sign_in(rt, bob)
    gone = await client.delete(f"/api/v1/me?heir={cleo.email}", headers=leaving)
    assert gone.status_code == 204
    assert await _owners(rt, alone) == ({cleo.id}, set(), cleo.id, None)
    mine = (await client.get("/api/v1/lists", headers=await _key(rt, cleo))).json()["items"]
    assert [(row["id"], row["team"]) for row in mine] == [(draft["id"], None)]


@on_sqlite
async def test_without_an_heir_everything_goes_and_a_wrong_heir_changes_nothing(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User, crew: Team
) -> None:
    async with rt.db.write() as session:
        await make.team(session, rt, bob, name="Solo")
        await make.team(session, rt, cleo, name="Other")
    await new_list(client, await _key(rt, bob), URL)
    leaving = await _sign_in(rt, bob)
    refusals = {
        "solo": (422, "NEW_OWNER_REQUIRED"),  # nobody would be left in it
        "other": (422, "NEW_OWNER_REQUIRED"),  # Bob is not in it
        "nobodys": (422, "NEW_OWNER_REQUIRED"),
        str(cleo.id): (422, "NEW_OWNER_REQUIRED"),
        bob.email: (422, "NEW_OWNER_REQUIRED"),
        "nobody@example.com": (404, "USER_NOT_FOUND"),
    }
    for heir, expected in refusals.items():
        refused = await client.delete("/api/v1/me", params={"heir": heir}, headers=leaving)
        assert (refused.status_code, refused.json()["code"]) == expected, heir
    page = await client.post(
        "/app/settings/delete", headers=leaving, data={"confirm": "delete", "heir": "other"}
    )
    assert page.status_code == 422
    assert "Choose another active account, or a team" in page.text
    assert (await client.delete("/api/v1/me", headers=leaving)).status_code == 204
    async with rt.db.read() as session:
        assert list(await session.scalars(select(LinkList.id))) == []


@on_sqlite
async def test_the_form_and_administrators_name_a_team(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User, root: User, crew: Team
) -> None:
    of_bob, of_cleo = await _link(rt, bob), await _link(rt, cleo)
    form = {"confirm": "delete", "heir": "crew"}
    done = await client.post("/app/settings/delete", headers=await _sign_in(rt, bob), data=form)
    assert done.status_code == 303
    async with rt.db.write() as session:
        as_root = by_key(await make.key(session, rt, root, *make.ALL))
    path = f"/api/v1/admin/users/{cleo.id}?links=reassign&team=crew"
    assert (await client.delete(path, headers=as_root)).status_code == 204
    for link_id in (of_bob, of_cleo):
        assert await _owners(rt, link_id) == ({ada.id}, {crew.id}, None, crew.id)


@on_sqlite
async def test_a_restore_gives_the_same_team_what_it_had(
    rt: Runtime, client: AsyncClient, bob: User, crew: Team
) -> None:
    await client.delete("/api/v1/me?heir=crew", headers=await _sign_in(rt, bob))
    await append_revocations(rt)

    (entry,) = [
        found
        for found in read_revocations(get_log_path(rt.settings)).values()
        if found.subject == "person"
    ]
    assert (entry.id, entry.state, entry.heir, entry.heir_team) == (
        bob.id,
        "deleted",
        None,
        crew.id,
    )


async def test_an_heir_who_is_deleted_at_the_same_time_keeps_nothing(
    rt: Runtime, bob: User, cleo: User, crew: Team
) -> None:
    """Both name each other: one of them goes first, and the other has to choose again."""
    link_id = await _link(rt, bob)
    hooks = list_personal_data_hooks()

    async def delete(user: User, heir: User) -> None:
        async with rt.db.write() as session:
            deletion = await choose_heir(session, user, heir.email, hooks)
            await delete_account(session, rt, deletion, hooks, by=user)

    results = await asyncio.gather(delete(bob, cleo), delete(cleo, bob), return_exceptions=True)
    failed = [result for result in results if result is not None]
    assert len(failed) == 1
    assert isinstance(failed[0], RefractError)
    async with rt.db.read() as session:
        alive = select(User.id).where(
            User.id.in_([bob.id, cleo.id]), User.status == UserStatus.ACTIVE
        )
        (left,) = list(await session.scalars(alive))
    assert await _owners(rt, link_id) == ({left}, set(), left, None)


async def test_deletion_for_a_team_while_its_members_leave(
    rt: Runtime, ada: User, bob: User, cleo: User, crew: Team
) -> None:
    """Whoever is left in the team has the link, and nobody else."""
    async with rt.db.write() as session:
        await make.join(session, rt, crew, cleo)
    link_id, hooks = await _link(rt, bob), list_personal_data_hooks()

    async def delete() -> None:
        async with rt.db.write() as session:
            deletion = await choose_heir(session, bob, "crew", hooks)
            await delete_account(session, rt, deletion, hooks, by=bob)

    async def leave() -> None:
        async with rt.db.write() as session:
            await make.leave(session, rt, crew, cleo)

    await asyncio.gather(delete(), leave())
    async with rt.db.read() as reading:
        members = set(await reading.scalars(select(TeamMember.user_id)))
        assert await reading.scalar(select(Link.status)) == "active"
    assert members == {ada.id}
    assert await _owners(rt, link_id) == (members, {crew.id}, None, crew.id)
