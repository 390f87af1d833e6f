"""API of teams and their members."""

from typing import Annotated

from fastapi import Query, Response

from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import (
    AccountCaller,
    AdminCaller,
    IncludeRevoked,
    ReadCaller,
    WriteCaller,
)
from refract.identity.errors import (
    AdminRequired,
    AmbiguousEmail,
    InvalidKeyExpiry,
    KeyNotFound,
    ScopeNotAllowed,
    UserNotFound,
)
from refract.identity.schemas import KeyList, KeyOut, NewKey, check_key_expiry
from refract.limits.shared_limits import AddressLimit
from refract.teams import groups, keys, queries, service
from refract.teams.dependencies import TeamHooks, require_team_creation, to_team_caller
from refract.teams.errors import (
    InvalidTeamSlug,
    LastTeamManager,
    NotTeamManager,
    TeamCreationForbidden,
    TeamMemberExists,
    TeamMemberNotFound,
    TeamNotFound,
    TeamOwnsLinks,
    TeamOwnsLists,
    TeamSlugTaken,
    TooManyTeamMembers,
    UnknownGroupIssuer,
)
from refract.teams.schemas import (
    TeamCreate,
    TeamGroup,
    TeamKeyCreate,
    TeamMemberCreate,
    TeamMemberList,
    TeamMemberOut,
    TeamMemberPatch,
    TeamOut,
    TeamPatch,
    TeamsPage,
)
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

router = api_router("/teams", "teams")
_CHANGED = (TeamNotFound, NotTeamManager)


@router.post(
    "",
    status_code=201,
    responses=problems(TeamCreationForbidden, InvalidTeamSlug, TeamSlugTaken),
)
async def create_team(new: TeamCreate, actor: WriteCaller, rt: Rt, response: Response) -> TeamOut:
    """Create a team. You become its manager."""
    require_team_creation(rt, actor)
    async with rt.db.write() as session:
        view = await service.create_team(session, to_team_caller(actor), new, rt.clock.now())
        out = view.to_schema()
    response.headers["Location"] = f"/api/v1/teams/{out.id}"
    return out


@router.get("", responses=problems(AdminRequired))
async def list_teams(
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    everyone: Annotated[bool, Query(description="All teams, for administrators.")] = False,
) -> TeamsPage:
    """List your teams by handle, or for administrators all of them."""
    if everyone and not actor.is_admin:
        raise AdminRequired
    async with rt.db.read() as session:
        page = await queries.load_teams_page(
            session,
            CursorCodec(rt.secret),
            to_team_caller(actor),
            limit=limit,
            cursor=cursor,
            everyone=everyone,
        )
    return TeamsPage(items=[view.to_schema() for view in page.items], next_cursor=page.next_cursor)


@router.get("/{team_id}", responses=problems(TeamNotFound))
async def read_team(team_id: Id, actor: ReadCaller, rt: Rt) -> TeamOut:
    """Return a team that you belong to; administrators see all."""
    async with rt.db.read() as session:
        view = await queries.view_team(session, to_team_caller(actor), team_id)
    return view.to_schema()


@router.patch("/{team_id}", responses=problems(*_CHANGED, InvalidTeamSlug, TeamSlugTaken))
async def change_team(team_id: Id, changes: TeamPatch, actor: WriteCaller, rt: Rt) -> TeamOut:
    """Rename a team, or change its handle. For its managers."""
    async with rt.db.write() as session:
        view = await service.change_team(
            session, to_team_caller(actor), team_id, changes, rt.clock.now()
        )
        return view.to_schema()


@router.delete(
    "/{team_id}", status_code=204, responses=problems(*_CHANGED, TeamOwnsLinks, TeamOwnsLists)
)
async def delete_team(team_id: Id, actor: WriteCaller, rt: Rt, hooks: TeamHooks) -> Response:
    """Delete a team that owns no links and lists. Links that it co-owns stay with their owners."""
    async with rt.db.write() as session:
        await service.delete_team(session, to_team_caller(actor), team_id, hooks, rt)
    return Response(status_code=204)


@router.put("/{team_id}/group", responses=problems(TeamNotFound, UnknownGroupIssuer))
async def bind_group(team_id: Id, bound: TeamGroup, actor: AdminCaller, rt: Rt) -> TeamOut:
    """Let members follow a group of an identity provider, at each sign-in."""
    async with rt.db.write() as session:
        view = await groups.bind_group(
            session, rt, to_team_caller(actor), team_id, bound.issuer, bound.group
        )
        return view.to_schema()


@router.delete("/{team_id}/group", status_code=204, responses=problems(TeamNotFound))
async def release_group(team_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Let members no longer follow a group. Those who are there stay."""
    async with rt.db.write() as session:
        await groups.bind_group(session, rt, to_team_caller(actor), team_id, None, None)
    return Response(status_code=204)


@router.get("/{team_id}/members", responses=problems(TeamNotFound))
async def list_members(team_id: Id, actor: ReadCaller, rt: Rt) -> TeamMemberList:
    """List the members of a team, managers first."""
    async with rt.db.read() as session:
        await queries.view_team(session, to_team_caller(actor), team_id)
        return TeamMemberList(items=await queries.list_members(session, team_id))


@router.post(
    "/{team_id}/members",
    status_code=201,
    responses=problems(
        *_CHANGED, UserNotFound, AmbiguousEmail, TeamMemberExists, TooManyTeamMembers
    ),
)
async def add_member(
    team_id: Id, new: TeamMemberCreate, actor: WriteCaller, rt: Rt, hooks: TeamHooks
) -> TeamMemberOut:
    """Add a user to a team. They have its rights immediately."""
    await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
    async with rt.db.write() as session:
        member = await service.add_member(
            session, to_team_caller(actor), team_id, new, hooks, rt.clock.now()
        )
        return await queries.get_member(session, team_id, member.user_id)


@router.patch(
    "/{team_id}/members/{user_id}",
    responses=problems(*_CHANGED, TeamMemberNotFound, LastTeamManager),
)
async def change_member(
    team_id: Id, user_id: Id, changes: TeamMemberPatch, actor: WriteCaller, rt: Rt
) -> TeamMemberOut:
    """Make a member a manager, or the other way round."""
    async with rt.db.write() as session:
        await service.change_role(
            session, to_team_caller(actor), team_id, user_id, changes.role, rt
        )
        return await queries.get_member(session, team_id, user_id)


@router.delete(
    "/{team_id}/members/{user_id}",
    status_code=204,
    responses=problems(*_CHANGED, TeamMemberNotFound, LastTeamManager),
)
async def remove_member(
    team_id: Id, user_id: Id, actor: WriteCaller, rt: Rt, hooks: TeamHooks
) -> Response:
    """Remove a member, or leave a team. They lose its rights immediately."""
    async with rt.db.write() as session:
        await service.remove_member(session, to_team_caller(actor), team_id, user_id, hooks, rt)
    return Response(status_code=204)


keys_router = api_router("/teams/{team_id}/keys", "teams")


@keys_router.get("", responses=problems(*_CHANGED))
async def list_team_keys(
    team_id: Id, actor: AccountCaller, rt: Rt, include_revoked: IncludeRevoked = False
) -> KeyList:
    """List the API keys of a team, newest first. For its managers."""
    async with rt.db.read() as session:
        found = await keys.list_team_keys(
            session, to_team_caller(actor), team_id, include_revoked=include_revoked
        )
    return KeyList(items=[KeyOut.from_key(key, rt.clock.now()) for key in found])


@keys_router.post(
    "",
    status_code=201,
    responses=problems(*_CHANGED, ScopeNotAllowed, InvalidKeyExpiry),
    openapi_extra={"x-secret-fields": ["key"]},
)
async def create_team_key(
    team_id: Id, new: TeamKeyCreate, actor: AccountCaller, rt: Rt, hooks: TeamHooks
) -> NewKey:
    """Create an API key of a team, which stays when you leave. For its managers.

    It uses the links of the team and their analytics, with the rights of a member, and nothing
    else. Links that it creates belong to the team. Only this response contains the key itself.
    """
    check_key_expiry(new.expires_at, rt.clock.now())
    async with rt.db.write() as session:
        row, clear = await keys.create_team_key(
            session, rt, to_team_caller(actor), team_id, new, hooks, parent=actor.parent_key
        )
        return NewKey.from_new_key(row, clear)


@keys_router.delete("/{key_id}", status_code=204, responses=problems(*_CHANGED, KeyNotFound))
async def revoke_team_key(team_id: Id, key_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    """Revoke an API key of a team. It takes effect immediately, in every process."""
    async with rt.db.write() as session:
        await keys.revoke_team_key(session, rt, to_team_caller(actor), team_id, key_id)
    return Response(status_code=204)


ROUTERS = (router, keys_router)
