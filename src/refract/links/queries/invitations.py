"""Open invitations, for those who were invited and for those who manage the link."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import aliased

from refract.core.db import ReadSession
from refract.core.page import Cursors, Page
from refract.identity.models import User, UserStatus
from refract.links.models import InvitedRole, Link, LinkInvitation, LinkState
from refract.links.schemas import InvitationOut
from refract.names.models import Kind
from refract.names.queries import names_of

_Inviter, _Invitee = aliased(User), aliased(User)


@dataclass(frozen=True, slots=True)
class InvitationFacts:
    """An open invitation with the link and the people it is about."""

    invitation: LinkInvitation
    link: Link
    inviter: User
    invitee: User
    name: str

    def shown(self, base_url: str, *, managing: bool) -> InvitationOut:
        """`managing` shows the address of the invited person, which whoever invited them typed."""
        found = self.invitation
        return InvitationOut(
            id=found.id, link_id=found.link_id, short_url=f"{base_url}/{self.name}", destination=self.link.destination,
            title=self.link.title, role=InvitedRole(found.role), inviter=self.inviter.shown_name, invitee=self.invitee.shown_name,
            email=self.invitee.email if managing else None, created_at=found.created_at, expires_at=found.expires_at,
        )  # fmt: skip


def _open(now: datetime) -> Select[LinkInvitation, Link, User, User]:
    return (
        select(LinkInvitation, Link, _Inviter, _Invitee)
        .join(Link, Link.id == LinkInvitation.link_id)
        .join(_Inviter, _Inviter.id == LinkInvitation.inviter_id)
        .join(_Invitee, _Invitee.id == LinkInvitation.invitee_id)
        .where(LinkInvitation.expires_at > now, Link.status != LinkState.DELETED, _Inviter.status == UserStatus.ACTIVE)
    )


async def invitations_of(session: ReadSession, link_id: int, now: datetime) -> list[InvitationFacts]:
    """Return the open invitations of a link, oldest first. Their number is bounded."""
    rows = (await session.execute(_open(now).where(LinkInvitation.link_id == link_id).order_by(LinkInvitation.id))).all()
    return await _named(session, rows)


async def page_of_invitations(
    session: ReadSession, cursors: Cursors, user_id: int, now: datetime, *, limit: int, cursor: str | None
) -> Page[InvitationFacts]:
    """Return what a person was invited to, newest first. Two queries."""
    bound = ["invitations", user_id]
    wanted = _open(now).where(LinkInvitation.invitee_id == user_id).order_by(LinkInvitation.id.desc()).limit(limit + 1)
    if cursor:
        wanted = wanted.where(LinkInvitation.id < cursors.read(bound, cursor)[0])
    facts = await _named(session, (await session.execute(wanted)).all())
    return cursors.page(bound, facts, limit, lambda one: (one.invitation.id,))


async def count_invitations(session: ReadSession, user_id: int, now: datetime) -> int:
    found = _open(now).where(LinkInvitation.invitee_id == user_id).subquery()
    return await session.scalar(select(func.count()).select_from(found)) or 0


async def invitation_facts(session: ReadSession, invitation_id: int, now: datetime) -> InvitationFacts:
    """Return an invitation that was made just now."""
    row = (await session.execute(_open(now).where(LinkInvitation.id == invitation_id))).one()
    return (await _named(session, [row]))[0]


async def _named(session: ReadSession, rows: Sequence[Row[LinkInvitation, Link, User, User]]) -> list[InvitationFacts]:
    names = await names_of(session, Kind.LINK, [link.id for _, link, _, _ in rows])
    return [
        InvitationFacts(invitation, link, inviter, invitee, (names[link.id] or [link.code])[0])
        for invitation, link, inviter, invitee in rows
    ]
