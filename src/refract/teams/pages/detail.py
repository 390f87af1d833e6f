"""The page of a team: its members, its keys, and forms to change it."""

from collections.abc import Awaitable
from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller, ReadCaller, WriteCaller
from refract.identity.keys import is_expiring_soon
from refract.identity.models import Scope
from refract.identity.pages.settings import DEFAULT_KEY_LIFETIME, KEY_LIFETIMES
from refract.identity.responses import render_response
from refract.identity.schemas import KeyOut
from refract.limits.shared_limits import AddressLimit
from refract.teams import groups, keys, queries, service
from refract.teams.dependencies import (
    TeamHooks,
    to_team_caller,
)
from refract.teams.errors import TeamNotFound
from refract.teams.models import TeamRole
from refract.teams.pages.common import PATH, ROLE_LABELS, HandleField, NameField
from refract.teams.schemas import TeamMemberCreate, TeamPatch
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()


@router.get(PATH + "/{team_id}")
async def team_page(team_id: Id, request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Show a team, its members, and what the caller may change."""
    return await render_team(request, actor, rt, team_id)


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
    return await run_and_respond(request, actor, rt, team_id, work(), "slug", values)


@router.post(PATH + "/{team_id}/delete")
async def delete_team(
    team_id: Id, request: Request, actor: WriteCaller, rt: Rt, hooks: TeamHooks
) -> Response:
    """Delete a team that owns no links."""

    async def work() -> str:
        async with rt.db.write() as session:
            team = await service.delete_team(session, to_team_caller(actor), team_id, hooks, rt)
            return gettext("Deleted the team {name}", name=team.name)

    return await run_and_respond(request, actor, rt, team_id, work(), "delete", {}, then=PATH)


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

    return await run_and_respond(
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
    return await run_and_respond(request, actor, rt, team_id, work(), "email", values)


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
            await service.change_role(session, to_team_caller(actor), team_id, user_id, role, rt)
        return gettext("Changed the role")

    return await run_and_respond(request, actor, rt, team_id, work(), "members", {})


@router.post(PATH + "/{team_id}/members/{user_id}/remove")
async def remove_member(
    team_id: Id, user_id: Id, request: Request, actor: WriteCaller, rt: Rt, hooks: TeamHooks
) -> Response:
    """Remove a member, or leave."""
    leaves = user_id == actor.user.id

    async def work() -> str:
        async with rt.db.write() as session:
            team = await service.remove_member(
                session, to_team_caller(actor), team_id, user_id, hooks, rt
            )
            name = team.name
        return gettext("You left {name}", name=name) if leaves else gettext("Removed the member")

    then = PATH if leaves and not actor.is_admin else None
    return await run_and_respond(request, actor, rt, team_id, work(), "members", {}, then=then)


async def render_team(
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
        team_keys = None
        if view.manages and Scope.ACCOUNT in actor.scopes:
            team_keys = await keys.list_team_keys(session, to_team_caller(actor), team_id)
    now = rt.clock.now()
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
        keys=None if team_keys is None else [KeyOut.from_key(key, now) for key in team_keys],
        ending_soon={key.id for key in team_keys or () if is_expiring_soon(key, now)},
        key_days=KEY_LIFETIMES,
        default_key_days=DEFAULT_KEY_LIFETIME,
        **context,
    )


async def run_and_respond(  # noqa: PLR0913 - the work, and the page that follows it
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
        return await render_team(
            request, actor, rt, team_id, status=422, values=typed, errors={wrong: problem}
        )
    except (Conflict, Invalid, NotFound) as exc:
        if isinstance(exc, TeamNotFound):
            raise
        errors = {field: translate_error(exc)}
        return await render_team(
            request, actor, rt, team_id, status=exc.status, values=typed, errors=errors
        )
    response = RedirectResponse(then or f"{PATH}/{team_id}", 303)
    flash.add(response, rt, message)
    return response
