"""People and what proves who they are. Nobody's password is stored, ever."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import TABLE_OPTIONS, Model, text_key

LOCAL_ISSUER = "local"
"""The issuer of accounts that sign in by one-time links from the terminal."""

UNNAMED_USER = "Unnamed"
"""Shown in place of a name that the provider has not told and the user has not chosen."""

_ADDRESS = re.compile(r"\s*\S+@\S+\s*")


class UserStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETED = "deleted"


class UserRole(StrEnum):
    USER = "user"
    ADMIN = "admin"


class UserPlan(StrEnum):
    FREE = "free"
    PRO = "pro"


class KeyStatus(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"
    """Never stored: an active key whose `expires_at` has passed."""


class Scope(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    ACCOUNT = "account"
    """Manage keys and sessions, and delete the account. No other scope implies it."""


class User(Model):
    """A person, known by issuer and subject. What the issuer claims about them is untrusted text."""

    __tablename__ = "users"
    __table_args__ = (
        UniqueConstraint("issuer", "subject"),
        CheckConstraint("status IN ('active', 'suspended', 'deleted')", name="status"),
        CheckConstraint("role IN ('user', 'admin')", name="role"),
        CheckConstraint("plan IN ('free', 'pro')", name="plan"),
        Index("ix_users_email_folded", "email_folded"),
        Index("ix_users_created_at", "created_at", "id"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    issuer: Mapped[str] = mapped_column(text_key(255))
    subject: Mapped[str] = mapped_column(text_key(255))
    email: Mapped[str] = mapped_column(String(255))
    email_folded: Mapped[str] = mapped_column(text_key(255))
    email_verified: Mapped[bool] = mapped_column(default=False)
    display_name: Mapped[str] = mapped_column(String(100), default="")
    nickname: Mapped[str | None] = mapped_column(String(40))
    avatar_url: Mapped[str | None] = mapped_column(String(2048))
    bio: Mapped[str | None] = mapped_column(String(200))
    preferences: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    plan: Mapped[str] = mapped_column(String(20), default=UserPlan.FREE)
    role: Mapped[str] = mapped_column(String(20), default=UserRole.USER)
    status: Mapped[str] = mapped_column(String(20), default=UserStatus.ACTIVE)
    held_at: Mapped[
        datetime | None
    ]  # since when links and lists of this (suspended) person are on hold
    created_at: Mapped[datetime]
    last_sync_at: Mapped[datetime]
    admin_by_setting: Mapped[bool | None]  # the role came from ADMINS, and goes with it

    @property
    def chosen_name(self) -> str:
        """Return the nickname, else the provider's name unless it is an email address, else nothing."""
        return self.nickname or ("" if _ADDRESS.fullmatch(self.display_name) else self.display_name)

    @property
    def public_name(self) -> str:
        """Return a name that everyone signed in may read: never an email address."""
        return self.chosen_name or UNNAMED_USER


class ApiKey(Model):
    """A credential for programs: shown once, kept as a digest."""

    __tablename__ = "api_keys"
    __table_args__ = (
        UniqueConstraint("key_hash"),
        CheckConstraint("status IN ('active', 'revoked')", name="status"),
        Index("ix_api_keys_user", "user_id", "status", "created_at"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    key_hash: Mapped[str] = mapped_column(text_key(64))
    key_prefix: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(100))
    scopes: Mapped[list[str]] = mapped_column(JSON)
    status: Mapped[str] = mapped_column(String(20), default=KeyStatus.ACTIVE)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    usage_count: Mapped[int] = mapped_column(default=0)
    expires_at: Mapped[datetime | None]
    parent_id: Mapped[int | None]  # the key that made it, of the same person
    last_used_network: Mapped[str | None] = mapped_column(String(50))

    def status_at(self, at: datetime) -> KeyStatus:
        """Return the status at a given time. Expiry takes effect at once, not when a job has run."""
        if (
            self.status == KeyStatus.ACTIVE
            and self.expires_at is not None
            and self.expires_at <= at
        ):
            return KeyStatus.EXPIRED
        return KeyStatus(self.status)


class BrowserSession(Model):
    """A browser that has signed in. The cookie holds the token, we hold its digest."""

    __tablename__ = "sessions"
    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("ix_sessions_user", "user_id", "created_at"),
        Index("ix_sessions_expires_at", "expires_at"),
        Index("ix_sessions_sid", "sid"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    token_hash: Mapped[str] = mapped_column(text_key(64))
    agent: Mapped[str] = mapped_column(String(200), default="")
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    sid: Mapped[str | None] = mapped_column(
        text_key(255)
    )  # the provider's own name for this session


class SigninLink(Model):
    """A one-time way in, printed on the terminal of whoever runs the server."""

    __tablename__ = "signin_links"
    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("ix_signin_links_expires_at", "expires_at"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    token_hash: Mapped[str] = mapped_column(text_key(64))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class AuditEntry(Model):
    """Who did what, and who tried in vain. It never holds a secret."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("ix_audit_log_at", "at", "id"),
        Index("ix_audit_log_actor", "actor_id", "at"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor_id: Mapped[int | None]
    action: Mapped[str] = mapped_column(String(64))
    target: Mapped[str | None] = mapped_column(String(200))
    detail: Mapped[str | None] = mapped_column(Text)
    request_id: Mapped[str | None] = mapped_column(String(64))


class IssuerDocuments(Model):
    """What a provider last said about itself: its addresses and keys, kept for the hours in which it does not answer."""

    __tablename__ = "issuer_documents"

    issuer: Mapped[str] = mapped_column(text_key(255), primary_key=True)
    discovery: Mapped[dict[str, Any]] = mapped_column(JSON)
    keys: Mapped[dict[str, Any]] = mapped_column(JSON)
    fetched_at: Mapped[datetime]


class AccountTombstone(Model):
    """An (issuer, subject) that had an account here and may not have another until an administrator allows it.

    Only a keyed digest of the pair is kept, so the row says nothing about the person.
    """

    __tablename__ = "account_tombstones"
    __table_args__ = (UniqueConstraint("digest"), TABLE_OPTIONS)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str] = mapped_column(text_key(64))
    user_id: Mapped[int]
    created_at: Mapped[datetime]


class SpentToken(Model):
    """Something that counts once (a sign-in attempt, a logout token), kept as a digest until it would expire."""

    __tablename__ = "spent_tokens"
    __table_args__ = (Index("ix_spent_tokens_expires_at", "expires_at"), TABLE_OPTIONS)

    digest: Mapped[str] = mapped_column(text_key(64), primary_key=True)
    expires_at: Mapped[datetime]
