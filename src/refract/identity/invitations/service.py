"""Invitations to create an account: created by administrators, accepted once by a link."""

import secrets
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, select, update

from refract.core.db.bulk import get_rowcount
from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity import audit
from refract.identity.errors import (
    AccountInvitationNotFound,
    EmailTaken,
    InvitationLinkExpired,
    InvitationsDisabled,
    OpenInvitationLimit,
)
from refract.identity.invitations.models import AccountInvitation, EmailDelivery
from refract.identity.invitations.schemas import AccountInvitationCreate
from refract.identity.models import User, UserRole, UserStatus
from refract.identity.payloads import SendInvitation
from refract.identity.users import create_local_user, fold_email
from refract.jobs.queue import enqueue

MAX_OPEN_INVITATIONS = 200
RETENTION = timedelta(days=30)
"""How long an invitation is listed after its expiry."""
InvitationWithInviter = tuple[AccountInvitation, User]


def _is_open(now: datetime) -> ColumnElement[bool]:
    """Return the condition for invitations that can be accepted.

    The inviter must still be an active administrator: one who was suspended or demoted must not
    come back by an invitation of their own.
    """
    trusted = select(User.id).where(User.status == UserStatus.ACTIVE, User.role == UserRole.ADMIN)
    return and_(
        AccountInvitation.accepted_at.is_(None),
        AccountInvitation.revoked_at.is_(None),
        AccountInvitation.expires_at > now,
        AccountInvitation.inviter_id.in_(trusted),
    )


async def create_invitation(
    session: WriteSession, rt: Runtime, by: User, new: AccountInvitationCreate
) -> tuple[AccountInvitation, str | None]:
    """Create an invitation; return it with its link, or without one if a job sends it by email.

    Raises `InvitationsDisabled`, `EmailTaken`, `OpenInvitationLimit`.
    """
    if not rt.settings.signin_links_allowed:
        raise InvitationsDisabled
    await _require_free_email(session, new.email or "")
    now = rt.clock.now()
    count = select(func.count()).select_from(AccountInvitation).where(_is_open(now))
    if (await session.scalar(count) or 0) >= MAX_OPEN_INVITATIONS:
        raise OpenInvitationLimit(limit=MAX_OPEN_INVITATIONS)
    token = secrets.token_urlsafe(32)
    is_sent = bool(new.email and new.send_email and rt.settings.smtp_url)
    row = AccountInvitation(
        id=rt.ids.next_id(),
        inviter_id=by.id,
        token_hash=hash_credential(token),
        name=new.name or "",
        email=new.email or "",
        role=new.role,
        note=new.note,
        delivery=EmailDelivery.QUEUED if is_sent else None,
        created_at=now,
        expires_at=now + timedelta(days=new.valid_days),
    )
    session.add(row)
    await session.flush()
    await audit.record_event(
        session, rt, "invitation.created", actor=by, target=str(row.id), detail=new.role
    )
    if is_sent:
        await enqueue(session, rt, SendInvitation(invitation_id=row.id), share=by.id)
    return row, None if is_sent else _build_url(rt, token)


def _build_url(rt: Runtime, token: str) -> str:
    return f"{rt.settings.public_url}/auth/invitation/{token}"


async def _require_free_email(session: ReadSession, email: str) -> None:
    """Raise `EmailTaken` if an account has this verified email, so that it stays unambiguous."""
    query = select(User.id).where(
        User.email_folded == fold_email(email),
        User.email_verified,
        User.status != UserStatus.DELETED,
    )
    if email and await session.scalar(query.limit(1)) is not None:
        raise EmailTaken(email=email)


async def renew_link(
    session: WriteSession, rt: Runtime, by: User, invitation_id: int
) -> tuple[AccountInvitation, str]:
    """Replace the link of an open invitation; return both. Links sent before stop working.

    Raises `AccountInvitationNotFound`.
    """
    url = await _replace_token(session, rt, invitation_id, delivery=None)
    if url is None:
        raise AccountInvitationNotFound
    await audit.record_event(
        session, rt, "invitation.link_renewed", actor=by, target=str(invitation_id)
    )
    return await session.get_one(AccountInvitation, invitation_id, populate_existing=True), url


async def start_delivery(
    session: WriteSession, rt: Runtime, invitation_id: int
) -> tuple[AccountInvitation, User, str] | None:
    """Return an open invitation with its inviter and a new link to send by email, or None.

    Only digests of links are stored, so every attempt sends a link of its own. None means that
    the invitation is no longer open, or that its link was renewed to be passed on by hand.
    """
    row = await session.get(AccountInvitation, invitation_id)
    if row is None or row.delivery is None:
        return None
    url = await _replace_token(session, rt, invitation_id, delivery=EmailDelivery.QUEUED)
    return None if url is None else (row, await session.get_one(User, row.inviter_id), url)


async def _replace_token(
    session: WriteSession, rt: Runtime, invitation_id: int, *, delivery: EmailDelivery | None
) -> str | None:
    """Give an open invitation a new token; return its link, or None if it is not open."""
    token = secrets.token_urlsafe(32)
    changed = await session.execute(
        update(AccountInvitation)
        .where(AccountInvitation.id == invitation_id, _is_open(rt.clock.now()))
        .values(token_hash=hash_credential(token), delivery=delivery)
        .execution_options(synchronize_session=False)
    )
    return _build_url(rt, token) if get_rowcount(changed) == 1 else None


async def finish_delivery(
    session: WriteSession, invitation_id: int, delivery: EmailDelivery
) -> None:
    """Note whether the email was sent, unless the link was renewed meanwhile."""
    await session.execute(
        update(AccountInvitation)
        .where(AccountInvitation.id == invitation_id, AccountInvitation.delivery.is_not(None))
        .values(delivery=delivery)
    )


async def revoke_invitation(
    session: WriteSession, rt: Runtime, by: User, invitation_id: int
) -> None:
    """Revoke an open invitation: its link stops working. Raises `AccountInvitationNotFound`."""
    now = rt.clock.now()
    changed = await session.execute(
        update(AccountInvitation)
        .where(AccountInvitation.id == invitation_id, _is_open(now))
        .values(revoked_at=now)
        .execution_options(synchronize_session=False)
    )
    if get_rowcount(changed) != 1:
        raise AccountInvitationNotFound
    await audit.record_event(session, rt, "invitation.revoked", actor=by, target=str(invitation_id))


async def list_invitations(
    session: ReadSession, cursors: CursorCodec, *, limit: int, cursor: str | None
) -> Page[InvitationWithInviter]:
    """Return a page of invitations with their inviters, newest first."""
    scope = ["account_invitations"]
    query = (
        select(AccountInvitation, User)
        .join(User, User.id == AccountInvitation.inviter_id)
        .order_by(AccountInvitation.created_at.desc(), AccountInvitation.id.desc())
        .limit(limit + 1)
    )
    if cursor:
        query = query.where(
            build_after_clause(
                [AccountInvitation.created_at, AccountInvitation.id],
                cursors.decode(scope, cursor),
                descending=True,
            )
        )
    rows = [(row[0], row[1]) for row in await session.execute(query)]
    return cursors.build_page(scope, rows, limit, lambda row: (row[0].created_at, row[0].id))


async def find_invitation(
    session: ReadSession, rt: Runtime, token: str
) -> InvitationWithInviter | None:
    """Return the open invitation of a link, with its inviter. Looking uses nothing up."""
    query = (
        select(AccountInvitation, User)
        .join(User, User.id == AccountInvitation.inviter_id)
        .where(AccountInvitation.token_hash == hash_credential(token), _is_open(rt.clock.now()))
    )
    found = (await session.execute(query)).first()
    return None if found is None else (found[0], found[1])


async def accept_invitation(session: WriteSession, rt: Runtime, token: str, name: str) -> User:
    """Use up a link and return the new account. Of two concurrent uses, one succeeds.

    Raises `InvitationLinkExpired`, `EmailTaken`.
    """
    now, digest = rt.clock.now(), hash_credential(token)
    spent = await session.execute(
        update(AccountInvitation)
        .where(AccountInvitation.token_hash == digest, _is_open(now))
        .values(accepted_at=now)
        .execution_options(synchronize_session=False)
    )
    if get_rowcount(spent) != 1:
        raise InvitationLinkExpired
    query = select(AccountInvitation).where(AccountInvitation.token_hash == digest)
    row = (await session.scalars(query)).one()
    await _require_free_email(session, row.email)
    user = await create_local_user(
        session,
        rt,
        row.email,
        subject=secrets.token_hex(16),
        role=UserRole(row.role),
        name=name,
    )
    row.user_id = user.id
    await audit.record_event(session, rt, "account.made", actor=user)
    await audit.record_event(session, rt, "invitation.accepted", actor=user, target=str(row.id))
    return user


async def delete_old_invitations(session: WriteSession, now: datetime) -> None:
    """Delete invitations some time after their expiry, accepted ones too."""
    await session.execute(
        delete(AccountInvitation).where(AccountInvitation.expires_at < now - RETENTION)
    )
