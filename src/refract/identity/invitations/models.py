"""The table of invitations to create an account."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key
from refract.identity.models import User, UserRole, UserStatus


class AccountInvitationState(StrEnum):
    """Follows from the row and its inviter; never stored."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REVOKED = "revoked"
    EXPIRED = "expired"


class EmailDelivery(StrEnum):
    """The delivery of an invitation that is sent by email."""

    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"


class AccountInvitation(Model):
    """An invitation to create one account. Its link contains the token, the row a digest."""

    __tablename__ = "account_invitations"
    __table_args__ = (
        UniqueConstraint("token_hash"),
        CheckConstraint("role IN ('user', 'admin')", name="role"),
        CheckConstraint("delivery IN ('queued', 'sent', 'failed')", name="delivery"),
        Index("ix_account_invitations_created_at", "created_at", "id"),
        Index("ix_account_invitations_expires_at", "expires_at"),
        Index("ix_account_invitations_inviter", "inviter_id"),
        Index("ix_account_invitations_user", "user_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    inviter_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    user_id: Mapped[int | None] = mapped_column(  # the account that it created
        ForeignKey("users.id", ondelete="CASCADE")
    )
    token_hash: Mapped[str] = mapped_column(text_key(64))
    name: Mapped[str] = mapped_column(String(100), default="")
    email: Mapped[str] = mapped_column(String(255), default="")
    role: Mapped[str] = mapped_column(String(20), default=UserRole.USER)
    note: Mapped[str] = mapped_column(String(500), default="")
    delivery: Mapped[str | None] = mapped_column(String(10))  # None: the link is passed on by hand
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

    def state_at(self, at: datetime, inviter: User) -> AccountInvitationState:
        """Return the state. What an inviter has made ends with their own access."""
        if self.accepted_at is not None:
            return AccountInvitationState.ACCEPTED
        is_trusted = inviter.status == UserStatus.ACTIVE and inviter.role == UserRole.ADMIN
        if self.revoked_at is not None or not is_trusted:
            return AccountInvitationState.REVOKED
        expired = self.expires_at <= at
        return AccountInvitationState.EXPIRED if expired else AccountInvitationState.PENDING
