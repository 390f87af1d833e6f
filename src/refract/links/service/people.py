"""Owners and shares. A link has exactly one primary owner, who changes only by a transfer.

Here owners are users. A user whose row is of a team's member (`through_team`) is none of them.
"""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, update

from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.identity.access import AccessRight
from refract.identity.models import User
from refract.identity.users import get_user_by_email
from refract.links.access import LinkCaller
from refract.links.errors import (
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    ShareExists,
    ShareNotFound,
)
from refract.links.history import LinkChangeAction
from refract.links.models import (
    USER_LINKS,
    LinkGroup,
    LinkInvitation,
    LinkOwner,
    LinkShare,
    LinkTeam,
)
from refract.links.service.copies import copy_primary_owners
from refract.links.service.locked_link import LockedLink, lock_link
from refract.links.service.team_rows import add_rows_of_links, lock_link_and_teams


async def add_owner(
    session: WriteSession, caller: LinkCaller, link_id: int, email: str, now: datetime
) -> LockedLink:
    """Add a co-owner without an invitation: for administrators and the command line."""
    locked = await lock_link_and_teams(session, caller, link_id, now, right=AccessRight.MANAGE)
    locked.require_not_deleted(Phrase("given an owner"))
    person = await get_user_by_email(session, email)
    await make_owner(locked, person.id, added_by=caller.user_id)
    return locked


async def make_owner(locked: LockedLink, user_id: int, *, added_by: int) -> None:
    """Add an owner to a locked link. Their share and invitation are deleted."""
    session, link_id = locked.session, locked.link.id
    owner = await session.get(LinkOwner, (link_id, user_id))
    if owner is None:
        owner = LinkOwner(link_id=link_id, user_id=user_id, primary_link_id=None)
        session.add(owner)
    elif not owner.through_team:
        raise OwnerExists
    owner.added_by, owner.created_at, owner.through_team = added_by, locked.now, None
    await _remove_share_and_invitation(session, link_id, user_id)
    await record_group_changes(session, [user_id])
    await locked.record_version(LinkChangeAction.OWNER_ADDED, {"owners": {"added": str(user_id)}})


async def remove_owner(
    session: WriteSession, caller: LinkCaller, link_id: int, user_id: int, now: datetime
) -> LockedLink:
    """Remove a co-owner, or leave as one."""
    locked = await lock_link_and_teams(session, caller, link_id, now, right=AccessRight.MANAGE)
    owner = await session.get(LinkOwner, (link_id, user_id))
    if owner is None or owner.through_team:
        raise OwnerNotFound
    if owner.is_primary:
        raise PrimaryOwnerProtected
    await session.delete(owner)
    await session.flush()
    await add_rows_of_links(session, [link_id], now)  # for a member of an owning team
    await record_group_changes(session, [user_id])
    await locked.record_version(
        LinkChangeAction.OWNER_REMOVED, {"owners": {"removed": str(user_id)}}
    )
    return locked


async def transfer_link(
    session: WriteSession, caller: LinkCaller, link_id: int, email: str, now: datetime
) -> LockedLink:
    """Make someone the primary owner without an invitation. The previous one stays as co-owner."""
    locked = await lock_link_and_teams(session, caller, link_id, now, right=AccessRight.TRANSFER)
    locked.require_not_deleted(Phrase("transferred"))
    await make_primary_owner(
        locked, (await get_user_by_email(session, email)).id, added_by=caller.user_id
    )
    return locked


async def make_primary_owner(locked: LockedLink, user_id: int, *, added_by: int) -> None:
    """Make someone the primary owner of a locked link."""
    session, link_id = locked.session, locked.link.id
    mine = await session.get(LinkOwner, (link_id, user_id))
    if mine is not None and mine.is_primary:
        raise OwnerExists
    await _remove_share_and_invitation(session, link_id, user_id)
    await set_primary_owner(
        session, link_id, user_id, locked.now, added_by=added_by, known=mine is not None
    )
    await session.refresh(locked.link, ["on_hold"])  # depends on the primary owner
    await locked.record_version(LinkChangeAction.TRANSFERRED, {"owners": {"primary": str(user_id)}})


async def share_link(
    session: WriteSession, caller: LinkCaller, link_id: int, email: str, now: datetime
) -> tuple[LockedLink, User]:
    """Share a link and its analytics with a user."""
    locked = await lock_link(session, caller, link_id, now, right=AccessRight.MANAGE)
    locked.require_not_deleted(Phrase("shared"))
    person = await get_user_by_email(session, email)
    if await session.get(LinkOwner, (link_id, person.id)) is not None:
        raise OwnerExists
    if await session.get(LinkShare, (link_id, person.id)) is not None:
        raise ShareExists
    session.add(
        LinkShare(link_id=link_id, user_id=person.id, shared_by=caller.user_id, created_at=now)
    )
    await locked.record_version(LinkChangeAction.SHARED, {"shares": {"added": str(person.id)}})
    return locked, person


async def unshare_link(
    session: WriteSession, caller: LinkCaller, link_id: int, user_id: int, now: datetime
) -> LockedLink:
    """Stop sharing a link with a user, who may also leave."""
    locked = await lock_link(
        session,
        caller,
        link_id,
        now,
        right=AccessRight.VIEW if user_id == caller.user_id else AccessRight.MANAGE,
    )
    share = await session.get(LinkShare, (link_id, user_id))
    if share is None:
        raise ShareNotFound
    await session.delete(share)
    await locked.record_version(LinkChangeAction.UNSHARED, {"shares": {"removed": str(user_id)}})
    return locked


async def set_primary_owner(
    session: WriteSession,
    link_id: int,
    user_id: int,
    now: datetime,
    *,
    added_by: int | None,
    known: bool,
) -> None:
    """Move the primary mark. The old one is cleared first, because the schema allows only one."""
    for model in (LinkOwner, LinkTeam):
        await session.execute(
            update(model).where(model.link_id == link_id).values(primary_link_id=None)
        )
    if known:
        mine = update(LinkOwner).where(LinkOwner.link_id == link_id, LinkOwner.user_id == user_id)
        await session.execute(mine.values(primary_link_id=link_id, through_team=None))
    else:
        session.add(
            LinkOwner(
                link_id=link_id,
                user_id=user_id,
                primary_link_id=link_id,
                added_by=added_by,
                created_at=now,
            )
        )
        await session.flush()
        await record_group_changes(session, [user_id])
    await copy_primary_owners(session, [link_id])


async def record_group_changes(session: WriteSession, user_ids: Iterable[int]) -> None:
    """Record that these users own other links than before, apart from new ones.

    Sums over all their links are invalid from here on, until they are computed again.
    """
    groups = update(LinkGroup).where(LinkGroup.kind == USER_LINKS, LinkGroup.id.in_(user_ids))
    changed = groups.values(version=LinkGroup.version + 1)
    await session.execute(changed.execution_options(synchronize_session=False))


async def _remove_share_and_invitation(session: WriteSession, link_id: int, user_id: int) -> None:
    """Delete the share and the invitation of a person who becomes an owner."""
    for model in (LinkShare, LinkInvitation):
        person = LinkShare.user_id if model is LinkShare else LinkInvitation.invitee_id
        await session.execute(delete(model).where(model.link_id == link_id, person == user_id))
