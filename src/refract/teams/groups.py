"""Teams whose members follow the groups of an identity provider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.identity import audit
from refract.identity.models import User
from refract.teams.errors import UnknownGroupIssuer
from refract.teams.hooks import TeamHook
from refract.teams.models import Team, TeamMember, TeamRole
from refract.teams.queries import TeamCaller, TeamView
from refract.teams.service import build_member, lock_team, lock_teams

MAX_GROUPS = 1_000
"""Values of a claim that are read."""


@dataclass(frozen=True, slots=True)
class GroupFollower:
    """The sign-in hook of teams: users join and leave teams by the groups in their claims."""

    hooks: Sequence[TeamHook]

    async def __call__(
        self,
        session: WriteSession,
        rt: Runtime,
        user: User,
        issuer: Issuer,
        claims: Mapping[str, Any],
    ) -> None:
        """Add the user to teams of their groups, and remove them from those of other groups.

        Only teams that follow this provider are concerned. A claim that is missing has no groups.
        """
        if issuer.groups_claim is None:
            return
        groups, now = read_groups(claims.get(issuer.groups_claim)), rt.clock.now()
        mine = and_(TeamMember.team_id == Team.id, TeamMember.user_id == user.id)
        followed = select(Team.id, Team.group_value, TeamMember.user_id).outerjoin(TeamMember, mine)
        left = False
        rows = await session.execute(followed.where(Team.issuer == issuer.url).order_by(Team.id))
        for team_id, group, member_id in list(rows):
            if (group in groups) != (member_id is not None):
                await self._change_member(session, user, team_id, now, joins=group in groups)
                left = left or group not in groups
        if left:
            await audit.update_revocation_log(session, rt)

    async def _change_member(
        self, session: WriteSession, user: User, team_id: int, now: datetime, *, joins: bool
    ) -> None:
        await lock_teams(session, [team_id])
        member = await session.get(TeamMember, (team_id, user.id), populate_existing=True)
        if joins and member is None:
            session.add(build_member(team_id, user.id, TeamRole.MEMBER, None, now))
        elif not joins and member is not None:
            await session.delete(member)
        else:
            return
        await session.flush()
        for hook in self.hooks:
            await hook.update_members(session, team_id, [user.id], now)
        action = "team.member_added" if joins else "team.member_removed"
        audit.add_entry(session, action, at=now, target=team_id, detail=f"by group {user.id}")


def read_groups(claim: Any) -> frozenset[str]:
    """Return the groups of a claim: texts in a list, one text, or the keys of an object."""
    values = [claim] if isinstance(claim, str) else claim if isinstance(claim, list | dict) else []
    return frozenset(value for value in list(values)[:MAX_GROUPS] if isinstance(value, str))


async def bind_group(
    session: WriteSession,
    rt: Runtime,
    caller: TeamCaller,
    team_id: int,
    issuer_name: str | None,
    group: str | None,
) -> TeamView:
    """Let the members of a team follow a group of a provider; with None, no longer.

    For administrators. Users join and leave at their next sign-in.
    """
    issuer = rt.settings.issuers.get(issuer_name or "")
    if group is not None and (issuer is None or issuer.groups_claim is None):
        raise UnknownGroupIssuer(name=issuer_name)
    view = await lock_team(session, caller, team_id)
    view.team.issuer = issuer.url if issuer is not None and group is not None else None
    view.team.group_value = group
    audit.add_entry(
        session,
        "team.group_changed",
        at=rt.clock.now(),
        actor_id=caller.user_id,
        target=team_id,
        detail=None if group is None else f"{issuer_name}: {group}",
    )
    await session.flush()
    return view
