"""Defaults of a team for the links that it owns: tags, and the domain on which they live."""

from dataclasses import replace
from datetime import datetime

from refract.core.db.session import WriteSession
from refract.domains.queries import DomainCaller, lock_usable_domain
from refract.identity import audit
from refract.links.service.new_links import NewLink
from refract.links.service.tags import validate_tags
from refract.teams.models import Team
from refract.teams.queries import TeamCaller, TeamView
from refract.teams.service import lock_team


async def set_team_defaults(
    session: WriteSession,
    caller: TeamCaller,
    team_id: int,
    host: str | None,
    tags: list[str],
    now: datetime,
) -> TeamView:
    """Set the tags and the domain of new links of a team; None is the default domain.

    For its managers, who must be able to create on the domain. Links that are there stay.
    """
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    if host is not None:
        domain_caller = DomainCaller(caller.user_id, caller.is_admin)
        host = (await lock_usable_domain(session, domain_caller, host)).host
    view.team.default_domain, view.team.default_tags = host, validate_tags(tags) or None
    audit.add_entry(
        session,
        "team.defaults_changed",
        at=now,
        actor_id=caller.user_id,
        target=team_id,
        detail=host,
    )
    await session.flush()
    return view


def apply_team_defaults(new: NewLink, team: Team | None) -> NewLink:
    """Return a new link with the defaults of the team that is to own it, where it leaves them out.

    A link that keeps its identity keeps what it had.
    """
    if team is None or new.kept is not None:
        return new
    chosen = new.given.model_fields_set
    if "tags" not in chosen and team.default_tags:
        new = replace(new, given=new.given.model_copy(update={"tags": team.default_tags}))
    if "domain" not in chosen and team.default_domain is not None:
        new = replace(new, domain=team.default_domain)
    return new
