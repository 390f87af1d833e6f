"""Tables of accounts and credentials. No passwords are stored."""

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

from refract.core.db.types import Model, text_key

LOCAL_ISSUER = "local"
"""The issuer of accounts that sign in with one-time links from the terminal."""

TEAM_ISSUER = "team"
"""The issuer of the accounts that hold the API keys of teams. Their subject is the team's id."""

UNNAMED_USER = "Unnamed"
"""Shown where neither the provider nor the user has given a name."""

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
    """An account, identified by issuer and subject. Claims of the issuer are untrusted text."""

    __tablename__ = "users"
    __table_args__ = (
        UniqueConstraint("issuer", "subject"),
        CheckConstraint("status IN ('active', 'suspended', 'deleted')", name="status"),
        CheckConstraint("role IN ('user', 'admin')", name="role"),
        CheckConstraint("plan IN ('free', 'pro')", name="plan"),
        Index("ix_users_email_folded", "email_folded"),
        Index("ix_users_created_at", "created_at", "id"),
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
    ]  # since when the links and lists of this (suspended) user are on hold
    created_at: Mapped[datetime]
    last_sync_at: Mapped[datetime]
    admin_by_setting: Mapped[bool | None]  # the role came from ADMINS, and goes with it

    @property
    def is_team_account(self) -> bool:
        """Return whether this account holds the keys of a team. It cannot sign in."""
        return self.issuer == TEAM_ISSUER

    @property
    def chosen_name(self) -> str:
        """Return the nickname, or the provider's name unless it is an email address, or ''."""
        return choose_name(self.nickname, self.display_name)

    @property
    def public_name(self) -> str:
        """Return a name that every signed-in user may see: never an email address."""
        return get_public_name(self.nickname, self.display_name)


def choose_name(nickname: str | None, display_name: str) -> str:
    """Return `User.chosen_name` of a user with these columns."""
    return nickname or ("" if _ADDRESS.fullmatch(display_name) else display_name)


def get_public_name(nickname: str | None, display_name: str) -> str:
    """Return `User.public_name` of a user with these columns."""
    return choose_name(nickname, display_name) or UNNAMED_USER


class ApiKey(Model):
    """An API key, stored as a digest."""

    __tablename__ = "api_keys"
    __table_args__ = (
        UniqueConstraint("key_hash"),
        CheckConstraint("status IN ('active', 'revoked')", name="status"),
        Index("ix_api_keys_user", "user_id", "status", "created_at"),
        Index("ix_api_keys_parent", "parent_id"),
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
    parent_id: Mapped[int | None]  # the key that created it
    last_used_network: Mapped[str | None] = mapped_column(String(50))

    def status_at(self, at: datetime) -> KeyStatus:
        """Return the status at a given time. Expiry needs no job to take effect."""
        if (
            self.status == KeyStatus.ACTIVE
            and self.expires_at is not None
            and self.expires_at <= at
        ):
            return KeyStatus.EXPIRED
        return KeyStatus(self.status)


class BrowserSession(Model):
    """A signed-in browser. The cookie holds the token, the row its digest."""

    __tablename__ = "sessions"
    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("ix_sessions_user", "user_id", "created_at"),
        Index("ix_sessions_expires_at", "expires_at"),
        Index("ix_sessions_sid", "sid"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    token_hash: Mapped[str] = mapped_column(text_key(64))
    agent: Mapped[str] = mapped_column(String(200), default="")
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    sid: Mapped[str | None] = mapped_column(text_key(255))  # the provider's id of its own session


class SigninLink(Model):
    """A one-time sign-in link, printed on the operator's terminal."""

    __tablename__ = "signin_links"
    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("ix_signin_links_expires_at", "expires_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    token_hash: Mapped[str] = mapped_column(text_key(64))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class AuditEntry(Model):
    """An entry of the audit log. It never contains a secret."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("ix_audit_log_at", "at", "id"),
        Index("ix_audit_log_actor", "actor_id", "at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor_id: Mapped[int | None]
    action: Mapped[str] = mapped_column(String(64))
    target: Mapped[str | None] = mapped_column(String(200))
    detail: Mapped[str | None] = mapped_column(Text)
    request_id: Mapped[str | None] = mapped_column(String(64))
    key_prefix: Mapped[str | None] = mapped_column(String(16))  # the API key that the actor used


class IssuerDocuments(Model):
    """The last discovery document and keys of a provider, used while it is unavailable."""

    __tablename__ = "issuer_documents"

    issuer: Mapped[str] = mapped_column(text_key(255), primary_key=True)
    discovery: Mapped[dict[str, Any]] = mapped_column(JSON)
    keys: Mapped[dict[str, Any]] = mapped_column(JSON)
    fetched_at: Mapped[datetime]


class AccountTombstone(Model):
    """A deleted account whose (issuer, subject) can't sign up again unless an administrator allows.

    Only a keyed digest of the pair is stored, so the row does not identify a person.
    """

    __tablename__ = "account_tombstones"
    __table_args__ = (UniqueConstraint("digest"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str] = mapped_column(text_key(64))
    user_id: Mapped[int]
    created_at: Mapped[datetime]


class SpentToken(Model):
    """A single-use value (sign-in attempt, logout token), stored as a digest until it expires."""

    __tablename__ = "spent_tokens"
    __table_args__ = (Index("ix_spent_tokens_expires_at", "expires_at"),)

    digest: Mapped[str] = mapped_column(text_key(64), primary_key=True)
    expires_at: Mapped[datetime]
