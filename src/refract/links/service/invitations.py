"""Invitations to own a link. Only administrators make someone an owner without asking."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select

from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.identity.models import User, UserStatus
from refract.identity.users import get_user_by_email
from refract.links.access import LinkCaller
from refract.links.enums import InvitedRole
from refract.links.errors import (
    InvitationNotFound,
    LinkNotFound,
    NotOwner,
    OwnerExists,
    PrimaryOwnerRequired,
    TooManyInvitations,
)
from refract.links.models import LinkInvitation, LinkOwner
from refract.links.service.locked_link import LockedLink, lock_link
from refract.links.service.people import make_owner, make_primary_owner
from refract.links.service.team_rows import lock_link_and_teams

INVITATION_LIFETIME = timedelta(days=14)
MAX_OPEN_INVITATIONS = 20
"""Invitations of one link that can be open at a time."""

_RIGHT_BY_ROLE = {InvitedRole.OWNER: AccessRight.MANAGE, InvitedRole.PRIMARY: AccessRight.TRANSFER}


async def invite_owner(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    email: str,
    role: InvitedRole,
    now: datetime,
) -> LockedLink | LinkInvitation:
    """Invite someone to own a link. Inviting them again renews the invitation.

    An administrator who does not own the link assigns it directly, and the changed link is
    returned.
    """
    locked = await lock_link_and_teams(session, caller, link_id, now, right=_RIGHT_BY_ROLE[role])
    locked.require_not_deleted(
        Phrase("given an owner") if role is InvitedRole.OWNER else Phrase("transferred")
    )
    person = await get_user_by_email(session, email)
    owner = await session.get(LinkOwner, (link_id, person.id))
    is_owner = owner is not None and not owner.through_team
    if owner is not None and (owner.is_primary or (is_owner and role is InvitedRole.OWNER)):
        raise OwnerExists
    if locked.access.as_admin:
        await _assign_role(locked, person.id, role, added_by=caller.user_id)
        return locked
    invitation = await _get_or_create_invitation(session, caller, link_id, person, now)
    invitation.role, invitation.inviter_id = role.value, caller.user_id
    invitation.created_at, invitation.expires_at = now, now + INVITATION_LIFETIME
    audit.add_entry(
        session,
        "link.owner_invited",
        at=now,
        actor_id=caller.user_id,
        target=link_id,
        detail=f"{role} {person.id}",
    )
    await session.flush()
    return invitation


async def _get_or_create_invitation(
    session: WriteSession, caller: LinkCaller, link_id: int, person: User, now: datetime
) -> LinkInvitation:
    """Return a person's open invitation, or a new one. The link is locked, so there is only one."""
    found = await session.scalar(
        select(LinkInvitation).where(
            LinkInvitation.link_id == link_id, LinkInvitation.invitee_id == person.id
        )
    )
    if found is not None:
        return found
    still_open = (LinkInvitation.link_id == link_id, LinkInvitation.expires_at > now)
    if (await session.scalar(select(func.count()).where(*still_open)) or 0) >= MAX_OPEN_INVITATIONS:
        raise TooManyInvitations(limit=MAX_OPEN_INVITATIONS)
    made = LinkInvitation(
        id=session.ids.next_id(), link_id=link_id, inviter_id=caller.user_id, invitee_id=person.id
    )
    session.add(made)
    return made


async def accept_invitation(
    session: WriteSession, user_id: int, invitation_id: int, now: datetime
) -> LockedLink:
    """Accept an invitation. It is only valid while its sender may still send it."""
    invitation = await _lock_invitation(session, user_id, invitation_id, now)
    role = InvitedRole(invitation.role)
    inviter = await session.get(User, invitation.inviter_id)
    if inviter is None or inviter.status != UserStatus.ACTIVE:
        raise InvitationNotFound
    try:
        locked = await lock_link_and_teams(
            session, LinkCaller(inviter.id), invitation.link_id, now, right=_RIGHT_BY_ROLE[role]
        )
    except (LinkNotFound, NotOwner, PrimaryOwnerRequired) as exc:
        raise InvitationNotFound from exc
    locked.require_not_deleted(Phrase("accepted"))
    locked.caller = LinkCaller(user_id)  # they make the change, by the rights of the sender
    await session.delete(invitation)
    await _assign_role(locked, user_id, role, added_by=inviter.id)
    return locked


async def decline_invitation(
    session: WriteSession, user_id: int, invitation_id: int, now: datetime
) -> None:
    await session.delete(await _lock_invitation(session, user_id, invitation_id, now))
    await session.flush()


async def withdraw_invitation(
    session: WriteSession, caller: LinkCaller, link_id: int, invitation_id: int, now: datetime
) -> None:
    """Withdraw an invitation. Any owner of the link may, not only its sender."""
    locked = await lock_link(session, caller, link_id, now, right=AccessRight.MANAGE)
    found = await session.get(LinkInvitation, invitation_id)
    if found is None or found.link_id != link_id:
        raise InvitationNotFound
    await session.delete(found)
    if locked.access.as_admin:
        audit.add_entry(
            session, "link.invitation_withdrawn", at=now, actor_id=caller.user_id, target=link_id
        )
    await session.flush()


async def purge_invitations(session: WriteSession, now: datetime, limit: int = 500) -> int:
    """Delete a batch of expired invitations; return how many there were."""
    old = (
        select(LinkInvitation.id)
        .where(LinkInvitation.expires_at <= now)
        .order_by(LinkInvitation.expires_at)
        .limit(limit)
    )
    ids: Sequence[int] = list(await session.scalars(old))
    if ids:
        await session.execute(delete(LinkInvitation).where(LinkInvitation.id.in_(ids)))
    return len(ids)


async def erase_invitations(session: WriteSession, user_id: int) -> None:
    """Delete the invitations that a person received or sent."""
    theirs = or_(LinkInvitation.invitee_id == user_id, LinkInvitation.inviter_id == user_id)
    await session.execute(
        delete(LinkInvitation).where(theirs).execution_options(synchronize_session=False)
    )


async def _lock_invitation(
    session: WriteSession, user_id: int, invitation_id: int, now: datetime
) -> LinkInvitation:
    """Return an open invitation of this person, locked, so that it is answered once."""
    wanted = select(LinkInvitation).where(
        LinkInvitation.id == invitation_id, LinkInvitation.invitee_id == user_id
    )
    found = await session.scalar(wanted.with_for_update())
    if found is None or found.expires_at <= now:
        raise InvitationNotFound
    return found


async def _assign_role(
    locked: LockedLink, user_id: int, role: InvitedRole, *, added_by: int
) -> None:
    await (make_owner if role is InvitedRole.OWNER else make_primary_owner)(
        locked, user_id, added_by=added_by
    )
