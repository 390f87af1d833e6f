"""Teams as owners of links: rights, lists, statistics, transfers, removal and account deletion."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.clicks.stats.scope import AccountScope
from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.access import AccessRelation
from refract.identity.account_deletion import delete_account
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion
from refract.links import queries, service
from refract.links.access import load_access
from refract.links.enums import LinkState, Visibility
from refract.links.errors import (
    LinkNotFound,
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    PrimaryOwnerRequired,
)
from refract.links.models import Link, LinkOwner, LinkTeam
from refract.links.queries import LinkFilter, candidates
from refract.links.schemas import LinkPatch
from refract.registry import list_personal_data_hooks, list_team_hooks
from refract.teams import service as teams
from refract.teams.errors import TeamNotFound, TeamOwnsLinks
from refract.teams.models import Team, TeamRole
from refract.teams.queries import TeamCaller
from tests import make
from tests.client import by_cookie
from tests.people import Headers


@pytest.fixture
async def crew(rt: Runtime, ada: User, bob: User) -> Team:
    """A team that Ada manages, with Bob in it."""
    async with rt.db.write() as session:
        return await make.team(session, rt, ada, bob)


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, name="roadmap", title="Roadmap")


async def _add(
    rt: Runtime, user: User, link: Link, team: Team, *, primary: bool = False, admin: bool = False
) -> None:
    async with rt.db.write() as session:
        who = make.who(user, admin=admin)
        await service.add_team(session, who, link.id, team.slug, rt.clock.now(), primary=primary)


async def _relation(rt: Runtime, user: User, link: Link) -> AccessRelation:
    async with rt.db.read() as session:
        return (await load_access(session, make.who(user), link)).relation


async def _rows(rt: Runtime, link: Link) -> dict[int, tuple[bool, bool]]:
    """Return whether each owner is the primary one, and one through a team alone."""
    async with rt.db.read() as session:
        found = await session.scalars(select(LinkOwner).where(LinkOwner.link_id == link.id))
        return {row.user_id: (row.is_primary, bool(row.through_team)) for row in found}


async def _titles(rt: Runtime, user: User, **asked: Any) -> list[str]:
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            make.who(user),
            LinkFilter(**asked),
            rt.clock.now(),
            limit=50,
            cursor=None,
        )
    return [link.title or "" for link in page.items]


async def test_members_are_co_owners_and_the_managers_of_the_owner_may_transfer(
    rt: Runtime, ada: User, bob: User, cleo: User, crew: Team, link: Link
) -> None:
    assert await _relation(rt, bob, link) == AccessRelation.SIGNED_IN
    await _add(rt, ada, link, crew)
    assert await _relation(rt, bob, link) == AccessRelation.CO_OWNER
    assert await _rows(rt, link) == {ada.id: (True, False), bob.id: (False, True)}

    async with rt.db.write() as session:
        await make.join(session, rt, crew, cleo, TeamRole.MANAGER)
    assert await _relation(rt, cleo, link) == AccessRelation.CO_OWNER
    with pytest.raises(PrimaryOwnerRequired):
        await _add(rt, cleo, link, crew, primary=True)

    await _add(rt, ada, link, crew, primary=True)
    assert await _relation(rt, cleo, link) == AccessRelation.PRIMARY
    assert await _relation(rt, bob, link) == AccessRelation.CO_OWNER
    assert await _rows(rt, link) == dict.fromkeys((ada.id, bob.id, cleo.id), (False, True))
    async with rt.db.write() as session:
        patch = LinkPatch(title="Ours")
        await service.edit_link(session, make.space(rt), make.who(bob), link.id, patch)
        await service.transfer_link(
            session, make.who(cleo), link.id, "bob@example.com", rt.clock.now()
        )
    assert await _relation(rt, bob, link) == AccessRelation.PRIMARY
    assert await _relation(rt, cleo, link) == AccessRelation.CO_OWNER


async def test_a_link_of_a_team_has_one_primary_owner(
    rt: Runtime, ada: User, crew: Team, link: Link
) -> None:
    await _add(rt, ada, link, crew, primary=True)

    async with rt.db.read() as session:
        card = await queries.load_card(session, await session.get_one(Link, link.id))
    assert card.owners == []
    assert [(team.slug, team.primary) for team in card.teams] == [("crew", True)]
    with pytest.raises(OwnerExists):
        await _add(rt, ada, link, crew, primary=True)
    with pytest.raises(PrimaryOwnerProtected):
        async with rt.db.write() as session:
            await service.remove_team(session, make.who(ada), link.id, crew.id, rt.clock.now())


async def test_an_owner_outside_the_team_stays_as_co_owner(
    rt: Runtime, ada: User, bob: User, root: User, link: Link
) -> None:
    async with rt.db.write() as session:
        team = await make.team(session, rt, bob)

    with pytest.raises(TeamNotFound):
        await _add(rt, ada, link, team, primary=True)
    await _add(rt, root, link, team, primary=True, admin=True)

    assert await _rows(rt, link) == {ada.id: (False, False), bob.id: (False, True)}


async def test_who_cannot_see_a_link_learns_nothing_about_it(
    rt: Runtime, bob: User, crew: Team, link: Link
) -> None:
    with pytest.raises(LinkNotFound):
        await _add(rt, bob, link, crew)


async def test_leaving_and_joining_take_effect_at_once(
    rt: Runtime, ada: User, bob: User, cleo: User, crew: Team, link: Link
) -> None:
    async with rt.db.write() as session:
        link_of_bob = await make.link(session, rt, bob, title="Bob's")
        await service.edit_link(
            session,
            make.space(rt),
            make.who(ada),
            link.id,
            LinkPatch(visibility=Visibility.SECURE),
        )
    await _add(rt, ada, link, crew)
    await _add(rt, bob, link_of_bob, crew)
    assert await _titles(rt, bob) == ["Bob's", "Roadmap"]

    async with rt.db.write() as session:
        await make.leave(session, rt, crew, bob)
        await make.join(session, rt, crew, cleo)

    assert await _titles(rt, bob) == ["Bob's"]
    assert await _titles(rt, cleo) == ["Bob's", "Roadmap"]
    async with rt.db.read() as session:
        assert not await queries.is_owned_or_shared(session, link.id, bob.id)
        assert await queries.is_owned_or_shared(session, link.id, cleo.id)


async def test_two_teams_and_ones_own_share_are_apart(
    rt: Runtime, ada: User, bob: User, crew: Team, link: Link
) -> None:
    """Whoever loses one reason to own a link keeps the others."""
    async with rt.db.write() as session:
        second = await make.team(session, rt, ada, bob, name="Second")
    await _add(rt, ada, link, crew)
    await _add(rt, ada, link, second)
    now = rt.clock.now()
    async with rt.db.write() as session:
        await service.add_owner(session, make.who(ada), link.id, bob.email, now)
    assert (await _rows(rt, link))[bob.id] == (False, False)

    async with rt.db.write() as session:
        await service.remove_owner(session, make.who(ada), link.id, bob.id, now)
    assert (await _rows(rt, link))[bob.id] == (False, True)
    with pytest.raises(OwnerNotFound):
        async with rt.db.write() as session:
            await service.remove_owner(session, make.who(ada), link.id, bob.id, now)
    async with rt.db.write() as session:
        await make.leave(session, rt, crew, bob)
    assert (await _rows(rt, link))[bob.id] == (False, True)
    async with rt.db.write() as session:
        await service.remove_team(session, make.who(ada), link.id, second.id, now)
    assert await _rows(rt, link) == {ada.id: (True, False)}


@pytest.mark.parametrize("most", [candidates.MAX_CANDIDATES, 1], ids=["few", "many"])
async def test_lists_filters_and_counts_include_the_links_of_teams(
    rt: Runtime,
    clock: ManualClock,
    ada: User,
    bob: User,
    crew: Team,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    monkeypatch.setattr(candidates, "MAX_CANDIDATES", most)
    for title in "abc":
        async with rt.db.write() as session:
            made = await make.link(session, rt, ada, title=title, tags=["Team"])
        if title != "b":
            await _add(rt, ada, made, crew, primary=title == "a")
        clock.advance(1)
    async with rt.db.write() as session:
        await make.link(session, rt, bob, title="d")

    assert await _titles(rt, bob) == ["d", "c", "a"]
    for sort in queries.LinkSort:
        assert await _titles(rt, bob, team="crew", sort=sort) == ["c", "a"]
    assert await _titles(rt, bob, tags=("team",)) == ["c", "a"]
    assert await _titles(rt, bob, team="crew", tags=("team",), q="example") == ["c", "a"]
    assert await _titles(rt, bob, team="crew", status=LinkState.ACTIVE) == ["c", "a"]
    assert await _titles(rt, bob, team="nobody") == []
    async with rt.db.read() as session:
        caller, now = make.who(bob), rt.clock.now()
        all_counts = await queries.count_links(session, caller, LinkFilter(), now)
        counts = await queries.count_links(session, caller, LinkFilter(team="crew"), now)
    assert (all_counts.get_total(None), counts.get_total(None)) == (3, 2)


async def test_somebody_elses_team_is_no_filter_for_their_links(
    rt: Runtime, ada: User, cleo: User, crew: Team, link: Link
) -> None:
    await _add(rt, ada, link, crew)

    assert await _titles(rt, cleo, team="crew") == []
    assert await _titles(rt, ada, team="crew") == ["Roadmap"]


async def test_a_team_is_deleted_when_it_owns_nothing(
    rt: Runtime, ada: User, bob: User, crew: Team, link: Link
) -> None:
    async with rt.db.write() as session:
        other = await make.link(session, rt, ada, title="Other")
    await _add(rt, ada, link, crew, primary=True)
    await _add(rt, ada, other, crew)

    async def delete() -> None:
        async with rt.db.write() as session:
            caller = TeamCaller(ada.id)
            await teams.delete_team(session, caller, crew.id, list_team_hooks(), rt)

    with pytest.raises(TeamOwnsLinks, match=r"\(1\)"):
        await delete()
    async with rt.db.write() as session:
        await service.transfer_link(session, make.who(ada), link.id, ada.email, rt.clock.now())
    await delete()

    assert await _rows(rt, link) == {ada.id: (True, False)}
    assert await _rows(rt, other) == {ada.id: (True, False)}
    assert await _titles(rt, bob) == []


async def test_a_team_takes_over_from_a_deleted_account(
    rt: Runtime, ada: User, bob: User, cleo: User, crew: Team, link: Link
) -> None:
    async with rt.db.write() as session:
        await service.add_owner(session, make.who(ada), link.id, cleo.email, rt.clock.now())
        alone = await make.link(session, rt, ada, title="Alone")
    await _add(rt, ada, link, crew)

    async with rt.db.write() as session:
        await delete_account(session, rt, AccountDeletion(ada), list_personal_data_hooks(), by=ada)

    assert await _rows(rt, link) == {bob.id: (False, True), cleo.id: (False, False)}
    assert await _relation(rt, bob, link) == AccessRelation.PRIMARY  # the manager now
    async with rt.db.read() as session:
        assert (await session.get_one(LinkTeam, (link.id, crew.id))).is_primary
        assert (await session.get_one(Link, alone.id)).status == LinkState.DELETED


async def test_a_deleted_member_takes_nothing_along(
    rt: Runtime, ada: User, bob: User, crew: Team, link: Link
) -> None:
    await _add(rt, ada, link, crew, primary=True)

    async with rt.db.write() as session:
        await delete_account(session, rt, AccountDeletion(bob), list_personal_data_hooks(), by=bob)

    assert await _rows(rt, link) == {ada.id: (False, True)}
    async with rt.db.read() as session:
        assert (await session.get_one(Link, link.id)).status == LinkState.ACTIVE


async def test_statistics_include_the_links_of_teams(
    rt: Runtime, ada: User, bob: User, crew: Team, link: Link
) -> None:
    await _add(rt, ada, link, crew, primary=True)

    async with rt.db.read() as session:
        assert list(await session.scalars(AccountScope(bob.id).select_links())) == [link.id]


async def test_a_member_removed_while_a_link_gets_the_team_keeps_no_row(
    rt: Runtime, ada: User, bob: User, crew: Team
) -> None:
    """Either the link is given first and taken with the membership, or never given."""
    for _ in range(5):
        async with rt.db.write() as session:
            link = await make.link(session, rt, ada)

        async def leave() -> None:
            async with rt.db.write() as session:
                await make.leave(session, rt, crew, bob)

        await asyncio.gather(_add(rt, ada, link, crew), leave())
        assert await _rows(rt, link) == {ada.id: (True, False)}
        async with rt.db.write() as session:
            await make.join(session, rt, crew, bob)
        assert (await _rows(rt, link))[bob.id] == (False, True)


async def test_the_number_of_queries_does_not_grow_with_teams(
    client: AsyncClient, rt: Runtime, ada: User, as_ada: Headers, link: Link
) -> None:
    async def count(path: str) -> int:
        seen: list[str] = []
        stop = count_statements(rt.db.read_engine, seen.append)
        assert (await client.get(path, headers=as_ada)).status_code == 200
        stop()
        return len(seen)

    paths = ["/app/links", f"/app/links/{link.id}?tab=people", "/app/teams", "/api/v1/links"]
    before = [await count(path) for path in paths]
    for number in range(5):
        async with rt.db.write() as session:
            team = await make.team(session, rt, ada, name=f"Team {number}")
        await _add(rt, ada, link, team)

    assert [await count(path) for path in paths] == before


async def test_the_api_adds_lists_and_removes_teams(
    client: AsyncClient, as_ada: Headers, as_bob: Headers, crew: Team, link: Link
) -> None:
    path = f"/api/v1/links/{link.id}/teams"

    made = await client.post(path, headers=as_ada, json={"team": "crew"})
    assert made.status_code == 201
    assert [team["slug"] for team in made.json()["teams"]] == ["crew"]
    assert [owner["name"] for owner in made.json()["owners"]] == ["Ada"]
    listed = await client.get(path, headers=as_bob)
    assert [(team["slug"], team["primary"]) for team in listed.json()["items"]] == [("crew", False)]
    found = await client.get("/api/v1/links", headers=as_bob, params={"team": "crew"})
    assert [item["id"] for item in found.json()["items"]] == [str(link.id)]

    assert (await client.delete(f"{path}/{crew.id}", headers=as_bob)).status_code == 204
    assert (await client.get(path, headers=as_bob)).status_code == 404


async def test_the_page_of_a_link_adds_removes_and_transfers_by_forms(
    client: AsyncClient, rt: Runtime, ada: User, bob: User, crew: Team, link: Link
) -> None:
    async with rt.db.write() as session:
        by_ada = by_cookie(rt, await make.cookie(session, rt, ada))
        by_bob = by_cookie(rt, await make.cookie(session, rt, bob))
    path = f"/app/links/{link.id}"

    people = (await client.get(f"{path}?tab=people", headers=by_ada)).text
    assert "Add team" in people
    added = await client.post(f"{path}/teams", headers=by_ada, data={"team": "crew"})
    assert (added.status_code, added.headers["location"]) == (303, f"{path}?tab=people")
    again = await client.post(f"{path}/teams", headers=by_ada, data={"team": "crew"})
    assert again.status_code == 409
    removed = await client.post(f"{path}/teams/{crew.id}/remove", headers=by_bob)
    assert (removed.status_code, removed.headers["location"]) == (303, "/app/links")

    moved = await client.post(f"{path}/teams/transfer", headers=by_ada, data={"team": "crew"})
    assert (moved.status_code, moved.headers["location"]) == (303, f"{path}?tab=settings")
    settings = (await client.get(f"{path}?tab=settings", headers=by_ada)).text
    assert "Transfer to team" not in settings
