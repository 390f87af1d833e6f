"""A user's teams in their data export, and when their account is deleted."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import select

from refract.core.clock import format_utc
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.teams import service
from refract.teams.models import Team, TeamMember
from refract.teams.queries import find_role, find_team_id, list_members


async def export_personal_data(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Yield the teams that a user belongs to, with their role."""
    mine = select(Team, TeamMember).join(TeamMember, TeamMember.team_id == Team.id)
    async with rt.db.read() as session:
        found = list(
            await session.execute(mine.where(TeamMember.user_id == user.id).order_by(Team.slug))
        )
    for team, member in found:
        yield {
            "id": str(team.id),
            "slug": team.slug,
            "name": team.name,
            "role": member.role,
            "joined_at": format_utc(member.created_at),
        }


async def erase_personal_data(
    session: WriteSession, _rt: Runtime, leaving: AccountDeletion
) -> None:
    """Remove the user from all teams, before their links are handed over."""
    await service.remove_from_all_teams(session, leaving.user.id)


async def lock_heir_team(
    session: WriteSession, user: User, team: str | int, by_admin: bool
) -> int | None:
    """Lock the team that takes over from a user; None if no one else would be in it."""
    team_id = team if isinstance(team, int) else await find_team_id(session, team)
    if team_id is None:
        return None
    await service.lock_teams(session, [team_id])
    if not by_admin and await find_role(session, team_id, user.id) is None:
        return None
    members = await list_members(session, team_id)
    return team_id if any(member.user_id != user.id for member in members) else None


PERSONAL_DATA_HOOK = PersonalDataHook(
    "teams", export_personal_data, erase_personal_data, lock_heir_team
)
