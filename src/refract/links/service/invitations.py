"""Invitations to own a link: nobody becomes an owner unasked, except by an administrator's word."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select

from refract.core.db import WriteSession
from refract.identity import audit
from refract.identity.access import Right
from refract.identity.models import User, UserStatus
from refract.identity.people import person_by_email
from refract.links.access import Who
from refract.links.errors import InvitationNotFound, LinkNotFound, NotYours, OwnerExists, TooManyInvitations
from refract.links.models import InvitedRole, LinkInvitation, LinkOwner
from refract.links.service.hold import Held, hold
from refract.links.service.people import make_owner, make_primary

EXPIRES_AFTER = timedelta(days=14)
MAX_PENDING = 20
"""Invitations of one link that may be open at a time."""

_RIGHTS = {InvitedRole.OWNER: Right.MANAGE, InvitedRole.PRIMARY: Right.TRANSFER}


async def offer_link(session: WriteSession, who: Who, link_id: int, email: str, role: InvitedRole, now: datetime) -> Held | LinkInvitation:
    """Invite somebody to own a link; inviting them again renews the offer.

    An administrator who does not own the link assigns it at once, which returns the changed link.
    """
    held = await hold(session, who, link_id, now, right=_RIGHTS[role])
    held.demand_not_deleted("given an owner" if role is InvitedRole.OWNER else "transferred")
    person = await person_by_email(session, email)
    owner = await session.get(LinkOwner, (link_id, person.id))
    if owner is not None and (owner.is_primary or role is InvitedRole.OWNER):
        raise OwnerExists
    if held.standing.as_admin:
        await _give(held, person.id, role, added_by=who.user_id)
        return held
    invitation = await _renewed(session, who, link_id, person, now)
    invitation.role, invitation.inviter_id = role.value, who.user_id
    invitation.created_at, invitation.expires_at = now, now + EXPIRES_AFTER
    audit.record(session, "link.owner_invited", at=now, actor_id=who.user_id, target=link_id, detail=f"{role} {person.id}")
    await session.flush()
    return invitation


async def _renewed(session: WriteSession, who: Who, link_id: int, person: User, now: datetime) -> LinkInvitation:
    """Return the open invitation of a person, or a new one. The link is locked, so there is never a second."""
    found = await session.scalar(select(LinkInvitation).where(LinkInvitation.link_id == link_id, LinkInvitation.invitee_id == person.id))
    if found is not None:
        return found
    still_open = (LinkInvitation.link_id == link_id, LinkInvitation.expires_at > now)
    if (await session.scalar(select(func.count()).where(*still_open)) or 0) >= MAX_PENDING:
        raise TooManyInvitations(most=MAX_PENDING)
    made = LinkInvitation(id=session.ids.next_id(), link_id=link_id, inviter_id=who.user_id, invitee_id=person.id)
    session.add(made)
    return made


async def accept_invitation(session: WriteSession, user_id: int, invitation_id: int, now: datetime) -> Held:
    """Take an offer. It holds only while whoever made it may still make it."""
    invitation = await _mine(session, user_id, invitation_id, now)
    role = InvitedRole(invitation.role)
    inviter = await session.get(User, invitation.inviter_id)
    if inviter is None or inviter.status != UserStatus.ACTIVE:
        raise InvitationNotFound
    try:
        held = await hold(session, Who(inviter.id), invitation.link_id, now, right=_RIGHTS[role])
    except (LinkNotFound, NotYours) as exc:
        raise InvitationNotFound from exc
    held.demand_not_deleted("accepted")
    held.who = Who(user_id)  # the change is theirs, by the rights of whoever asked them
    await session.delete(invitation)
    await _give(held, user_id, role, added_by=inviter.id)
    return held


async def decline_invitation(session: WriteSession, user_id: int, invitation_id: int, now: datetime) -> None:
    await session.delete(await _mine(session, user_id, invitation_id, now))
    await session.flush()


async def withdraw_invitation(session: WriteSession, who: Who, link_id: int, invitation_id: int, now: datetime) -> None:
    """Take an offer back: any owner of the link may, whoever made it."""
    held = await hold(session, who, link_id, now, right=Right.MANAGE)
    found = await session.get(LinkInvitation, invitation_id)
    if found is None or found.link_id != link_id:
        raise InvitationNotFound
    await session.delete(found)
    if held.standing.as_admin:
        audit.record(session, "link.invitation_withdrawn", at=now, actor_id=who.user_id, target=link_id)
    await session.flush()


async def forget_invitations(session: WriteSession, now: datetime, most: int = 500) -> int:
    """Remove a slice of the expired ones; return how many went."""
    old = select(LinkInvitation.id).where(LinkInvitation.expires_at <= now).order_by(LinkInvitation.expires_at).limit(most)
    ids: Sequence[int] = list(await session.scalars(old))
    if ids:
        await session.execute(delete(LinkInvitation).where(LinkInvitation.id.in_(ids)))
    return len(ids)


async def erase_invitations(session: WriteSession, user_id: int) -> None:
    """Remove what a person was offered, and what they offered others."""
    theirs = or_(LinkInvitation.invitee_id == user_id, LinkInvitation.inviter_id == user_id)
    await session.execute(delete(LinkInvitation).where(theirs).execution_options(synchronize_session=False))


async def _mine(session: WriteSession, user_id: int, invitation_id: int, now: datetime) -> LinkInvitation:
    """Return an offer to this person that is still open, locked, so that it is answered once."""
    wanted = select(LinkInvitation).where(LinkInvitation.id == invitation_id, LinkInvitation.invitee_id == user_id)
    found = await session.scalar(wanted.with_for_update())
    if found is None or found.expires_at <= now:
        raise InvitationNotFound
    return found


async def _give(held: Held, user_id: int, role: InvitedRole, *, added_by: int) -> None:
    await (make_owner if role is InvitedRole.OWNER else make_primary)(held, user_id, added_by=added_by)
