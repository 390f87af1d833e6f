"""Teams that a user may see, and their members."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, select

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.identity.models import TEAM_ISSUER, User
from refract.teams.errors import NotTeamManager, TeamMemberNotFound, TeamNotFound
from refract.teams.models import Team, TeamMember, TeamRole
from refract.teams.schemas import TeamMemberOut, TeamOut


@dataclass(frozen=True, slots=True)
class TeamCaller:
    """A signed-in user, and whether this request has an administrator's rights."""

    user_id: int
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class TeamView:
    """A team as one user sees it. `role` is None for an administrator who is not a member."""

    team: Team
    role: TeamRole | None
    members: int
    is_admin: bool = False

    @property
    def manages(self) -> bool:
        return self.is_admin or self.role == TeamRole.MANAGER

    def require_manager(self) -> None:
        if not self.manages:
            raise NotTeamManager

    def to_schema(self) -> TeamOut:
        team = self.team
        return TeamOut(
            id=team.id,
            slug=team.slug,
            name=team.name,
            role=self.role,
            members=self.members,
            group=team.group_value,
            default_domain=team.default_domain,
            default_tags=team.default_tags or [],
            created_at=team.created_at,
        )


async def view_team(session: ReadSession, caller: TeamCaller, team_id: int) -> TeamView:
    """Return a team. Raises `TeamNotFound` for all but members and administrators."""
    return await _view_one(session, caller, _select_views(caller).where(Team.id == team_id))


async def view_team_by_slug(session: ReadSession, caller: TeamCaller, slug: str) -> TeamView:
    """Return a team by its handle, like `view_team`."""
    return await _view_one(session, caller, _select_views(caller).where(Team.slug == slug))


async def load_teams_page(
    session: ReadSession,
    cursors: CursorCodec,
    caller: TeamCaller,
    *,
    limit: int,
    cursor: str | None,
    everyone: bool = False,
) -> Page[TeamView]:
    """Return the caller's teams by handle; with `everyone` all teams, for administrators."""
    bound = ["teams", caller.user_id, everyone]
    query = _select_views(caller)
    if not everyone:
        query = query.where(TeamMember.user_id.is_not(None))
    if cursor:
        query = query.where(Team.slug > cursors.decode(bound, cursor)[0])
    rows = await session.execute(query.order_by(Team.slug).limit(limit + 1))
    views = [_build_view(caller, *row) for row in rows]
    return cursors.build_page(bound, views, limit, lambda view: [view.team.slug])


async def list_own_teams(session: ReadSession, user_id: int) -> Sequence[Team]:
    """Return all teams of a user by name, for menus."""
    found = [row[0] for row in await session.fetch(_OWN_TEAMS, user_id=user_id)]
    return sorted(found, key=lambda team: (team.name.casefold(), team.slug))


_OWN_TEAMS = PreparedSelect(
    lambda: (
        select(Team)
        .join(TeamMember, TeamMember.team_id == Team.id)
        .where(TeamMember.user_id == bindparam("user_id"))
    )
)


async def list_members(session: ReadSession, team_id: int) -> list[TeamMemberOut]:
    """Return the members of a team: managers first, then by name."""
    found = await session.execute(_select_members(team_id))
    return sorted((_build_member(*row) for row in found), key=_rank_member)


async def get_member(session: ReadSession, team_id: int, user_id: int) -> TeamMemberOut:
    """Return a member. Raises `TeamMemberNotFound`."""
    query = _select_members(team_id).where(TeamMember.user_id == user_id)
    row = (await session.execute(query)).one_or_none()
    if row is None:
        raise TeamMemberNotFound
    return _build_member(*row)


def _select_members(team_id: int) -> Select[TeamMember, User]:
    query = select(TeamMember, User).join(User, User.id == TeamMember.user_id)
    return query.where(TeamMember.team_id == team_id, is_person())


def is_person() -> ColumnElement[bool]:
    """Return the condition for users who are people, and not the account of a team's keys."""
    return User.issuer != TEAM_ISSUER


def _build_member(member: TeamMember, user: User) -> TeamMemberOut:
    return TeamMemberOut(
        user_id=user.id,
        name=user.public_name,
        email=user.email,
        role=TeamRole(member.role),
        added_at=member.created_at,
    )


def _rank_member(row: TeamMemberOut) -> tuple[bool, str, int]:
    return row.role is not TeamRole.MANAGER, row.name.casefold(), row.user_id


async def find_role(session: ReadSession, team_id: int, user_id: int) -> TeamRole | None:
    """Return the role of a user in a team, or None if they are no member."""
    query = select(TeamMember.role)
    mine = query.where(TeamMember.team_id == team_id, TeamMember.user_id == user_id)
    role: str | None = await session.scalar(mine)
    return TeamRole(role) if role is not None else None


async def find_team_id(session: ReadSession, slug: str) -> int | None:
    """Return the id of the team with a handle."""
    return await session.scalar(select(Team.id).where(Team.slug == slug))


def _select_views(caller: TeamCaller) -> Select[Team, str | None, int]:
    """Select the teams with the caller's role and the number of members."""
    mine = and_(TeamMember.team_id == Team.id, TeamMember.user_id == caller.user_id)
    others = TeamMember.__table__.alias("others")
    number = select(func.count()).select_from(others).join(User, User.id == others.c.user_id)
    number = number.where(others.c.team_id == Team.id, is_person())
    query = select(Team, TeamMember.role, number.correlate(Team).scalar_subquery())
    return query.outerjoin(TeamMember, mine)


async def _view_one(
    session: ReadSession, caller: TeamCaller, query: Select[Team, str | None, int]
) -> TeamView:
    row = (await session.execute(query)).one_or_none()
    if row is None or (row[1] is None and not caller.is_admin):
        raise TeamNotFound
    return _build_view(caller, *row)


def _build_view(caller: TeamCaller, team: Team, role: str | None, members: int) -> TeamView:
    return TeamView(
        team, TeamRole(role) if role is not None else None, members, is_admin=caller.is_admin
    )
