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


PERSONAL_DATA_HOOK = PersonalDataHook("teams", export_personal_data, erase_personal_data)
