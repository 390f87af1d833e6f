"""Open invitations, for invited people and for those who manage the link."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import aliased

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.identity.models import User, UserStatus
from refract.links.enums import InvitedRole, LinkState
from refract.links.models import Link, LinkInvitation
from refract.links.queries.cards import choose_text
from refract.links.schemas import InvitationOut
from refract.names.enums import NameTarget
from refract.names.grammar import build_short_url
from refract.names.queries import list_names

_Inviter, _Invitee = aliased(User), aliased(User)


@dataclass(frozen=True, slots=True)
class InvitationDetails:
    """An open invitation with its link and people."""

    invitation: LinkInvitation
    link: Link
    inviter: User
    invitee: User
    name: str

    def to_schema(self, base_url: str, *, managing: bool) -> InvitationOut:
        """Return the invitation. `managing` includes the email that the sender entered."""
        found = self.invitation
        return InvitationOut(
            id=found.id,
            link_id=found.link_id,
            short_url=build_short_url(base_url, self.name),
            destination=self.link.destination,
            title=self.link.title,
            role=InvitedRole(found.role),
            inviter=self.inviter.public_name,
            invitee=self.invitee.public_name,
            email=self.invitee.email if managing else None,
            created_at=found.created_at,
            expires_at=found.expires_at,
        )


def _select_open(now: datetime) -> Select[LinkInvitation, Link, User, User]:
    return _join_open(select(LinkInvitation, Link, _Inviter, _Invitee), now)


def _join_open(query: Select[*tuple[Any, ...]], now: Any) -> Select[*tuple[Any, ...]]:
    return (
        query.join(Link, Link.id == LinkInvitation.link_id)
        .join(_Inviter, _Inviter.id == LinkInvitation.inviter_id)
        .join(_Invitee, _Invitee.id == LinkInvitation.invitee_id)
        .where(
            LinkInvitation.expires_at > now,
            Link.status != LinkState.DELETED,
            _Inviter.status == UserStatus.ACTIVE,
        )
    )


async def list_link_invitations(
    session: ReadSession, link_id: int, now: datetime
) -> list[InvitationDetails]:
    """Return the open invitations of a link, oldest first. Their number is bounded."""
    rows = await session.fetch(_OF_LINK, link_id=link_id, now=now)
    return await _load_details(session, rows)


_OF_LINK = PreparedSelect(
    lambda: (
        _join_open(select(LinkInvitation, Link, _Inviter, _Invitee), bindparam("now"))
        .where(LinkInvitation.link_id == bindparam("link_id"))
        .order_by(LinkInvitation.id)
    )
)


async def load_invitations_page(
    session: ReadSession,
    cursors: CursorCodec,
    user_id: int,
    now: datetime,
    *,
    limit: int,
    cursor: str | None,
) -> Page[InvitationDetails]:
    """Return a person's invitations, newest first. Two queries."""
    bound = ["invitations", user_id]
    query = (
        _select_open(now)
        .where(LinkInvitation.invitee_id == user_id)
        .order_by(LinkInvitation.id.desc())
        .limit(limit + 1)
    )
    if cursor:
        query = query.where(LinkInvitation.id < cursors.decode(bound, cursor)[0])
    facts = await _load_details(session, (await session.execute(query)).all())
    return cursors.build_page(bound, facts, limit, lambda details: (details.invitation.id,))


async def count_invitations(session: ReadSession, user_id: int, now: datetime) -> int:
    ((count,),) = await session.fetch(_COUNT, user_id=user_id, now=now)
    return int(count)


_COUNT = PreparedSelect(
    lambda: _join_open(select(func.count()).select_from(LinkInvitation), bindparam("now")).where(
        LinkInvitation.invitee_id == bindparam("user_id")
    )
)


async def load_invitation(
    session: ReadSession, invitation_id: int, now: datetime
) -> InvitationDetails:
    """Return an invitation that was just created."""
    row = (await session.execute(_select_open(now).where(LinkInvitation.id == invitation_id))).one()
    return (await _load_details(session, [row]))[0]


async def _load_details(
    session: ReadSession, rows: Sequence[Sequence[Any]]
) -> list[InvitationDetails]:
    if not rows:
        return []
    names = await list_names(session, NameTarget.LINK, [link.id for _, link, _, _ in rows])
    return [
        InvitationDetails(invitation, link, inviter, invitee, choose_text(link, names[link.id]))
        for invitation, link, inviter, invitee in rows
    ]
