"""A state machine of teams, members, roles, owners, keys and deletions: access equals a model's."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound
from refract.identity.access import AccessRelation
from refract.identity.account_deletion import delete_account
from refract.identity.heirs import choose_heir
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion
from refract.links import service as links
from refract.links.access import load_access
from refract.links.models import Link, LinkOwner, LinkTeam
from refract.lists import service as lists
from refract.lists.access import ListCaller
from refract.lists.models import LinkList
from refract.lists.schemas import ListCreate
from refract.registry import list_personal_data_hooks, list_team_hooks
from refract.teams import service as teams
from refract.teams.accounts import find_account
from refract.teams.models import Team, TeamMember, TeamRole
from refract.teams.ownership import lock_new_owner
from refract.teams.queries import TeamCaller
from refract.teams.schemas import TeamCreate, TeamMemberCreate
from tests import make
from tests.machine import Machine, run_machine

PEOPLE = ("ada", "bob", "cleo")
SLUGS = ("crew", "choir")
MAX_OBJECTS = 4
MANAGER, MEMBER = TeamRole.MANAGER, TeamRole.MEMBER
PRIMARY, CO_OWNER = AccessRelation.PRIMARY, AccessRelation.CO_OWNER
CHOICES = st.tuples(*[st.integers(0, 11)] * 3)
Work = Callable[[WriteSession], Awaitable[Any]]
Owner = tuple[str, str]
"""A kind ("person" or "team") and a name."""


@dataclass
class ModelTeam:
    """A team in the model: the roles of its members, and whether it has a key."""

    id: int
    roles: dict[str, TeamRole] = field(default_factory=dict)
    has_key: bool = False


@dataclass
class ModelLink:
    """A link in the model: its owners, one of whom is primary."""

    owners: set[Owner]
    primary: Owner


class Teams(Machine):
    """Three people, two teams, and whatever they own."""

    @initialize()
    def people(self) -> None:
        self.alive = set(PEOPLE)
        self.teams: dict[str, ModelTeam] = {}
        self.links: dict[int, ModelLink] = {}
        self.lists: dict[int, Owner] = {}
        self.run(self._begin())

    async def _begin(self) -> None:
        """Make two teams that share a member, each with a link."""
        async with self.rt.db.write() as session:
            self.users = {name: await make.person(session, self.rt, name) for name in PEOPLE}
            for slug, manager, member in (("crew", "ada", "bob"), ("choir", "bob", "cleo")):
                people = self.users[manager], self.users[member]
                team = await make.team(session, self.rt, *people, name=slug)
                self.teams[slug] = ModelTeam(team.id, {manager: MANAGER, member: MEMBER})
                link = await make.link(session, self.rt, people[0], team=slug)
                self.links[link.id] = ModelLink({("team", slug)}, ("team", slug))

    # What the model says.

    def _role(self, owner: Owner, who: str) -> AccessRelation | None:
        """Return what `who`, a person or the key of a team, is to something of this owner."""
        kind, name = owner
        if kind == "person":
            return PRIMARY if name == who else None
        team = self.teams[name]
        if who == f"key of {name}":
            return CO_OWNER
        return {MANAGER: PRIMARY, MEMBER: CO_OWNER, None: None}[team.roles.get(who)]

    def _of_link(self, link: ModelLink, who: str) -> AccessRelation | None:
        if self._role(link.primary, who) is PRIMARY:
            return PRIMARY
        return CO_OWNER if any(self._role(owner, who) for owner in link.owners) else None

    def _manages(self, who: str, slug: str) -> bool:
        return self.teams[slug].roles.get(who) is MANAGER

    # Steps. What the model forbids is refused; what it allows may still conflict.

    def _do(self, work: Work, *, allowed: bool) -> bool:
        async def once() -> None:
            async with self.rt.db.write() as session:
                await work(session)

        self.clock.advance(1)
        refused = self.outcome(once())
        if refused is None:
            assert allowed, "what the model forbids was done"
            return True
        kinds = (Conflict, Invalid) if allowed else (NotFound, Forbidden, Conflict, Invalid)
        assert issubclass(refused, kinds), f"{refused} of something that is allowed: {allowed}"
        return False

    def _pick(self, choice: int, among: Any) -> Any:
        found = sorted(among)
        return found[choice % len(found)]

    @precondition(lambda self: self.alive and len(self.teams) < len(SLUGS))
    @rule(choice=st.integers(0, 11))
    def create_team(self, choice: int) -> None:
        who = self._pick(choice, self.alive)
        slug = next(slug for slug in SLUGS if slug not in self.teams)
        made: list[int] = []

        async def work(session: WriteSession) -> None:
            new = TeamCreate(name=slug.title(), slug=slug)
            caller = TeamCaller(self.users[who].id)
            view = await teams.create_team(session, caller, new, self.clock.now())
            made.append(view.team.id)

        assert self._do(work, allowed=True)
        self.teams[slug] = ModelTeam(made[0], {who: MANAGER})

    @precondition(lambda self: self.teams and self.alive)
    @rule(
        choice=CHOICES,
        step=st.sampled_from(["add", "manage", "demote", "remove", "leave", "delete", "key"]),
    )
    def change_team(  # noqa: C901 - a branch per step
        self, choice: tuple[int, int, int], step: str
    ) -> None:
        who, slug = self._pick(choice[0], self.alive), self._pick(choice[1], self.teams)
        other = who if step == "leave" else self._pick(choice[2], self.alive)
        team, now, rt = self.teams[slug], self.clock.now(), self.rt
        caller, hooks, user = TeamCaller(self.users[who].id), list_team_hooks(), self.users[other]
        allowed = self._manages(who, slug) or (other == who and step in ("leave", "remove"))
        allowed = allowed and (other in team.roles or step in ("add", "delete", "key"))

        async def work(session: WriteSession) -> None:
            if step == "add":
                new = TeamMemberCreate(email=user.email)
                await teams.add_member(session, caller, team.id, new, hooks, now)
            elif step in ("manage", "demote"):
                role = MANAGER if step == "manage" else MEMBER
                await teams.change_role(session, caller, team.id, user.id, role, rt)
            elif step in ("remove", "leave"):
                await teams.remove_member(session, caller, team.id, user.id, hooks, rt)
            elif step == "delete":
                await teams.delete_team(session, caller, team.id, hooks, rt)
            else:
                await make.team_key(session, rt, await _team(session, team.id), self.users[who])

        if not self._do(work, allowed=allowed):
            return
        if step in ("remove", "leave"):
            del team.roles[other]
        elif step == "delete":
            assert ("team", slug) not in {link.primary for link in self.links.values()}
            for link in self.links.values():
                link.owners.discard(("team", slug))
            del self.teams[slug]
        elif step == "key":
            team.has_key = True
        else:
            team.roles[other] = MANAGER if step == "manage" else MEMBER

    @precondition(lambda self: self.alive)
    @rule(
        choice=st.integers(0, 11),
        slug=st.sampled_from([None, *SLUGS]),
        kind=st.sampled_from(["link", "list"]),
    )
    def create(self, choice: int, slug: str | None, kind: str) -> None:
        who, made = self._pick(choice, self.alive), []
        if (slug and slug not in self.teams) or len(self.links) + len(self.lists) > MAX_OBJECTS:
            return
        user, owner = self.users[who], ("team", slug) if slug else ("person", who)

        async def work(session: WriteSession) -> None:
            if kind == "link":
                made.append((await make.link(session, self.rt, user, team=slug)).id)
                return
            team = await lock_new_owner(session, user, slug)
            space, caller = make.space(self.rt), ListCaller(user.id)
            made.append((await lists.create_list(session, space, caller, ListCreate(), team)).id)

        if not self._do(work, allowed=slug is None or who in self.teams[slug].roles):
            return
        if kind == "link":
            self.links[made[0]] = ModelLink({owner}, owner)
        else:
            self.lists[made[0]] = owner

    @precondition(lambda self: self.links and self.alive)
    @rule(
        choice=CHOICES,
        step=st.sampled_from(["add", "remove", "transfer"]),
        to_team=st.booleans(),
    )
    def change_owners(  # noqa: C901 - a branch per step
        self, choice: tuple[int, int, int], step: str, to_team: bool
    ) -> None:
        who, link_id = self._pick(choice[0], self.alive), self._pick(choice[1], self.links)
        if to_team and not self.teams:
            return
        name = self._pick(choice[2], self.teams if to_team else self.alive)
        owner: Owner = ("team" if to_team else "person", name)
        link, now, caller = self.links[link_id], self.clock.now(), make.who(self.users[who])
        mine = self._of_link(link, who)
        allowed = mine is PRIMARY if step == "transfer" else mine is not None
        if to_team and step != "remove":
            allowed = allowed and who in self.teams[name].roles
        if step == "remove":
            allowed = allowed and owner in link.owners

        async def work(session: WriteSession) -> None:
            email = "" if to_team else self.users[name].email
            if step == "remove" and to_team:
                await links.remove_team(session, caller, link_id, self.teams[name].id, now)
            elif step == "remove":
                await links.remove_owner(session, caller, link_id, self.users[name].id, now)
            elif to_team:
                primary = step == "transfer"
                await links.add_team(session, caller, link_id, name, now, primary=primary)
            elif step == "add":
                await links.add_owner(session, caller, link_id, email, now)
            else:
                await links.transfer_link(session, caller, link_id, email, now)

        if not self._do(work, allowed=allowed):
            return
        if step == "remove":
            link.owners.remove(owner)
            return
        link.owners.add(owner)
        if step == "transfer":
            kind, before = link.primary
            if to_team and kind == "person" and before in self.teams[name].roles:
                link.owners.remove(link.primary)  # they keep it as a member
            link.primary = owner

    @precondition(lambda self: self.lists and self.alive)
    @rule(choice=CHOICES, slug=st.sampled_from([None, *SLUGS]))
    def transfer_list(self, choice: tuple[int, int, int], slug: str | None) -> None:
        who, list_id = self._pick(choice[0], self.alive), self._pick(choice[1], self.lists)
        if slug and slug not in self.teams:
            return
        allowed = self._role(self.lists[list_id], who) is PRIMARY
        allowed = allowed and (slug is None or who in self.teams[slug].roles)
        caller = ListCaller(self.users[who].id)

        async def work(session: WriteSession) -> None:
            await lists.transfer_list(session, caller, list_id, slug, self.clock.now())

        if self._do(work, allowed=allowed):
            self.lists[list_id] = ("team", slug) if slug else ("person", who)

    @precondition(lambda self: len(self.alive) > 1)
    @rule(choice=st.integers(0, 11), heir=st.sampled_from([None, *PEOPLE, *SLUGS]))
    def delete_account(self, choice: int, heir: str | None) -> None:
        who, hooks = self._pick(choice, self.alive), list_personal_data_hooks()
        user = self.users[who]
        to_team = heir in SLUGS
        named = self.users[heir].email if heir in PEOPLE else heir
        allowed = heir is None or (heir in self.alive - {who} and not to_team)
        if to_team and heir in self.teams:
            roles = self.teams[heir].roles
            allowed = who in roles and len(roles) > 1

        async def work(session: WriteSession) -> None:
            deletion = AccountDeletion(user)
            if named is not None:
                deletion = await choose_heir(session, user, named, hooks)
            await delete_account(session, self.rt, deletion, hooks, by=user)

        if not self._do(work, allowed=allowed):
            return
        self.alive.remove(who)
        self._forget(who, ("team" if to_team else "person", heir) if heir else None)

    def _forget(self, who: str, heir: Owner | None) -> None:
        me: Owner = ("person", who)
        for team in self.teams.values():
            if team.roles.pop(who, None) and team.roles and MANAGER not in team.roles.values():
                team.roles |= dict.fromkeys(self.run(self._managers(team.id)), MANAGER)
        for list_id in [number for number, owner in self.lists.items() if owner == me]:
            if heir is None:
                del self.lists[list_id]
            else:
                self.lists[list_id] = heir
        for link_id in [number for number, link in self.links.items() if me in link.owners]:
            link = self.links[link_id]
            link.owners.remove(me)
            if link.primary != me:
                continue
            if not link.owners and heir is None:
                del self.links[link_id]
                continue
            if heir is not None and not link.owners:
                link.owners = {heir}
            link.primary = self.run(self._primary(link_id))
            assert link.primary in link.owners
            kinds = {kind for kind, _ in link.owners}
            assert link.primary[0] == ("team" if "team" in kinds else "person")

    # Where the longest counts, the model takes over who it was.

    async def _managers(self, team_id: int) -> list[str]:
        mine = select(TeamMember.user_id).where(
            TeamMember.team_id == team_id, TeamMember.role == MANAGER
        )
        async with self.rt.db.read() as session:
            ids = set(await session.scalars(mine))
        found = [name for name in self.alive if self.users[name].id in ids]
        assert len(found) == 1
        return found

    async def _primary(self, link_id: int) -> Owner:
        async with self.rt.db.read() as session:
            row = select(LinkOwner.user_id).where(LinkOwner.primary_link_id == link_id)
            user_id = await session.scalar(row)
            row = select(LinkTeam.team_id).where(LinkTeam.primary_link_id == link_id)
            team_id = await session.scalar(row)
        if team_id is not None:
            return "team", next(slug for slug, team in self.teams.items() if team.id == team_id)
        return "person", next(name for name in self.alive if self.users[name].id == user_id)

    @invariant()
    def access_equals_the_model(self) -> None:
        if hasattr(self, "lists"):
            self.run(self._compare())

    async def _compare(self) -> None:
        async with self.rt.db.read() as session:
            callers = {name: self.users[name] for name in self.users}
            for slug, team in self.teams.items():
                if team.has_key and (account := await find_account(session, team.id)):
                    callers[f"key of {slug}"] = account
            for name, user in callers.items():
                for link_id, link in self.links.items():
                    row = await session.get_one(Link, link_id)
                    found = await load_access(session, make.who(user), row)
                    expected = self._of_link(link, name)
                    assert found.visible == (expected is not None), (name, link)
                    assert expected is None or found.relation is expected, (name, link)
                await self._compare_lists(session, name, user)

    async def _compare_lists(self, session: Any, name: str, user: User) -> None:
        caller = ListCaller(user.id)
        found: dict[int, AccessRelation] = {}
        for row in await session.scalars(select(LinkList).where(caller.filter_own_lists())):
            await caller.load_role(session, row)
            found[row.id] = caller.relation(row)
        expected = {number: self._role(owner, name) for number, owner in self.lists.items()}
        assert found == {number: role for number, role in expected.items() if role}


async def _team(session: WriteSession, team_id: int) -> Any:
    return await session.get_one(Team, team_id)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_access_is_what_the_model_says(database: str, tmp_path: Path) -> None:
    run_machine(Teams, database, tmp_path, examples=8, steps=25)
