"""The team that shall own something new, or take something over."""

from refract.core.db.session import WriteSession
from refract.identity.models import User
from refract.teams.accounts import find_team_of_account
from refract.teams.errors import TeamNotFound
from refract.teams.models import Team
from refract.teams.queries import TeamCaller, view_team_by_slug
from refract.teams.service import lock_own_teams, lock_team


async def lock_new_owner(session: WriteSession, creator: User, slug: str | None) -> Team | None:
    """Lock the team that shall own what a user creates; return None if they do themselves.

    What a key of a team creates belongs to the team. Raises `TeamNotFound`.
    """
    if slug is None:
        team = await find_team_of_account(session, creator)
        if team is None:
            return None
        slug = team.slug
    owning = await lock_own_teams(session, creator.id, [slug])
    if slug not in owning:
        raise TeamNotFound
    return owning[slug]


async def lock_heir(session: WriteSession, caller: TeamCaller, slug: str) -> Team:
    """Lock the team that takes something over. Raises `TeamNotFound`, as `view_team` does."""
    found = await view_team_by_slug(session, caller, slug)
    return (await lock_team(session, caller, found.team.id)).team
