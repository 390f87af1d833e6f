"""Links, who has them, what they were before, and what is left of them in the end."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    column,
    select,
    table,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column

from refract.core.db.types import TABLE_OPTIONS, Model, UtcDateTime, text_key
from refract.core.ids import encode_base62


class LinkState(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"
    EXPIRED = "expired"
    DELETED = "deleted"
    ON_HOLD = "on_hold"
    """Its primary owner is suspended. Never stored: it follows from the owner."""


class FlagReason(StrEnum):
    """Why a destination is not followed without a word of warning."""

    UNCHECKED = "unchecked"
    """The checking service could not be asked yet."""
    LOOKALIKE = "lookalike"
    """Its host imitates another one in letters of several alphabets."""
    DANGEROUS = "dangerous"
    """The checking service warns of it."""
    BLOCKED = "blocked"
    """The operator's block list names its host."""


class InvitedRole(StrEnum):
    """What an invitation offers: to own a link too, or to become its primary owner."""

    OWNER = "owner"
    PRIMARY = "primary"


class Visibility(StrEnum):
    """Who finds a link in lists, and who may follow it."""

    PUBLIC = "public"
    """Listed for everyone signed in. Anyone with the address may follow it."""
    UNLISTED = "unlisted"
    """In no list of others. Anyone with the address may follow it, so it is not private."""
    SIGNED_IN = "signed-in"
    """Everyone signed in may follow it; in no list of others."""
    SECURE = "secure"
    """Only owners, people it is shared with and administrators may follow it."""

    @property
    def columns(self) -> tuple[str, str | None]:
        """Return the columns `visibility` and `audience`.

        Every restricted value is stored as `secure`, so that code which does not know an audience lets in too few, never too many.
        """
        return (
            (Visibility.SECURE.value, self.value)
            if self == Visibility.SIGNED_IN
            else (self.value, None)
        )

    @classmethod
    def from_columns(cls, visibility: str, audience: str | None) -> "Visibility":
        """Return the value behind the two columns. An audience of a later version is `secure` here."""
        return cls.SIGNED_IN if (visibility, audience) == cls.SIGNED_IN.columns else cls(visibility)


_OWNERS = table(
    "link_owners", column("primary_link_id", BigInteger), column("user_id", BigInteger)
).alias("holding_owner")
_USERS = table("users", column("id", BigInteger), column("held_at", UtcDateTime)).alias(
    "holding_user"
)


class Link(Model):
    """A destination, and everything we promise about reaching it.

    Created order is id order: `created_at` is the moment inside the id. Clicks live in `LinkTotals`: counting never touches this row.
    """

    __tablename__ = "links"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'disabled', 'expired', 'deleted')", name="status"),
        CheckConstraint("visibility IN ('public', 'unlisted', 'secure')", name="visibility"),
        CheckConstraint("redirect_status IN (301, 302, 307, 308)", name="redirect_status"),
        Index("ix_links_status", "status", "id"),
        Index("ix_links_expires_at", "status", "expires_at"),
        Index("ix_links_deleted_at", "deleted_at"),
        Index("ix_links_visibility", "visibility", "id"),
        Index("ix_links_updated_at", "updated_at", "id"),
        Index("ix_links_href_digest", "href_digest", "id"),
        Index("ix_links_destination_host", "destination_host", "id"),
        Index("ix_links_checked_at", "checked_at", "id"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False
    )  # Snowflake; the code is derived
    destination: Mapped[str] = mapped_column(String(2048))  # as typed
    href: Mapped[str] = mapped_column(Text)  # as it goes into Location
    href_digest: Mapped[str] = mapped_column(text_key(32))
    destination_host: Mapped[str] = mapped_column(text_key(255))
    has_placeholders: Mapped[bool]
    title: Mapped[str | None] = mapped_column(String(200))
    notes: Mapped[str | None] = mapped_column(Text)
    redirect_status: Mapped[int] = mapped_column(SmallInteger)
    visibility: Mapped[str] = mapped_column(
        String(10)
    )  # as stored: every restricted link is `secure`; read `effective_visibility`
    audience: Mapped[str | None] = mapped_column(String(10))  # whom else a `secure` link is for
    random_code: Mapped[str | None] = mapped_column(
        text_key(16)
    )  # in place of the code made of the id; a generated name
    forward_query: Mapped[bool]
    status: Mapped[str] = mapped_column(String(10))
    disabled_by_admin: Mapped[bool]
    flagged: Mapped[bool]  # a preview is shown before it redirects
    flag_reason: Mapped[str | None] = mapped_column(
        String(20)
    )  # a FlagReason; absent on rows flagged by older versions: unchecked
    checked_at: Mapped[
        datetime | None
    ]  # when the destination was last compared with block list and checking service
    expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]
    version: Mapped[int]
    search_text: Mapped[str] = mapped_column(Text)  # folded: names, title, notes, destination
    on_hold: Mapped[bool] = column_property(
        select(_USERS.c.id)
        .join(_OWNERS, _OWNERS.c.user_id == _USERS.c.id)
        .where(
            _OWNERS.c.primary_link_id == id,  # noqa: A003 - the column above
            _USERS.c.held_at.is_not(None),
        )
        .correlate_except(_OWNERS, _USERS)
        .exists(),
        expire_on_flush=False,
    )

    @property
    def code(self) -> str:
        """The code that the link answers under."""
        return self.random_code or encode_base62(self.id)

    @property
    def effective_visibility(self) -> Visibility:
        return Visibility.from_columns(self.visibility, self.audience)

    @effective_visibility.setter
    def effective_visibility(self, value: Visibility) -> None:
        self.visibility, self.audience = value.columns

    def state_at(self, at: datetime) -> LinkState:
        """Return the state that counts for visitors: a hold comes before everything but deletion."""
        own = self.own_state_at(at)
        return LinkState.ON_HOLD if self.on_hold and own != LinkState.DELETED else own

    def own_state_at(self, at: datetime) -> LinkState:
        """Return the state that its owners gave it. Expiry is a fact about time, not about whether a job has run."""
        if self.status in (LinkState.DELETED, LinkState.DISABLED):
            return LinkState(self.status)
        return (
            LinkState.EXPIRED
            if self.expires_at is not None and self.expires_at <= at
            else LinkState.ACTIVE
        )


class LinkTotals(Model):
    """Clicks of a link; no row means none. Written by the ingester alone, kept when the link is purged."""

    __tablename__ = "link_totals"
    __table_args__ = (
        Index("ix_link_totals_total_clicks", "total_clicks", "link_id"),
        Index("ix_link_totals_last_clicked_at", "last_clicked_at", "link_id"),
        TABLE_OPTIONS,
    )

    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    total_clicks: Mapped[int] = mapped_column(default=0)
    bot_clicks: Mapped[int] = mapped_column(default=0)
    last_clicked_at: Mapped[datetime | None]


class LinkOwner(Model):
    """Who owns a link. `primary_link_id` repeats the link's id for the primary owner and is empty for the others:
    a unique column that may be empty allows one primary and no second, on every database."""

    __tablename__ = "link_owners"
    __table_args__ = (
        UniqueConstraint("primary_link_id"),
        CheckConstraint(
            "primary_link_id IS NULL OR primary_link_id = link_id", name="primary_link_id"
        ),
        Index("ix_link_owners_user", "user_id", "link_id"),
        TABLE_OPTIONS,
    )

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id"), primary_key=True, autoincrement=False
    )
    primary_link_id: Mapped[int | None]
    added_by: Mapped[int | None]
    created_at: Mapped[datetime]

    @property
    def is_primary(self) -> bool:
        return self.primary_link_id is not None


class LinkShare(Model):
    """Somebody who may look at a link and its figures."""

    __tablename__ = "link_shares"
    __table_args__ = (Index("ix_link_shares_user", "user_id", "link_id"), TABLE_OPTIONS)

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id"), primary_key=True, autoincrement=False
    )
    shared_by: Mapped[int | None]
    created_at: Mapped[datetime]


class LinkInvitation(Model):
    """An offer to own a link, which the invited person has not answered yet. One per link and person."""

    __tablename__ = "link_invitations"
    __table_args__ = (
        UniqueConstraint("link_id", "invitee_id"),
        CheckConstraint("role IN ('owner', 'primary')", name="role"),
        Index("ix_link_invitations_invitee", "invitee_id", "id"),
        Index("ix_link_invitations_inviter", "inviter_id"),
        Index("ix_link_invitations_expires_at", "expires_at"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id"))
    inviter_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    invitee_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    role: Mapped[str] = mapped_column(String(10))  # an InvitedRole
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class LinkTag(Model):
    """A shared tag on a link."""

    __tablename__ = "link_tags"
    __table_args__ = (Index("ix_link_tags_tag", "tag_id", "link_id"), TABLE_OPTIONS)

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    tag_id: Mapped[int] = mapped_column(
        ForeignKey("tags.id"), primary_key=True, autoincrement=False
    )


class LinkChange(Model):
    """One version of a link: who made it, what changed, and how the link was afterwards.

    The first version is written together with the second: until then the link itself is its first version, and most links never change.
    """

    __tablename__ = "link_history"
    __table_args__ = (CheckConstraint("version > 0", name="version"), TABLE_OPTIONS)

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor_id: Mapped[int | None]
    as_admin: Mapped[bool]  # an administrator who does not own the link
    action: Mapped[str] = mapped_column(String(20))
    changes: Mapped[dict[str, Any]] = mapped_column(JSON)
    snapshot: Mapped[dict[str, Any]] = mapped_column(JSON)


class LinkTombstone(Model):
    """What a purged link leaves: its id, which clicks still carry."""

    __tablename__ = "link_tombstones"

    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    purged_at: Mapped[datetime]


class FeedEntry(Model):
    """A change that redirect caches must hear of. Rows are read in order of their numbers and removed after a while.

    Numbers are given before commits, so a lower one may become visible after a higher: readers look back a little.
    """

    __tablename__ = "link_feed"
    __table_args__ = (Index("ix_link_feed_at", "at"), TABLE_OPTIONS)

    number: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    at: Mapped[datetime]
    target_id: Mapped[int]  # 0: everything
    version: Mapped[int]
    names: Mapped[list[str]] = mapped_column(JSON)  # comparison keys, before and after the change
