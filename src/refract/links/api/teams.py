"""API of teams as owners of links, and of their defaults for new ones."""

from fastapi import Response

from refract.core.errors import InvalidStateTransition
from refract.core.schemas import Id
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.hosts import to_other_host
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.links import queries, service
from refract.links.dependencies import load_link_out, to_link_caller
from refract.links.errors import (
    LinkNotFound,
    NotOwner,
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    PrimaryOwnerRequired,
    TooManyTags,
)
from refract.links.schemas import LinkOut, LinkTeamIn, LinkTeamList, TeamDefaults
from refract.tags.errors import InvalidTag
from refract.teams.dependencies import to_team_caller
from refract.teams.errors import NotTeamManager, TeamNotFound
from refract.teams.schemas import TeamOut
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

router = api_router("/links/{link_id}", "links")


@router.get("/teams", responses=problems(LinkNotFound))
async def list_link_teams(link_id: Id, actor: ReadCaller, rt: Rt) -> LinkTeamList:
    """List the teams that own a link, the primary owner first."""
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, to_link_caller(actor), link_id)
        card = await queries.load_card(session, link)
    return LinkTeamList(items=[team.to_schema() for team in card.teams])


@router.post(
    "/teams",
    status_code=201,
    responses=problems(
        LinkNotFound,
        NotOwner,
        PrimaryOwnerRequired,
        TeamNotFound,
        OwnerExists,
        InvalidStateTransition,
    ),
)
async def add_link_team(link_id: Id, new: LinkTeamIn, actor: WriteCaller, rt: Rt) -> LinkOut:
    """Make a team that you belong to an owner of a link, or transfer the link to it."""
    async with rt.db.write() as session:
        locked = await service.add_team(
            session,
            to_link_caller(actor),
            link_id,
            new.team,
            rt.clock.now(),
            primary=new.primary,
        )
        return await load_link_out(rt, locked)


@router.delete(
    "/teams/{team_id}",
    status_code=204,
    responses=problems(LinkNotFound, NotOwner, OwnerNotFound, PrimaryOwnerProtected),
)
async def remove_link_team(link_id: Id, team_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Remove a team from the owners of a link. Its members lose access immediately."""
    async with rt.db.write() as session:
        await service.remove_team(session, to_link_caller(actor), link_id, team_id, rt.clock.now())
    return Response(status_code=204)


defaults_router = api_router("/teams/{team_id}/defaults", "teams")


@defaults_router.put(
    "",
    responses=problems(
        *(TeamNotFound, NotTeamManager, DomainNotFound, DomainNotAllowed, DomainDisabled),
        *(InvalidTag, TooManyTags),
    ),
)
async def set_team_defaults(
    team_id: Id, defaults: TeamDefaults, actor: WriteCaller, rt: Rt
) -> TeamOut:
    """Set tags and domain of new links that the team owns. For its managers.

    They apply to links whose creator chooses no tags or no domain.
    """
    host = to_other_host(rt.settings.public_url, defaults.domain)
    async with rt.db.write() as session:
        view = await service.set_team_defaults(
            session, to_team_caller(actor), team_id, host, defaults.tags, rt.clock.now()
        )
        return view.to_schema()
