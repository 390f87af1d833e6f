"""The accounts that hold the API keys of teams. They cannot sign in.

The account of a team is one of its members, so that every list, filter and right finds the team's
links without knowing keys. It is in no list of people or members.
"""

from collections.abc import Sequence

from sqlalchemy import select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.identity import keys
from refract.identity.models import (
    TEAM_ISSUER,
    User,
    UserPlan,
    UserRole,
    UserStatus,
)
from refract.teams.hooks import TeamHook
from refract.teams.models import Team, TeamMember, TeamRole


async def find_account(session: ReadSession, team_id: int) -> User | None:
    """Return the account of a team, or None if it has never had a key."""
    query = select(User).where(User.issuer == TEAM_ISSUER, User.subject == str(team_id))
    found: User | None = await session.scalar(query)
    return found


async def find_team_of_account(session: ReadSession, account: User) -> Team | None:
    """Return the team whose keys an account holds; None for a person."""
    return await session.get(Team, int(account.subject)) if account.is_team_account else None


async def add_account(
    session: WriteSession, rt: Runtime, team: Team, hooks: Sequence[TeamHook]
) -> User:
    """Add the account of a locked team, with the rights of a member."""
    now = rt.clock.now()
    account = User(
        id=rt.ids.next_id(),
        issuer=TEAM_ISSUER,
        subject=str(team.id),
        email="",
        email_folded="",
        email_verified=False,
        display_name=team.name,
        preferences={},
        plan=UserPlan.FREE,
        role=UserRole.USER,
        status=UserStatus.ACTIVE,
        created_at=now,
        last_sync_at=now,
    )
    session.add(account)
    await session.flush()
    role = TeamRole.MEMBER.value
    session.add(TeamMember(team_id=team.id, user_id=account.id, role=role, created_at=now))
    await session.flush()
    for hook in hooks:
        await hook.update_members(session, team.id, [account.id], now)
    return account


async def close_account(session: WriteSession, team_id: int) -> None:
    """Revoke all keys of a team that is being deleted, and end its account."""
    account = await find_account(session, team_id)
    if account is None:
        return
    for row in await keys.list_keys(session, account):
        await keys.revoke_key(session, account, row.id)
    account.status = UserStatus.DELETED
    await session.flush()
