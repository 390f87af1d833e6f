"""Changes of teams and their members. Every change leaves an audit entry."""

import re
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError

from refract.core.db.bulk import get_rowcount
from refract.core.db.session import WriteSession
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.core.text import fold_text, strip_accents
from refract.identity import audit
from refract.identity.models import User
from refract.identity.users import get_user_by_email
from refract.teams import accounts
from refract.teams.errors import (
    InvalidTeamSlug,
    LastTeamManager,
    TeamMemberExists,
    TeamMemberNotFound,
    TeamNotFound,
    TeamSlugTaken,
    TooManyTeamMembers,
)
from refract.teams.hooks import TeamHook
from refract.teams.models import Team, TeamMember, TeamRole
from refract.teams.queries import TeamCaller, TeamView, is_person, view_team
from refract.teams.schemas import MAX_SLUG, TeamCreate, TeamMemberCreate, TeamPatch

MAX_MEMBERS = 500
"""Members of one team. Each has a row for every link of the team."""
_SLUG = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{MAX_SLUG - 1}}}")


async def create_team(
    session: WriteSession, caller: TeamCaller, new: TeamCreate, now: datetime
) -> TeamView:
    """Create a team with the caller as its manager. Raises `TeamSlugTaken`."""
    team_id = session.ids.next_id()
    slug = _check_slug(new.slug) if new.slug else _derive_slug(new.name, team_id)
    team = Team(id=team_id, slug=slug, name=new.name, created_at=now)
    async with _claim_slug(session, slug):
        session.add(team)
    session.add(build_member(team_id, caller.user_id, TeamRole.MANAGER, caller.user_id, now))
    _audit(session, "team.created", team, caller, now, team.slug)
    await session.flush()
    return await view_team(session, caller, team_id)


async def change_team(
    session: WriteSession, caller: TeamCaller, team_id: int, changes: TeamPatch, now: datetime
) -> TeamView:
    """Rename a team, or change its handle."""
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    team = view.team
    name = changes.name or team.name
    slug = _check_slug(changes.slug) if changes.slug else team.slug
    if (name, slug) != (team.name, team.slug):
        async with _claim_slug(session, slug):
            team.name, team.slug = name, slug
        if account := await accounts.find_account(session, team_id):
            account.display_name = name
        _audit(session, "team.changed", team, caller, now, slug)
        await session.flush()
    return view


async def delete_team(
    session: WriteSession,
    caller: TeamCaller,
    team_id: int,
    hooks: Sequence[TeamHook],
    rt: Runtime,
) -> Team:
    """Delete a team. Raises `TeamOwnsLinks` while links would be left without an owner."""
    now = rt.clock.now()
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    for hook in hooks:
        await hook.release_team(session, team_id)
    members = list(
        await session.scalars(select(TeamMember.user_id).where(TeamMember.team_id == team_id))
    )
    await session.execute(delete(TeamMember).where(TeamMember.team_id == team_id))
    for hook in hooks:
        await hook.update_members(session, team_id, members, now)
    await accounts.close_account(session, team_id)
    await session.delete(view.team)
    _audit(session, "team.deleted", view.team, caller, now, view.team.slug)
    await audit.update_revocation_log(session, rt)
    await session.flush()
    return view.team


async def add_member(
    session: WriteSession,
    caller: TeamCaller,
    team_id: int,
    new: TeamMemberCreate,
    hooks: Sequence[TeamHook],
    now: datetime,
) -> TeamMember:
    """Add a user to a team. They have its rights when the transaction is committed."""
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    person = await get_user_by_email(session, new.email)
    if await session.get(TeamMember, (team_id, person.id)) is not None:
        raise TeamMemberExists
    if view.members >= MAX_MEMBERS:
        raise TooManyTeamMembers(limit=MAX_MEMBERS)
    member = build_member(team_id, person.id, new.role, caller.user_id, now)
    session.add(member)
    await session.flush()
    for hook in hooks:
        await hook.update_members(session, team_id, [person.id], now)
    _audit(session, "team.member_added", view.team, caller, now, f"{new.role} {person.id}")
    return member


async def change_role(
    session: WriteSession,
    caller: TeamCaller,
    team_id: int,
    user_id: int,
    role: TeamRole,
    rt: Runtime,
) -> TeamMember:
    """Make a member a manager, or the other way round. Raises `LastTeamManager`."""
    now = rt.clock.now()
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    member = await _get_member(session, team_id, user_id)
    if member.role == role:
        return member
    if role is TeamRole.MEMBER:
        await _require_other_manager(session, team_id, user_id)
    member.role = role.value
    _audit(session, "team.role_changed", view.team, caller, now, f"{role} {user_id}")
    await audit.update_revocation_log(session, rt)
    await session.flush()
    return member


async def remove_member(
    session: WriteSession,
    caller: TeamCaller,
    team_id: int,
    user_id: int,
    hooks: Sequence[TeamHook],
    rt: Runtime,
) -> Team:
    """Remove a member, or leave as one. Raises `LastTeamManager`.

    They lose the rights of the team when the transaction is committed.
    """
    now = rt.clock.now()
    view = await lock_team(session, caller, team_id)
    if user_id != caller.user_id:
        view.require_manager()
    member = await _get_member(session, team_id, user_id)
    if member.role == TeamRole.MANAGER:
        await _require_other_manager(session, team_id, user_id)
    await session.delete(member)
    await session.flush()
    for hook in hooks:
        await hook.update_members(session, team_id, [user_id], now)
    action = "team.left" if user_id == caller.user_id else "team.member_removed"
    _audit(session, action, view.team, caller, now, str(user_id))
    await audit.update_revocation_log(session, rt)
    return view.team


async def remove_from_all_teams(session: WriteSession, user_id: int) -> None:
    """Remove a deleted account from its teams. Its links are handed over afterwards.

    Where it was the only manager, the earliest other member becomes one.
    """
    mine = select(TeamMember.team_id).where(TeamMember.user_id == user_id)
    team_ids = list(await session.scalars(mine.order_by(TeamMember.team_id)))
    for team_id in team_ids:
        await _lock_row(session, team_id)
        await session.execute(
            delete(TeamMember).where(TeamMember.team_id == team_id, TeamMember.user_id == user_id)
        )
        rest = select(TeamMember).join(User, User.id == TeamMember.user_id)
        rest = rest.where(TeamMember.team_id == team_id, is_person())
        members = list(
            await session.scalars(rest.order_by(TeamMember.created_at, TeamMember.user_id))
        )
        if members and all(member.role != TeamRole.MANAGER for member in members):
            members[0].role = TeamRole.MANAGER.value
    await session.flush()


async def remove_restored_members(
    session: WriteSession,
    team_id: int,
    user_ids: Collection[int] | None,
    hooks: Sequence[TeamHook],
    now: datetime,
) -> int:
    """Remove members that a restored backup brought back, with None all. Return their number."""
    await lock_teams(session, [team_id])
    query = select(TeamMember.user_id).where(TeamMember.team_id == team_id)
    members = list(
        await session.scalars(
            query if user_ids is None else query.where(TeamMember.user_id.in_(user_ids))
        )
    )
    await session.execute(
        delete(TeamMember).where(TeamMember.team_id == team_id, TeamMember.user_id.in_(members))
    )
    for hook in hooks:
        await hook.update_members(session, team_id, members, now)
    return len(members)


async def demote_restored_managers(
    session: WriteSession, team_id: int, user_ids: Collection[int]
) -> int:
    """Make members of managers whose role a restored backup revived. Return their number."""
    await lock_teams(session, [team_id])
    mine = (TeamMember.team_id == team_id, TeamMember.user_id.in_(user_ids))
    managers = update(TeamMember).where(*mine, TeamMember.role == TeamRole.MANAGER)
    return get_rowcount(await session.execute(managers.values(role=TeamRole.MEMBER.value)))


async def lock_team(session: WriteSession, caller: TeamCaller, team_id: int) -> TeamView:
    """Lock a team for a change of it, its members or its links. Raises `TeamNotFound`."""
    await _lock_row(session, team_id)
    return await view_team(session, caller, team_id)


async def lock_teams(session: WriteSession, team_ids: Collection[int]) -> None:
    """Lock teams in the order of their ids. Those that are gone are left out."""
    if team_ids:
        query = select(Team.id).where(Team.id.in_(sorted(team_ids))).order_by(Team.id)
        await session.execute(query.with_for_update())


async def lock_own_teams(
    session: WriteSession, user_id: int, slugs: Collection[str]
) -> dict[str, Team]:
    """Lock teams that a user belongs to, and return them by handle. Others are left out."""
    if not slugs:
        return {}
    own = select(TeamMember.team_id).where(TeamMember.user_id == user_id)
    found = select(Team.id).where(Team.slug.in_(sorted(slugs)), Team.id.in_(own))
    await lock_teams(session, list(await session.scalars(found)))
    # Read again, because someone may have left or renamed a team before it was locked.
    locked = select(Team).where(Team.slug.in_(sorted(slugs)), Team.id.in_(own)).order_by(Team.id)
    teams = await session.scalars(
        locked.with_for_update().execution_options(populate_existing=True)
    )
    return {team.slug: team for team in teams}


async def _lock_row(session: WriteSession, team_id: int) -> None:
    query = select(Team).where(Team.id == team_id).with_for_update()
    if await session.scalar(query.execution_options(populate_existing=True)) is None:
        raise TeamNotFound


@asynccontextmanager
async def _claim_slug(session: WriteSession, slug: str) -> AsyncIterator[None]:
    """Write a team. The unique key decides about its handle; checking first would race."""
    try:
        async with session.begin_nested():
            yield
            await session.flush()
    except IntegrityError as exc:
        raise TeamSlugTaken(slug=slug) from exc


async def _get_member(session: WriteSession, team_id: int, user_id: int) -> TeamMember:
    query = select(TeamMember).join(User, User.id == TeamMember.user_id)
    query = query.where(TeamMember.team_id == team_id, TeamMember.user_id == user_id, is_person())
    found: TeamMember | None = await session.scalar(query)
    if found is None:
        raise TeamMemberNotFound
    return found


async def _require_other_manager(session: WriteSession, team_id: int, user_id: int) -> None:
    managers = select(func.count()).where(
        TeamMember.team_id == team_id,
        TeamMember.role == TeamRole.MANAGER,
        TeamMember.user_id != user_id,
    )
    if not await session.scalar(managers):
        raise LastTeamManager


def build_member(
    team_id: int, user_id: int, role: TeamRole, added_by: int | None, now: datetime
) -> TeamMember:
    return TeamMember(
        team_id=team_id, user_id=user_id, role=role.value, added_by=added_by, created_at=now
    )


def _check_slug(slug: str) -> str:
    if _SLUG.fullmatch(slug) is None:
        raise InvalidTeamSlug
    return slug


def _derive_slug(name: str, team_id: int) -> str:
    """Return a handle from a name; from the id, if the name has no Latin letters or digits."""
    words = re.sub(r"[^a-z0-9]+", "-", strip_accents(fold_text(name))).strip("-")
    return words[:MAX_SLUG].rstrip("-") or f"team-{encode_base62(team_id).lower()}"


def _audit(
    session: WriteSession, action: str, team: Team, caller: TeamCaller, now: datetime, detail: str
) -> None:
    audit.add_entry(session, action, at=now, actor_id=caller.user_id, target=team.id, detail=detail)
