"""Handing over the links of a person whose account is deleted."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, true, update

from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.identity.access import AccessRelation
from refract.identity.models import User
from refract.links import feed, history
from refract.links.access import LinkAccess, LinkCaller, is_direct_owner
from refract.links.changes import TargetChange
from refract.links.enums import LinkState
from refract.links.history import LinkChangeAction
from refract.links.models import Link, LinkChange, LinkOwner, LinkShare, LinkTeam
from refract.links.queries.cards import load_tag_names
from refract.links.service.copies import copy_primary_owners
from refract.links.service.lifecycle import mark_deleted
from refract.links.service.locked_link import LockedLink
from refract.links.service.people import record_group_changes
from refract.links.service.team_rows import add_rows_of_links
from refract.names.enums import NameTarget
from refract.names.queries import list_names
from refract.tags.service import adjust_usage
from refract.teams.models import TeamMember

_BATCH_SIZE = 200


async def hand_over_links(
    session: WriteSession,
    user: User,
    now: datetime,
    *,
    heir: User | None = None,
    heir_team: int | None = None,
) -> None:
    """Remove a person, who is in no team any more, from all links.

    Co-owned links pass to a team that owns them or else to the earliest co-owner, the others to the
    heir, who may be a locked team, or they are deleted.
    """
    await session.execute(
        delete(LinkOwner).where(LinkOwner.user_id == user.id, LinkOwner.through_team.is_(true()))
    )
    mine = select(LinkOwner.link_id).where(LinkOwner.user_id == user.id)
    owned = list(await session.scalars(mine.order_by(LinkOwner.link_id)))
    for batch in iter_batches(owned, _BATCH_SIZE):
        locked_links = await _lock_links(session, user, batch, now)
        owners = await _load_owners(session, batch)
        teams = await _load_earliest_teams(session, batch)
        alone = [link_id for link_id in batch if len(owners[link_id]) == 1 and link_id not in teams]
        if heir_team is not None:
            teams |= await _add_heir_team(session, alone, heir_team, user, now)
        passing = batch if heir or heir_team else sorted(set(batch) - set(alone))
        await _clear_primary_owner(session, user, passing, alone, heir)
        live = [locked for locked in locked_links if locked.state != LinkState.DELETED]
        changes = [
            _hand_over_link(locked, user, owners[locked.link.id], teams.get(locked.link.id), heir)
            for locked in locked_links
        ]
        await session.flush()
        await copy_primary_owners(session, batch)
        if heir_team is not None:
            await add_rows_of_links(session, alone, now)
        fallen = Counter(
            tag_id for locked in live if locked.state == LinkState.DELETED for tag_id in locked.tags
        )
        await adjust_usage(session, {tag_id: -count for tag_id, count in fallen.items()}, now)
        await feed.publish_changes(session, [change for change in changes if change is not None])
    members = select(TeamMember.user_id).where(TeamMember.team_id == heir_team)
    heirs = [heir.id] if heir is not None else list(await session.scalars(members))
    await record_group_changes(session, [user.id, *heirs])
    await session.execute(delete(LinkShare).where(LinkShare.user_id == user.id))


async def _load_owners(
    session: WriteSession, link_ids: Sequence[int]
) -> dict[int, list[LinkOwner]]:
    """Return the owners of each link who are more than members of a team."""
    owners: dict[int, list[LinkOwner]] = {link_id: [] for link_id in link_ids}
    rows = select(LinkOwner).where(LinkOwner.link_id.in_(link_ids), is_direct_owner())
    for row in await session.scalars(rows):
        owners[row.link_id].append(row)
    return owners


async def _clear_primary_owner(
    session: WriteSession,
    user: User,
    passing: Sequence[int],
    inherited: Sequence[int],
    heir: User | None,
) -> None:
    """Clear the primary owner before another is set, because the schema allows only one.

    Also delete the heir's shares, which an owner does not need.
    """
    off = (
        update(LinkOwner)
        .where(LinkOwner.user_id == user.id, LinkOwner.link_id.in_(passing))
        .values(primary_link_id=None)
    )
    await session.execute(off.execution_options(synchronize_session=False))
    if heir is not None:
        await session.execute(
            delete(LinkShare).where(LinkShare.link_id.in_(inherited), LinkShare.user_id == heir.id)
        )


async def _add_heir_team(
    session: WriteSession, link_ids: Sequence[int], team_id: int, user: User, now: datetime
) -> dict[int, LinkTeam]:
    """Make a team an owner of links, before it becomes the primary one."""
    added = {
        link_id: LinkTeam(link_id=link_id, team_id=team_id, added_by=user.id, created_at=now)
        for link_id in link_ids
    }
    session.add_all(added.values())
    await session.flush()
    return added


async def _load_earliest_teams(
    session: WriteSession, link_ids: Sequence[int]
) -> dict[int, LinkTeam]:
    """Return the team that has owned each link longest, if any."""
    rows = select(LinkTeam).where(LinkTeam.link_id.in_(link_ids))
    latest_first = rows.order_by(LinkTeam.created_at.desc(), LinkTeam.team_id.desc())
    return {row.link_id: row for row in await session.scalars(latest_first)}


async def _lock_links(
    session: WriteSession, user: User, link_ids: Sequence[int], now: datetime
) -> list[LockedLink]:
    query = (
        select(Link)
        .where(Link.id.in_(link_ids))
        .order_by(Link.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    links = list(await session.scalars(query))
    names = await list_names(session, NameTarget.LINK, link_ids)
    tags = await load_tag_names(session, link_ids)
    access = LinkAccess(AccessRelation.PRIMARY, owns=True)
    written = set(
        await session.scalars(
            select(LinkChange.link_id).where(
                LinkChange.link_id.in_(link_ids), LinkChange.version == 1
            )
        )
    )
    locked_links = []
    for link in links:
        own = names[link.id], tags[link.id]
        locked = LockedLink(
            session,
            LinkCaller(user.id),
            access,
            link,
            *own,
            now,
            history.take_snapshot(link, *own),
            tuple(names[link.id]),
        )
        if link.id not in written:
            locked.unwritten_version = history.build_first_version(link, *own, user.id)
        locked_links.append(locked)
    return locked_links


def _build_primary_owner(locked: LockedLink, heir: User, *, added_by: User) -> LinkOwner:
    return LinkOwner(
        link_id=locked.link.id,
        user_id=heir.id,
        primary_link_id=locked.link.id,
        added_by=added_by.id,
        created_at=locked.now,
    )


def _hand_over_link(
    locked: LockedLink,
    user: User,
    owners: Sequence[LinkOwner],
    team: LinkTeam | None,
    heir: User | None,
) -> TargetChange | None:
    """Hand over or delete one link.

    The loaded rows still have the primary owner that was cleared in the table.
    """
    session, link = locked.session, locked.link
    mine = next(row for row in owners if row.user_id == user.id)
    others = sorted(
        (row for row in owners if row is not mine), key=lambda row: (row.created_at, row.user_id)
    )
    if not mine.is_primary:
        session.sync_session.delete(mine)
        return locked.add_version(
            LinkChangeAction.OWNER_REMOVED, {"owners": {"removed": str(user.id)}}
        )
    if team is not None:
        team.primary_link_id = link.id
        session.sync_session.delete(mine)
        changes = {"teams": {"primary": str(team.team_id)}, "owners": {"removed": str(user.id)}}
        return locked.add_version(LinkChangeAction.TRANSFERRED, changes)
    if others:
        others[0].primary_link_id = link.id
    elif heir is not None:
        others = [_build_primary_owner(locked, heir, added_by=user)]
        session.add(others[0])
    elif locked.state != LinkState.DELETED:
        mark_deleted(locked)
        return locked.add_version(LinkChangeAction.DELETED)
    else:
        return None
    session.sync_session.delete(mine)
    return locked.add_version(
        LinkChangeAction.TRANSFERRED,
        {"owners": {"primary": str(others[0].user_id), "removed": str(user.id)}},
    )
