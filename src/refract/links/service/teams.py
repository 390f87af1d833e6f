"""Teams as owners of links. Members have the rights of co-owners, without an invitation.

The managers of a team that is the primary owner have the rights of one.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, func, select, update

from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.identity.access import AccessRight
from refract.links.access import LinkCaller
from refract.links.enums import LinkState
from refract.links.errors import OwnerExists, OwnerNotFound, PrimaryOwnerProtected
from refract.links.history import LinkChangeAction
from refract.links.models import Link, LinkOwner, LinkTeam
from refract.links.queries.links import view_link
from refract.links.service import team_rows
from refract.links.service.copies import copy_primary_owners
from refract.links.service.locked_link import LockedLink
from refract.links.service.people import record_group_changes
from refract.teams.errors import TeamOwnsLinks
from refract.teams.hooks import TeamHook
from refract.teams.models import TeamMember
from refract.teams.queries import TeamCaller, view_team_by_slug


async def add_team(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    slug: str,
    now: datetime,
    *,
    primary: bool = False,
) -> LockedLink:
    """Make a team of the caller's an owner of a link, or with `primary` its primary owner.

    The previous primary owner stays as co-owner; as a member, they keep the link by the team.
    """
    right = AccessRight.TRANSFER if primary else AccessRight.MANAGE
    await view_link(session, caller, link_id, right)  # before anything is said about the team
    team = (
        await view_team_by_slug(session, TeamCaller(caller.user_id, caller.is_admin), slug)
    ).team
    locked = await team_rows.lock_link_and_teams(
        session, caller, link_id, now, right=right, team_id=team.id
    )
    locked.require_not_deleted(Phrase("transferred") if primary else Phrase("given an owner"))
    row = await session.get(LinkTeam, (link_id, team.id))
    if row is not None and (row.is_primary or not primary):
        raise OwnerExists
    if row is None:
        row = LinkTeam(link_id=link_id, team_id=team.id, added_by=caller.user_id, created_at=now)
        session.add(row)
        await session.flush()
    if primary:
        await _set_primary_team(session, row)
        await session.refresh(locked.link, ["on_hold"])  # depends on the primary owner
    await team_rows.add_rows_of_links(session, [link_id], now)
    await _record_members(session, team.id)
    action = LinkChangeAction.TRANSFERRED if primary else LinkChangeAction.OWNER_ADDED
    await locked.record_version(
        action, {"teams": {"primary" if primary else "added": str(team.id)}}
    )
    return locked


async def remove_team(
    session: WriteSession, caller: LinkCaller, link_id: int, team_id: int, now: datetime
) -> LockedLink:
    """Remove a team from the owners of a link. Its members lose their rights immediately."""
    locked = await team_rows.lock_link_and_teams(
        session, caller, link_id, now, right=AccessRight.MANAGE
    )
    row = await session.get(LinkTeam, (link_id, team_id))
    if row is None:
        raise OwnerNotFound
    if row.is_primary:
        raise PrimaryOwnerProtected
    await session.delete(row)
    await session.flush()
    await team_rows.delete_rows_of_link(session, link_id)
    await _record_members(session, team_id)
    await locked.record_version(
        LinkChangeAction.OWNER_REMOVED, {"teams": {"removed": str(team_id)}}
    )
    return locked


async def _set_primary_team(session: WriteSession, row: LinkTeam) -> None:
    """Move the primary mark to a team. The old one is cleared first: there is only one."""
    link_id = row.link_id
    members = select(TeamMember.user_id).where(TeamMember.team_id == row.team_id)
    previous = update(LinkOwner).where(LinkOwner.primary_link_id == link_id)
    for change in (
        previous.where(LinkOwner.user_id.in_(members)).values(through_team=True),
        previous.values(primary_link_id=None),
        update(LinkTeam).where(LinkTeam.link_id == link_id).values(primary_link_id=None),
    ):
        await session.execute(change.execution_options(synchronize_session=False))
    await session.refresh(row)
    row.primary_link_id = link_id
    await session.flush()
    await copy_primary_owners(session, [link_id])


async def _record_members(session: WriteSession, team_id: int) -> None:
    members = select(TeamMember.user_id).where(TeamMember.team_id == team_id)
    await record_group_changes(session, list(await session.scalars(members)))


async def update_members(
    session: WriteSession, team_id: int, user_ids: Collection[int], now: datetime
) -> None:
    """Give or take the links of a team, after these users have joined or left it."""
    await team_rows.update_rows_of_members(session, team_id, user_ids, now)
    await record_group_changes(session, user_ids)


async def release_team(session: WriteSession, team_id: int) -> None:
    """Remove a team from all links. Raises `TeamOwnsLinks` if one would have no primary owner.

    Links in the trash do not count: administrators can still restore them.
    """
    owned = (
        select(func.count())
        .select_from(LinkTeam)
        .join(Link, Link.id == LinkTeam.primary_link_id)
        .where(LinkTeam.team_id == team_id, Link.status != LinkState.DELETED)
    )
    if count := await session.scalar(owned):
        raise TeamOwnsLinks(count=count)
    await session.execute(
        delete(LinkTeam)
        .where(LinkTeam.team_id == team_id)
        .execution_options(synchronize_session=False)
    )


TEAM_HOOK = TeamHook(update_members, release_team)
