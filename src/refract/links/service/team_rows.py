"""Rows of owners for the members of teams, derived from `LinkTeam` and `TeamMember`.

Teams are locked before links, by every change of either, so that a member who is removed while a
link gets a team keeps no row.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, literal, select, true

from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.core.db.types import UtcDateTime
from refract.identity.access import AccessRight
from refract.links.access import LinkCaller
from refract.links.models import COPIED_COLUMNS, Link, LinkOwner, LinkTeam
from refract.links.queries.cards import OwnerTeam
from refract.links.service.locked_link import LockedLink, lock_link
from refract.teams.models import Team, TeamMember
from refract.teams.service import lock_teams

_KEPT_COLUMNS = ("link_id", "user_id", "created_at", "through_team", *COPIED_COLUMNS)


async def lock_link_and_teams(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    now: datetime,
    *,
    right: AccessRight,
    team_id: int | None = None,
) -> LockedLink:
    """Lock a link for a change of its owners, after the teams that own it and another one."""
    locked_teams = await lock_owning_teams(session, [link_id], () if team_id is None else [team_id])
    locked = await lock_link(session, caller, link_id, now, right=right)
    await lock_owning_teams(session, [link_id], locked=locked_teams)
    return locked


async def lock_owning_teams(
    session: WriteSession,
    link_ids: Collection[int],
    others: Collection[int] = (),
    *,
    locked: Collection[int] = (),
) -> set[int]:
    """Lock the teams that own links, and `others`, apart from those that are `locked` already.

    Call it before the links are locked, and again afterwards: only then no further team can become
    an owner. The few that did in between are locked out of order; the database ends a deadlock, and
    the request is repeated.
    """
    owning = select(LinkTeam.team_id).where(LinkTeam.link_id.in_(sorted(link_ids))).distinct()
    team_ids = {*await session.scalars(owning), *others} - set(locked)
    await lock_teams(session, team_ids)
    return team_ids


async def add_rows_of_links(
    session: WriteSession, link_ids: Collection[int], now: datetime
) -> None:
    """Add the missing rows of members to links."""
    for batch in iter_batches(sorted(link_ids)):
        await _add_rows(session, LinkTeam.link_id.in_(batch), now)


async def delete_rows_of_link(session: WriteSession, link_id: int) -> None:
    """Delete the rows of users who are in no team of the link any more."""
    await _delete_rows(session, LinkOwner.link_id == link_id)


async def update_rows_of_members(
    session: WriteSession, team_id: int, user_ids: Collection[int], now: datetime
) -> None:
    """Add or delete the rows of users who have joined or left a team, for all its links."""
    joined = and_(LinkTeam.team_id == team_id, TeamMember.user_id.in_(user_ids))
    await _add_rows(session, joined, now)
    await _delete_rows(session, LinkOwner.user_id.in_(user_ids))


async def _add_rows(session: WriteSession, scope: ColumnElement[bool], now: datetime) -> None:
    own = and_(LinkOwner.link_id == LinkTeam.link_id, LinkOwner.user_id == TeamMember.user_id)
    missing = (
        select(
            LinkTeam.link_id,
            TeamMember.user_id,
            literal(now, UtcDateTime),
            true(),
            *(getattr(Link, name) for name in COPIED_COLUMNS),
        )
        .join(TeamMember, TeamMember.team_id == LinkTeam.team_id)
        .join(Link, Link.id == LinkTeam.link_id)
        .outerjoin(LinkOwner, own)
        .where(LinkOwner.link_id.is_(None), scope)
        .distinct()  # a user may be in two teams that own a link
    )
    await session.execute(insert(LinkOwner).from_select(list(_KEPT_COLUMNS), missing))


async def _delete_rows(session: WriteSession, scope: ColumnElement[bool]) -> None:
    still = (
        select(LinkTeam.link_id)
        .join(TeamMember, TeamMember.team_id == LinkTeam.team_id)
        .where(LinkTeam.link_id == LinkOwner.link_id, TeamMember.user_id == LinkOwner.user_id)
    )
    rows = delete(LinkOwner).where(
        scope, LinkOwner.through_team.is_(true()), ~still.correlate(LinkOwner).exists()
    )
    await session.execute(rows.execution_options(synchronize_session=False))


# The rows of a new link that a team owns.


def build_team_row(link: Link, team: Team, created_by: int) -> dict[str, Any]:
    return {
        "link_id": link.id,
        "team_id": team.id,
        "primary_link_id": link.id,
        "added_by": created_by,
        "created_at": link.created_at,
    }


def build_owner_team(team: Team, created_by: int, at: datetime) -> OwnerTeam:
    return OwnerTeam(team.id, team.slug, team.name, primary=True, added_at=at, added_by=created_by)
