"""People, keys, sessions and links for tests, made the way the program makes them.

A feature adds its own below these.

Each takes the session that the test opened, so that a test's set-up is one transaction.
"""

from datetime import datetime
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.domains import service as domains
from refract.domains.models import Domain, DomainState
from refract.domains.schemas import DomainCreate, DomainPatch
from refract.identity import keys, sessions
from refract.identity.models import Scope, User, UserRole, UserStatus
from refract.identity.users import fold_email
from refract.links import service
from refract.links.access import LinkCaller
from refract.links.models import Link, LinkOwner
from refract.links.schemas import LinkCreate, LinkPatch
from refract.links.service import CheckedChanges, CreatedLink, NewLink, check_changes
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.lists.models import LinkList
from refract.lists.presentation import normalise_href
from refract.lists.schemas import ListCreate
from refract.names.service import Namespace
from refract.registry import build_domain_hooks, list_team_hooks
from refract.teams import keys as team_keys
from refract.teams import service as teams
from refract.teams.models import Team, TeamRole
from refract.teams.queries import TeamCaller
from refract.teams.schemas import TeamCreate, TeamKeyCreate, TeamMemberCreate

DESTINATION = "https://example.com/"
READ_WRITE = (Scope.READ, Scope.WRITE)
ALL = tuple(Scope)
OWN = (Scope.READ, Scope.WRITE, Scope.ACCOUNT)
"""Everything that somebody may do to what is theirs, the account itself too."""


def space(rt: Runtime) -> Namespace:
    return Namespace(rt.ids, rt.clock)


def who(user: User, *, admin: bool = False) -> LinkCaller:
    return LinkCaller(user.id, admin)


def somebody(rt: Runtime, name: str, **given: Any) -> User:
    """Somebody who signed in before, with a verified address; not yet in the database."""
    now = rt.clock.now()
    email = given.pop("email", f"{name}@example.com")
    fields = {
        "issuer": "https://id.test",
        "subject": name,
        "email": email,
        "email_folded": fold_email(email),
        "email_verified": True,
        "display_name": name.title(),
        "preferences": {},
        "plan": "free",
        "role": UserRole.USER,
        "status": UserStatus.ACTIVE,
        "created_at": now,
        "last_sync_at": now,
    }
    return User(id=rt.ids.next_id(), **{**fields, **given})


async def person(session: WriteSession, rt: Runtime, name: str = "ada", **given: Any) -> User:
    user = somebody(rt, name, **given)
    session.add(user)
    await session.flush()
    return user


async def admin(session: WriteSession, rt: Runtime, name: str = "root") -> User:
    return await person(session, rt, name, role=UserRole.ADMIN)


async def suspended(session: WriteSession, rt: Runtime, name: str = "sam") -> User:
    """Keys and sessions can still be made for them; they open nothing."""
    return await person(session, rt, name, status=UserStatus.SUSPENDED)


async def key(
    session: WriteSession, rt: Runtime, owner: User, *scopes: Scope, name: str = "test"
) -> str:
    """A key in the clear; read and write unless told otherwise."""
    return (await keys.create_key(session, rt, owner, name, list(scopes or READ_WRITE)))[1]


async def revoked_key(session: WriteSession, rt: Runtime, owner: User) -> str:
    row, clear = await keys.create_key(session, rt, owner, "revoked", list(READ_WRITE))
    await keys.revoke_key(session, owner, row.id)
    return clear


async def cookie(session: WriteSession, rt: Runtime, owner: User) -> str:
    """The value of the cookie of a browser that has signed in."""
    return await sessions.create_session(session, rt, owner, "Mozilla/5.0 (test)")


async def signin_link(session: WriteSession, rt: Runtime, owner: User) -> str:
    """The path of a one-time sign-in."""
    return (await sessions.create_signin_link(session, rt, owner)).removeprefix(
        rt.settings.public_url
    )


async def checked_changes(rt: Runtime, destination: str) -> CheckedChanges:
    """Return the checked form of a new destination, for `edit_link`."""
    return await check_changes(rt, LinkPatch(destination=destination))


async def new_link(rt: Runtime, destination: str = DESTINATION, **given: Any) -> NewLink:
    """A link that may be created."""
    return await service.check_link(rt, LinkCreate(destination=destination, **given))


async def created(
    session: WriteSession, rt: Runtime, owner: User, destination: str = DESTINATION, **given: Any
) -> CreatedLink:
    """A link that was created or found; nobody is charged."""
    return await service.create_link(
        session, rt, owner, await new_link(rt, destination, **given), charged=False
    )


async def link(
    session: WriteSession, rt: Runtime, owner: User, destination: str = DESTINATION, **given: Any
) -> Link:
    """A link of somebody's; `name` stands for a list of one."""
    if "name" in given:
        given["names"] = [given.pop("name")]
    number = (await created(session, rt, owner, destination, **given)).card.link.id
    return await session.get_one(Link, number)


def co_owner(link: Link, user: User, now: datetime) -> LinkOwner:
    """Another owner of a link."""
    return LinkOwner(
        link_id=link.id, user_id=user.id, primary_link_id=None, added_by=None, created_at=now
    )


async def team(
    session: WriteSession, rt: Runtime, manager: User, *members: User, name: str = "Crew"
) -> Team:
    """A team with a manager and members."""
    caller, now = TeamCaller(manager.id), rt.clock.now()
    made = (await teams.create_team(session, caller, TeamCreate(name=name), now)).team
    for user in members:
        await join(session, rt, made, user)
    return made


async def join(
    session: WriteSession, rt: Runtime, team: Team, user: User, role: TeamRole = TeamRole.MEMBER
) -> None:
    """Add somebody to a team, as an administrator would."""
    caller, new = TeamCaller(user.id, is_admin=True), TeamMemberCreate(email=user.email, role=role)
    await teams.add_member(session, caller, team.id, new, list_team_hooks(), rt.clock.now())


async def leave(session: WriteSession, rt: Runtime, team: Team, user: User) -> None:
    caller = TeamCaller(user.id)
    await teams.remove_member(session, caller, team.id, user.id, list_team_hooks(), rt)


async def team_key(session: WriteSession, rt: Runtime, team: Team, manager: User) -> str:
    """A key of a team in the clear."""
    new = TeamKeyCreate(name="test")
    caller, hooks = TeamCaller(manager.id), list_team_hooks()
    return (await team_keys.create_team_key(session, rt, caller, team.id, new, hooks))[1]


def address(url: str, **given: Any) -> lists.CheckedAddress:
    """An address of a list, as if it had been looked at."""
    return lists.CheckedAddress(url, url, url.split("/")[2], normalise_href(url), **given)


async def list_of(
    session: WriteSession, rt: Runtime, who: ListMaker, *urls: str, **given: Any
) -> LinkList:
    """Somebody's draft with these entries."""
    made = await lists.create_list(session, space(rt), who, ListCreate(**given))
    await lists.add_entries(session, space(rt), who, made.id, [address(url) for url in urls])
    return made


# Domains.


async def domain(
    session: WriteSession, rt: Runtime, host: str = "sho.rt", *, by: int = 0, **given: Any
) -> Domain:
    """An active domain. Its destinations are not checked."""
    new, hooks = DomainCreate(host=host, **given), build_domain_hooks()
    return await domains.create_domain(session, hooks, by, host, new, rt.clock.now())


async def disable_domain(session: WriteSession, rt: Runtime, host: str = "sho.rt") -> Domain:
    off, hooks = DomainPatch(state=DomainState.DISABLED), build_domain_hooks()
    return await domains.change_domain(session, hooks, 0, host, off, rt.clock.now())
