"""Forms for teams: on the page of a link, and their defaults on the page of a team."""

from typing import Annotated

from fastapi import Form, Request
from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.domains.hosts import to_other_host
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.links import queries, service
from refract.links.dependencies import to_link_caller
from refract.links.pages.people import run_and_respond
from refract.teams.dependencies import to_team_caller
from refract.teams.pages.detail import run_and_respond as run_and_show_team
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext

router = page_router()
TeamFormField = Annotated[str, Form(max_length=50)]
"""The handle of a team."""


@router.post("/app/links/{link_id}/teams")
async def add_team(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, team: TeamFormField = ""
) -> Response:
    async def work() -> str:
        await _add_team(rt, actor, link_id, team, primary=False)
        return gettext("Added the team")

    return await run_and_respond(request, actor, rt, link_id, work(), "team", {"team": team})


@router.post("/app/links/{link_id}/teams/transfer")
async def transfer_to_team(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, team: TeamFormField = ""
) -> Response:
    async def work() -> str:
        await _add_team(rt, actor, link_id, team, primary=True)
        return gettext("Transferred to the team")

    values = {"team_transfer": team}
    return await run_and_respond(request, actor, rt, link_id, work(), "team_transfer", values)


@router.post("/app/links/{link_id}/teams/{team_id}/remove")
async def remove_team(
    link_id: Id, team_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    """Remove a team. A user who was an owner only as its member leaves the page of the link."""

    async def work() -> str:
        async with rt.db.write() as session:
            await service.remove_team(
                session, to_link_caller(actor), link_id, team_id, rt.clock.now()
            )
        return gettext("Removed the team")

    then = None if actor.is_admin or await _is_direct_owner(rt, actor, link_id) else "/app/links"
    return await run_and_respond(request, actor, rt, link_id, work(), "team", {}, then=then)


async def _add_team(rt: Runtime, actor: Caller, link_id: int, slug: str, *, primary: bool) -> None:
    async with rt.db.write() as session:
        await service.add_team(
            session, to_link_caller(actor), link_id, slug, rt.clock.now(), primary=primary
        )


async def _is_direct_owner(rt: Runtime, actor: Caller, link_id: int) -> bool:
    async with rt.db.read() as session:
        owners = await queries.list_owners(session, link_id)
    return any(owner.user_id == actor.user.id for owner, _ in owners)


@router.post("/app/teams/{team_id}/defaults")
async def set_team_defaults(
    team_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    domain: Annotated[str, Form(max_length=253)] = "",
    tags: Annotated[str, Form(max_length=1200)] = "",
) -> Response:
    """Set tags and domain of new links that a team owns."""

    async def work() -> str:
        host = to_other_host(rt.settings.public_url, domain)
        names = [tag.strip() for tag in tags.split(",") if tag.strip()]
        async with rt.db.write() as session:
            await service.set_team_defaults(
                session, to_team_caller(actor), team_id, host, names, rt.clock.now()
            )
        return gettext("Saved the team")

    values = {"domain": domain, "tags": tags}
    return await run_and_show_team(request, actor, rt, team_id, work(), "defaults", values)
