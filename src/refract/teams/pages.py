"""Pages of teams: the caller's teams, and one team with its members."""

from collections.abc import Awaitable
from typing import Annotated, Any, Literal

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller, ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.limits.shared_limits import AddressLimit
from refract.teams import groups, queries, service
from refract.teams.dependencies import (
    TeamHooks,
    can_create_teams,
    require_team_creation,
    to_team_caller,
)
from refract.teams.errors import TeamNotFound
from refract.teams.models import TeamRole
from refract.teams.schemas import TeamCreate, TeamMemberCreate, TeamPatch
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import gettext, lazy_gettext, translate_error

router = page_router()
PATH = "/app/teams"
ROLE_LABELS = {
    TeamRole.MEMBER: lazy_gettext("Member"),
    TeamRole.MANAGER: lazy_gettext("Manager"),
}
NameField = Annotated[str, Form(max_length=200)]
HandleField = Annotated[str, Form(max_length=200)]


@router.get(PATH)
async def teams_page(
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    show: Literal["mine", "all"] = "mine",
    cursor: CursorParam = None,
) -> Response:
    """List the caller's teams; for administrators also all of them."""
    return await _render_teams(request, actor, rt, show=show, cursor=cursor)


@router.post(PATH)
async def create_team(
    request: Request, actor: WriteCaller, rt: Rt, name: NameField = "", slug: HandleField = ""
) -> Response:
    """Create a team, and show it."""
    require_team_creation(rt, actor)
    values = {"name": name, "slug": slug}
    try:
        new = TeamCreate(name=name, slug=slug.strip() or None)
        async with rt.db.write() as session:
            view = await service.create_team(session, to_team_caller(actor), new, rt.clock.now())
            team_id, title = view.team.id, view.team.name
    except ValidationError:
        errors = {"name": gettext("Enter a name of 1 to 80 characters.")}
        return await _render_teams(request, actor, rt, status=422, values=values, errors=errors)
    except (Conflict, Invalid) as exc:
        errors = {"slug": translate_error(exc)}
        return await _render_teams(
            request, actor, rt, status=exc.status, values=values, errors=errors
        )
    response = RedirectResponse(f"{PATH}/{team_id}", 303)
    flash.add(response, rt, gettext("Created the team {name}", name=title))
    return response


async def _render_teams(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    show: Literal["mine", "all"] = "mine",
    cursor: str | None = None,
    status: int = 200,
    **context: Any,
) -> Response:
    everyone = show == "all" and actor.is_admin
    async with rt.db.read() as session:
        page = await queries.load_teams_page(
            session,
            CursorCodec(rt.secret),
            to_team_caller(actor),
            limit=PER_PAGE,
            cursor=cursor,
            everyone=everyone,
        )
    params = {"show": "all" if everyone else ""}
    return render_response(
        request,
        actor,
        "teams/index.html",
        status=status,
        page_title=gettext("Teams"),
        teams=[view.to_schema() for view in page.items],
        roles=ROLE_LABELS,
        may_create=can_create_teams(rt, actor),
        show="all" if everyone else "mine",
        sees_all=actor.is_admin,
        **build_pager(PATH, params, cursor, page.next_cursor),
        **context,
    )


@router.get(PATH + "/{team_id}")
async def team_page(team_id: Id, request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Show a team, its members, and what the caller may change."""
    return await _render_team(request, actor, rt, team_id)


@router.post(PATH + "/{team_id}")
async def change_team(
    team_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    name: NameField = "",
    slug: HandleField = "",
) -> Response:
    """Rename a team, or change its handle."""

    async def work() -> str:
        changes = TeamPatch(name=name, slug=slug)
        async with rt.db.write() as session:
            await service.change_team(
                session, to_team_caller(actor), team_id, changes, rt.clock.now()
            )
        return gettext("Saved the team")

    values = {"name": name, "slug": slug}
    return await _run_and_respond(request, actor, rt, team_id, work(), "slug", values)


@router.post(PATH + "/{team_id}/delete")
async def delete_team(
    team_id: Id, request: Request, actor: WriteCaller, rt: Rt, hooks: TeamHooks
) -> Response:
    """Delete a team that owns no links."""

    async def work() -> str:
        async with rt.db.write() as session:
            team = await service.delete_team(
                session, to_team_caller(actor), team_id, hooks, rt.clock.now()
            )
            return gettext("Deleted the team {name}", name=team.name)

    return await _run_and_respond(request, actor, rt, team_id, work(), "delete", {}, then=PATH)


@router.post(PATH + "/{team_id}/group")
async def bind_group(
    team_id: Id,
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    issuer: Annotated[str, Form(max_length=31)] = "",
    group: Annotated[str, Form(max_length=255)] = "",
) -> Response:
    """Let members follow a group of an identity provider; without one, no longer."""

    async def work() -> str:
        async with rt.db.write() as session:
            await groups.bind_group(
                session, rt, to_team_caller(actor), team_id, issuer, group.strip() or None
            )
        return gettext("Saved the team")

    return await _run_and_respond(
        request, actor, rt, team_id, work(), "group", {"group": group, "issuer": issuer}
    )


@router.post(PATH + "/{team_id}/members")
async def add_member(
    team_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    hooks: TeamHooks,
    email: Annotated[str, Form(max_length=255)] = "",
    role: Annotated[TeamRole, Form()] = TeamRole.MEMBER,
) -> Response:
    """Add a member by email."""

    async def work() -> str:
        new = TeamMemberCreate(email=email, role=role)
        await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
        async with rt.db.write() as session:
            await service.add_member(
                session, to_team_caller(actor), team_id, new, hooks, rt.clock.now()
            )
        return gettext("Added {email}", email=new.email)

    values = {"email": email, "role": role.value}
    return await _run_and_respond(request, actor, rt, team_id, work(), "email", values)


@router.post(PATH + "/{team_id}/members/{user_id}/role")
async def change_role(
    team_id: Id,
    user_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    role: Annotated[TeamRole, Form()] = TeamRole.MEMBER,
) -> Response:
    """Make a member a manager, or the other way round."""

    async def work() -> str:
        async with rt.db.write() as session:
            await service.change_role(
                session, to_team_caller(actor), team_id, user_id, role, rt.clock.now()
            )
        return gettext("Changed the role")

    return await _run_and_respond(request, actor, rt, team_id, work(), "members", {})


@router.post(PATH + "/{team_id}/members/{user_id}/remove")
async def remove_member(
    team_id: Id, user_id: Id, request: Request, actor: WriteCaller, rt: Rt, hooks: TeamHooks
) -> Response:
    """Remove a member, or leave."""
    leaves = user_id == actor.user.id

    async def work() -> str:
        async with rt.db.write() as session:
            team = await service.remove_member(
                session, to_team_caller(actor), team_id, user_id, hooks, rt.clock.now()
            )
            name = team.name
        return gettext("You left {name}", name=name) if leaves else gettext("Removed the member")

    then = PATH if leaves and not actor.is_admin else None
    return await _run_and_respond(request, actor, rt, team_id, work(), "members", {}, then=then)


async def _render_team(
    request: Request,
    actor: Caller,
    rt: Runtime,
    team_id: int,
    *,
    status: int = 200,
    **context: Any,
) -> Response:
    async with rt.db.read() as session:
        view = await queries.view_team(session, to_team_caller(actor), team_id)
        members = await queries.list_members(session, team_id)
    return render_response(
        request,
        actor,
        "teams/detail.html",
        status=status,
        page_title=view.team.name,
        team=view.to_schema(),
        members=members,
        manages=view.manages,
        issuers=[
            (name, issuer.display_name)
            for name, issuer in rt.settings.issuers.items()
            if actor.is_admin and issuer.groups_claim is not None
        ],
        roles=ROLE_LABELS,
        **context,
    )


async def _run_and_respond(  # noqa: PLR0913 - the work, and the page that follows it
    request: Request,
    actor: Caller,
    rt: Runtime,
    team_id: int,
    work: Awaitable[str],
    field: str,
    typed: dict[str, Any],
    *,
    then: str | None = None,
) -> Response:
    """Run the work and show its message, or show the page with the typed values and the error."""
    try:
        message = await work
    except ValidationError as exc:
        wrong = str(exc.errors()[0]["loc"][0])
        problem = (
            gettext("Enter a valid email address.")
            if wrong == "email"
            else gettext("Enter a name of 1 to 80 characters.")
        )
        return await _render_team(
            request, actor, rt, team_id, status=422, values=typed, errors={wrong: problem}
        )
    except (Conflict, Invalid, NotFound) as exc:
        if isinstance(exc, TeamNotFound):
            raise
        errors = {field: translate_error(exc)}
        return await _render_team(
            request, actor, rt, team_id, status=exc.status, values=typed, errors=errors
        )
    response = RedirectResponse(then or f"{PATH}/{team_id}", 303)
    flash.add(response, rt, message)
    return response


ROUTERS = (router,)
