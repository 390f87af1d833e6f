"""Lists, their entries, and the log of publications and deletions."""

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
    String,
    Text,
    UniqueConstraint,
    column,
    false,
    select,
    table,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column

from refract.core.db.types import Model, UtcDateTime, text_key


class ListStatus(StrEnum):
    DRAFT = "draft"
    PUBLISHED = "published"


class FetchStatus(StrEnum):
    """The state of fetching an entry's page. Its owner can have it fetched again."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"


class ListEvent(StrEnum):
    PUBLISH = "publish"
    DELETE = "delete"


_TEAMS = table(
    "teams", column("id", BigInteger), column("slug", String), column("name", String)
).alias("owning_team")
_USERS = table("users", column("id", BigInteger), column("held_at", UtcDateTime)).alias(
    "holding_user"
)


class LinkList(Model):
    """An ordered page of entries: a draft until it is published, then immutable.

    It belongs to a user (`owner_id`), to a team (`team_id`) or to the browser with the cookie that
    made it (`creator_hash`), and only to one of them. Editions of a list share a `family_id`, the
    id of the first; a draft has no edition number yet.
    """

    __tablename__ = "lists"
    __table_args__ = (
        CheckConstraint("status IN ('draft', 'published')", name="status"),
        UniqueConstraint("family_id", "edition"),
        Index("ix_lists_owner", "owner_id", "id"),
        Index("ix_lists_team", "team_id", "id"),
        Index("ix_lists_creator", "creator_hash", "id"),
        Index("ix_lists_deleted_at", "deleted_at"),
        Index("ix_lists_domain", "domain", "id"),
        Index("ix_lists_untouched", "status", "owner_id", "updated_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # Snowflake
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    # No foreign key: SQLite cannot add one to a table.
    team_id: Mapped[int | None] = mapped_column(BigInteger)
    creator_hash: Mapped[str | None] = mapped_column(text_key(64))
    family_id: Mapped[int]
    edition: Mapped[int | None] = mapped_column(Integer)
    title: Mapped[str | None] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(Text)
    palette: Mapped[str | None] = mapped_column(String(20))  # null: the default palette
    layout: Mapped[str | None] = mapped_column(String(10))  # null: the default layout
    cover: Mapped[str | None] = mapped_column(String(20))  # null: none
    shows_author: Mapped[bool] = mapped_column(default=False, server_default=false())
    # Headings between the entries, in order; see `lists.sections`.
    sections: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    # Of a draft only the requested name: the names table decides when it is published.
    slug: Mapped[str | None] = mapped_column(text_key(40))
    domain: Mapped[str | None] = mapped_column(text_key(253))  # its host; NULL: the default domain
    status: Mapped[str] = mapped_column(String(10))
    version: Mapped[int]
    search_text: Mapped[str] = mapped_column(Text)  # folded: title, slug, description
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]  # changed by users, never by fetched metadata
    published_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    # Then its owner cannot undo it.
    deleted_by_admin: Mapped[bool] = mapped_column(default=False, server_default=false())
    on_hold: Mapped[bool] = column_property(
        select(_USERS.c.id)
        .where(_USERS.c.id == owner_id, _USERS.c.held_at.is_not(None))
        .correlate_except(_USERS)
        .exists(),
        expire_on_flush=False,
    )
    team_slug: Mapped[str | None] = column_property(
        select(_TEAMS.c.slug)
        .where(_TEAMS.c.id == team_id)
        .correlate_except(_TEAMS)
        .scalar_subquery(),
        expire_on_flush=False,
    )
    team_name: Mapped[str | None] = column_property(
        select(_TEAMS.c.name)
        .where(_TEAMS.c.id == team_id)
        .correlate_except(_TEAMS)
        .scalar_subquery(),
        expire_on_flush=False,
    )

    @property
    def is_anonymous(self) -> bool:
        """Return whether the list belongs to no account, but to a browser or to nothing."""
        return self.owner_id is None and self.team_id is None


class ListEntry(Model):
    """A URL in a list. Texts that a user wrote are marked and never overwritten."""

    __tablename__ = "list_entries"
    __table_args__ = (
        CheckConstraint("fetch_status IN ('pending', 'success', 'failed')", name="fetch_status"),
        Index("ix_list_entries_position", "list_id", "position"),
        Index("ix_list_entries_fetch_status", "list_id", "fetch_status"),
        Index("ix_list_entries_normalized", "list_id", "normalized_digest"),
        Index("ix_list_entries_waiting", "fetch_status", "id"),
        Index("ix_list_entries_checked_at", "checked_at", "id"),
    )

    # A Snowflake; clicks are stored under it.
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    list_id: Mapped[int] = mapped_column(ForeignKey("lists.id"))
    # Our link whose destination the entry follows. No foreign key: links may be purged.
    link_id: Mapped[int | None]
    url: Mapped[str] = mapped_column(String(2048))  # as typed
    href: Mapped[str] = mapped_column(Text)  # as sent in Location
    host: Mapped[str] = mapped_column(text_key(255))
    normalized_url: Mapped[str] = mapped_column(Text)
    normalized_digest: Mapped[str] = mapped_column(text_key(32))
    title: Mapped[str | None] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(Text)
    image: Mapped[str | None] = mapped_column(Text)
    title_by_hand: Mapped[bool]
    description_by_hand: Mapped[bool]
    fetch_status: Mapped[str] = mapped_column(String(10))
    flagged: Mapped[bool]  # a preview is shown before it redirects
    flag_reason: Mapped[str | None] = mapped_column(String(20))  # a FlagReason of links
    # When the URL was last compared with the block list and the checking service.
    checked_at: Mapped[datetime | None]
    dangerous: Mapped[bool]  # found dangerous after it was added
    position: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class RemovedEntry(Model):
    """An entry that was removed from a draft, for the 24 hours in which this can be undone."""

    __tablename__ = "removed_list_entries"
    __table_args__ = (
        Index("ix_removed_list_entries_list", "list_id"),
        Index("ix_removed_list_entries_removed_at", "removed_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # of the entry
    list_id: Mapped[int]
    removed_at: Mapped[datetime]
    fields: Mapped[dict[str, Any]] = mapped_column(JSON)


class ListEdit(Model):
    """When a member of a team last made one kind of change to a list, and its version then."""

    __tablename__ = "list_edits"
    __table_args__ = (Index("ix_list_edits_user", "user_id"),)

    list_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    action: Mapped[str] = mapped_column(text_key(20), primary_key=True)
    version: Mapped[int]
    edited_at: Mapped[datetime]


class ListAction(Model):
    """A publication or deletion of a list. It is kept for 90 days, longer than the list."""

    __tablename__ = "list_actions"
    __table_args__ = (
        CheckConstraint("event IN ('publish', 'delete')", name="event"),
        Index("ix_list_actions_list", "list_id"),
        Index("ix_list_actions_created_at", "created_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    list_id: Mapped[int]
    event: Mapped[str] = mapped_column(String(10))
    slug: Mapped[str | None] = mapped_column(text_key(40))
    created_at: Mapped[datetime]
