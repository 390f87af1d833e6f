"""API of the defaults of a team for its new links."""

from refract.core.schemas import Id
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.hosts import to_other_host
from refract.identity.dependencies import WriteCaller
from refract.links import service
from refract.links.errors import TooManyTags
from refract.links.schemas import TeamDefaults
from refract.tags.errors import InvalidTag
from refract.teams.dependencies import to_team_caller
from refract.teams.errors import NotTeamManager, TeamNotFound
from refract.teams.schemas import TeamOut
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

router = api_router("/teams/{team_id}/defaults", "teams")


@router.put(
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
