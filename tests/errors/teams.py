"""Provocations of teams, their members, and teams as owners of links."""

from sqlalchemy import insert

from refract.identity.models import Scope, User
from refract.links import service
from refract.links.access import LinkCaller
from refract.lists.access import ListCaller
from refract.teams.models import Team, TeamMember, TeamRole
from refract.teams.service import MAX_MEMBERS
from tests import make
from tests.access.identities import CHOIR, Who
from tests.client import by_cookie, by_key
from tests.errors.links import change_of_a_deleted_link, email_of_two, link_to
from tests.errors.provoking import provokes, sends
from tests.errors.site import Asking, unique

_TEAM = "/teams/{team_id}"
_MEMBER = f"{_TEAM}/members/{{user_id}}"
_LINK_TEAMS = "/links/{link_id}/teams"

provokes("AMBIGUOUS_EMAIL", f"POST {_TEAM}/members")(email_of_two)
provokes("INVALID_STATE_TRANSITION", f"POST {_LINK_TEAMS}")(change_of_a_deleted_link)
sends("ADMIN_REQUIRED", "GET /teams", query={"everyone": "true"})
sends("INVALID_TEAM_SLUG", f"PATCH {_TEAM}", json={"slug": "not plain"})
sends("TEAM_SLUG_TAKEN", f"PATCH {_TEAM}", json={"slug": CHOIR})
sends("INVALID_TEAM_SLUG", "POST /teams", json={"name": "A", "slug": "not plain"})
sends("TEAM_SLUG_TAKEN", "POST /teams", json={"name": "A", "slug": CHOIR})
sends("USER_NOT_FOUND", f"POST {_TEAM}/members", json={"email": "nobody@example.com"})
sends("TEAM_MEMBER_EXISTS", f"POST {_TEAM}/members", json={"email": "mara@example.com"})
sends("UNKNOWN_GROUP_ISSUER", f"PUT {_TEAM}/group", json={"issuer": "nowhere", "group": "x"})
sends("TEAM_NOT_FOUND", f"POST {_LINK_TEAMS}", json={"team": "nobody"})
_NEW = {"destination": make.DESTINATION}
_DEFAULTS = f"PUT {_TEAM}/defaults"
sends("INVALID_TAG", _DEFAULTS, json={"tags": ["<>"]})
sends("TOO_MANY_TAGS", _DEFAULTS, json={"tags": [f"t{n}" for n in range(21)]})
sends("TEAM_NOT_FOUND", "POST /lists", "POST /lists/{list_id}/transfer", json={"team": "nobody"})
sends("TEAM_NOT_FOUND", "POST /links", json=_NEW | {"team": "nobody"})
sends("TEAM_REQUIRED", "POST /links", json=_NEW | {"visibility": "team"})


@provokes("TEAM_CREATION_FORBIDDEN", "POST /teams")
async def new_team_where_administrators_create_them(asking: Asking) -> None:
    await asking.ask(site=asking.site.with_settings(team_creation="administrators"))


@provokes(
    "NOT_TEAM_MANAGER",
    *(f"{method} {_TEAM}" for method in ("PATCH", "DELETE")),
    f"PUT {_TEAM}/defaults",
    f"POST {_TEAM}/members",
    *(f"{method} {_MEMBER}" for method in ("PATCH", "DELETE")),
)
async def change_by_a_member(asking: Asking) -> None:
    await asking.ask(headers=asking.world.headers[Who.MEMBER])


@provokes("TEAM_REQUIRED", "PATCH /links/{link_id}")
async def team_visibility_of_a_link_without_a_team(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        link = await make.link(session, asking.rt, asking.world.owner)
    path = asking.path.replace("{link_id}", str(link.id))
    await asking.ask(path, json={"visibility": "team"})


_KEYS = f"{_TEAM}/keys"


@provokes("NOT_TEAM_MANAGER", f"GET {_KEYS}", f"POST {_KEYS}", f"DELETE {_KEYS}/{{key_id}}")
async def keys_of_a_team_for_a_member(asking: Asking) -> None:
    path = await asking.target()
    async with asking.rt.db.write() as session:
        cookie = await make.cookie(session, asking.rt, asking.world.member)
    await asking.ask(path, headers=by_cookie(asking.rt, cookie))


@provokes("SCOPE_NOT_ALLOWED", f"POST {_KEYS}")
async def key_with_more_scopes_than_the_one_that_makes_it(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        scopes = (Scope.READ, Scope.ACCOUNT)
        weak = by_key(await make.key(session, asking.rt, asking.world.owner, *scopes))
    await asking.ask(headers=weak, json={"name": "x", "scopes": ["write"]})


_ENDED = "2020-01-01T00:00:00Z"
sends("INVALID_KEY_EXPIRY", f"POST {_KEYS}", json={"name": "x", "expires_at": _ENDED})


@provokes("LAST_TEAM_MANAGER", f"PATCH {_MEMBER}", f"DELETE {_MEMBER}")
async def last_manager_who_leaves(asking: Asking) -> None:
    owner = asking.world.owner
    async with asking.rt.db.write() as session:
        team = await make.team(session, asking.rt, owner, name=unique())
    path = asking.path.replace("{team_id}", str(team.id)).replace("{user_id}", str(owner.id))
    body = {"json": {"role": "member"}} if asking.method == "PATCH" else {}
    await asking.ask(path, **body)


@provokes("TOO_MANY_TEAM_MEMBERS", f"POST {_TEAM}/members")
async def one_member_too_many(asking: Asking) -> None:
    path, now = await asking.target(), asking.rt.clock.now()
    team_id = int(asking.world.made["team_id"])
    crowd = [make.somebody(asking.rt, unique("crowd")) for _ in range(MAX_MEMBERS)]
    columns = [column.key for column in User.__table__.columns]
    async with asking.rt.db.write() as session:
        await session.execute(
            insert(User), [{name: getattr(user, name) for name in columns} for user in crowd]
        )
        rows = [
            {
                "team_id": team_id,
                "user_id": user.id,
                "role": TeamRole.MEMBER.value,
                "created_at": now,
            }
            for user in crowd
        ]
        await session.execute(insert(TeamMember), rows)
    await asking.ask(path)


@provokes("TEAM_OWNS_LISTS", f"DELETE {_TEAM}")
async def team_with_a_list(asking: Asking) -> None:
    path = await asking.target()
    await _list_of_team(asking, int(asking.world.made["team_id"]))
    await asking.ask(path)


@provokes("NOT_TEAM_MANAGER", "POST /lists/{list_id}/transfer")
async def transfer_of_a_list_by_a_member(asking: Asking) -> None:
    list_id = await _list_of_team(asking, asking.world.crew.id)
    by_member = asking.world.headers[Who.MEMBER]
    await asking.ask(await asking.target(list_id=list_id), headers=by_member, json={"team": None})


async def _list_of_team(asking: Asking, team_id: int) -> str:
    async with asking.rt.db.write() as session:
        made = await make.list_of(session, asking.rt, ListCaller(asking.world.owner.id))
        made.team_id, made.owner_id = team_id, None
        return str(made.id)


@provokes("TEAM_OWNS_LINKS", f"DELETE {_TEAM}")
async def team_with_a_link(asking: Asking) -> None:
    path, link_id = await asking.target(), await link_to(asking)
    await _transfer(asking, int(asking.world.made["team_id"]), int(link_id))
    await asking.ask(path)


@provokes("PRIMARY_OWNER_REQUIRED", f"POST {_LINK_TEAMS}")
async def transfer_by_a_co_owner(asking: Asking) -> None:
    by_co_owner = asking.world.headers[Who.CO_OWNER]
    await asking.ask(headers=by_co_owner, json={"team": CHOIR, "primary": True})


@provokes("OWNER_EXISTS", f"POST {_LINK_TEAMS}")
async def team_that_owns_it_already(asking: Asking) -> None:
    by_member = asking.world.headers[Who.MEMBER]
    await asking.ask(headers=by_member, json={"team": asking.world.crew.slug})


@provokes("PRIMARY_OWNER_PROTECTED", f"DELETE {_LINK_TEAMS}/{{team_id}}")
async def team_that_is_the_primary_owner(asking: Asking) -> None:
    path = await asking.target()
    crew, link_id = asking.world.crew, int(asking.world.made["link_id"])
    await _transfer(asking, crew.id, link_id)
    await asking.ask(path, headers=asking.world.headers[Who.MANAGER])


async def _transfer(asking: Asking, team_id: int, link_id: int) -> None:
    async with asking.rt.db.write() as session:
        team = await session.get_one(Team, team_id)
        chief = LinkCaller(asking.world.admin.id, is_admin=True)
        now = asking.rt.clock.now()
        await service.add_team(session, chief, link_id, team.slug, now, primary=True)
