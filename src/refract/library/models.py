"""Items, their saved pages, tags and suggestions, undo records, and usage."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Date,
    Double,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, long_text, text_key


class ItemStatus(StrEnum):
    ENRICHING = "ENRICHING"
    READY_TO_CONFIRM = "READY_TO_CONFIRM"
    ARCHIVED = "ARCHIVED"
    DISCARDED = "DISCARDED"
    FAILED = "FAILED"


READING_STATES = ("unread", "favorite", "archived")
"""Flags that only the user sets, whatever the status is."""

PENDING_STATUSES = (ItemStatus.ENRICHING, ItemStatus.READY_TO_CONFIRM, ItemStatus.FAILED)
"""Statuses of items that are being processed or wait for review."""


class ItemType(StrEnum):
    NOTE = "NOTE"
    ARTICLE = "ARTICLE"


class Enrichment(StrEnum):
    """The origin of an item's title, summary and tags."""

    AI = "AI"
    SYSTEM = "SYSTEM"
    MANUAL = "MANUAL"


class FieldSource(StrEnum):
    """Who wrote a title or a summary. What a user wrote is never overwritten."""

    USER = "USER"
    AI = "AI"
    SYSTEM = "SYSTEM"


class SuggestionStatus(StrEnum):
    PENDING = "PENDING"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"


class SuggestionSource(StrEnum):
    AI = "AI"
    SYSTEM = "SYSTEM"


class Item(Model):
    """Something a user captured. Its tags are in `item_tags`, its fetched page in `item_pages`."""

    __tablename__ = "items"
    __table_args__ = (
        CheckConstraint(
            "status IN ('ENRICHING', 'READY_TO_CONFIRM', 'ARCHIVED', 'DISCARDED', 'FAILED')",
            name="status",
        ),
        CheckConstraint("type IN ('NOTE', 'ARTICLE')", name="type"),
        CheckConstraint(
            "enrichment IS NULL OR enrichment IN ('AI', 'SYSTEM', 'MANUAL')", name="enrichment"
        ),
        Index("ix_items_pending", "user_id", "pending", "id"),  # the review queue
        # the library, newest first
        Index("ix_items_library", "user_id", "status", "confirmed_at", "id"),
        Index("ix_items_type", "user_id", "status", "type", "confirmed_at", "id"),
        # one per reading state
        Index("ix_items_archived", "user_id", "status", "archived", "confirmed_at", "id"),
        Index("ix_items_unread", "user_id", "status", "unread", "confirmed_at", "id"),
        Index("ix_items_favorite", "user_id", "status", "favorite", "confirmed_at", "id"),
        Index("ix_items_url_digest", "user_id", "url_digest"),
        Index("ix_items_canonical_digest", "user_id", "canonical_digest"),
        Index("ix_items_import_id", "import_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    text: Mapped[str] = mapped_column(Text)  # as captured
    url: Mapped[str | None] = mapped_column(String(2048))  # of an article, as typed
    # of the normalised URL: two items with the same digest are the same page
    url_digest: Mapped[str | None] = mapped_column(text_key(32))
    # of the canonical URL that the page names
    canonical_digest: Mapped[str | None] = mapped_column(text_key(32))
    site: Mapped[str | None] = mapped_column(text_key(255))  # the host, without www.
    title: Mapped[str | None] = mapped_column(String(255))
    title_source: Mapped[str | None] = mapped_column(String(10))
    summary: Mapped[str | None] = mapped_column(Text)
    summary_source: Mapped[str | None] = mapped_column(String(10))
    notes: Mapped[str | None] = mapped_column(Text)  # the user's own words
    type: Mapped[str] = mapped_column(String(10))
    status: Mapped[str] = mapped_column(String(20))
    # whether status is in PENDING_STATUSES: keeps the queue in one index range
    pending: Mapped[bool]
    unread: Mapped[bool] = mapped_column(default=False)
    favorite: Mapped[bool] = mapped_column(default=False)
    # left out of the library's list; not the status ARCHIVED, which means saved
    archived: Mapped[bool] = mapped_column(default=False)
    enrichment: Mapped[str | None] = mapped_column(String(10))
    # why the offline proposal was used, such as OVER_QUOTA
    note: Mapped[str | None] = mapped_column(String(30))
    failure: Mapped[str | None] = mapped_column(
        String(300)
    )  # why enrichment failed, in words for users
    job_id: Mapped[int | None]  # the only job that may write a proposal
    # the job that was charged, unless it was refunded
    charged_job_id: Mapped[int | None]
    import_id: Mapped[int | None]  # the import that created it
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    confirmed_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(default=1)

    def set_status(self, status: ItemStatus) -> None:
        """Set the status and `pending`. Nothing else changes them."""
        self.status, self.pending = status.value, status in PENDING_STATUSES


class SavedPage(Model):
    """What was found at an article's URL when it was last fetched.

    A failed fetch overwrites nothing.
    """

    __tablename__ = "item_pages"

    item_id: Mapped[int] = mapped_column(
        ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    url: Mapped[str] = mapped_column(Text)  # after redirects
    canonical_url: Mapped[str | None] = mapped_column(Text)
    title: Mapped[str | None] = mapped_column(String(255))
    description: Mapped[str | None] = mapped_column(Text)
    author: Mapped[str | None] = mapped_column(String(255))
    site: Mapped[str | None] = mapped_column(String(255))
    language: Mapped[str | None] = mapped_column(String(10))
    published_at: Mapped[datetime | None]
    image_url: Mapped[str | None] = mapped_column(Text)
    keywords: Mapped[list[str]] = mapped_column(JSON)
    # readable text, with an empty line between paragraphs
    text: Mapped[str] = mapped_column(long_text())
    # the same for the reader view, sanitised before it was stored
    html: Mapped[str] = mapped_column(long_text())
    fetched_at: Mapped[datetime]


class Suggestion(Model):
    """A suggested tag. A name that was rejected is not suggested to that user again."""

    __tablename__ = "item_tag_suggestions"
    __table_args__ = (
        UniqueConstraint("item_id", "normalised_name"),
        CheckConstraint("status IN ('PENDING', 'ACCEPTED', 'REJECTED')", name="status"),
        CheckConstraint("source IN ('AI', 'SYSTEM')", name="source"),
        Index("ix_item_tag_suggestions_user", "user_id", "status", "normalised_name"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(50))
    normalised_name: Mapped[str] = mapped_column(text_key(200))
    source: Mapped[str] = mapped_column(String(10))
    confidence: Mapped[float] = mapped_column(Double)
    reason: Mapped[str] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(10), default=SuggestionStatus.PENDING)
    created_at: Mapped[datetime]
    reviewed_at: Mapped[datetime | None]


class ItemTag(Model):
    """A personal tag on an item. Authoritative: usage counts are derived from it."""

    __tablename__ = "item_tags"
    __table_args__ = (Index("ix_item_tags_tag", "tag_id", "item_id"),)

    item_id: Mapped[int] = mapped_column(
        ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    tag_id: Mapped[int] = mapped_column(
        ForeignKey("tags.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    created_at: Mapped[datetime]


class TagRule(Model):
    """A rule of a user: items that match the pattern get these tags suggested."""

    __tablename__ = "tag_rules"
    __table_args__ = (UniqueConstraint("user_id", "position"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    position: Mapped[int]
    pattern: Mapped[str] = mapped_column(String(255))
    tags: Mapped[list[str]] = mapped_column(JSON)


class ItemUndo(Model):
    """How an item was before its latest change. The next change replaces it."""

    __tablename__ = "item_undo"

    item_id: Mapped[int] = mapped_column(
        ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    action: Mapped[str] = mapped_column(String(20))
    at: Mapped[datetime]
    before: Mapped[dict[str, Any]] = mapped_column(JSON)


class TagChange(Model):
    """A merge or a deletion of personal tags, kept so that it can be undone."""

    __tablename__ = "tag_changes"
    __table_args__ = (
        CheckConstraint("action IN ('merge', 'delete')", name="action"),
        Index("ix_tag_changes_tag", "tag_id", "id"),
        Index("ix_tag_changes_user", "user_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    # the target of a merge, or the deleted tag
    tag_id: Mapped[int] = mapped_column(ForeignKey("tags.id", ondelete="CASCADE"))
    action: Mapped[str] = mapped_column(String(10))
    at: Mapped[datetime]
    undone_at: Mapped[datetime | None]
    details: Mapped[dict[str, Any]] = mapped_column(JSON)  # sources and what else undo needs


class TagChangeItem(Model):
    """An item that lost a tag by such a change."""

    __tablename__ = "tag_change_items"

    change_id: Mapped[int] = mapped_column(
        ForeignKey("tag_changes.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    tag_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # the tag it lost
    item_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    had_target: Mapped[bool]  # it had the target of the merge before
    tagged_at: Mapped[datetime]


# Why an item was not enriched by the model.


class EnrichmentNotice(StrEnum):
    OVER_QUOTA = "OVER_QUOTA"
    SUGGESTIONS_OFF = "SUGGESTIONS_OFF"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    MODEL_TOO_SLOW = "MODEL_TOO_SLOW"
    MODEL_NOT_UNDERSTOOD = "MODEL_NOT_UNDERSTOOD"


# The AI quota: a counter per user and day, and the ledger that explains it.


class LedgerEntryKind(StrEnum):
    CHARGE = "charge"
    REFUND = "refund"


class QuotaDay(Model):
    """Usage of a user on a UTC day. The limit is their plan's unless this day has its own."""

    __tablename__ = "quota_days"
    __table_args__ = (CheckConstraint("used >= 0", name="used"),)

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    used: Mapped[int] = mapped_column(default=0)
    limit_override: Mapped[int | None]
    updated_at: Mapped[datetime]


class LedgerEntry(Model):
    """A charge or its refund. Rows are only added: at most one of each kind per job."""

    __tablename__ = "usage_ledger"
    __table_args__ = (
        UniqueConstraint("job_id", "kind"),
        CheckConstraint("kind IN ('charge', 'refund')", name="kind"),
        Index("ix_usage_ledger_user", "user_id", "day", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    day: Mapped[date] = mapped_column(Date)  # the day that was charged
    kind: Mapped[str] = mapped_column(String(10))
    action: Mapped[str] = mapped_column(String(50))
    job_id: Mapped[int]
    item_id: Mapped[int]
    units: Mapped[int]
    model: Mapped[str] = mapped_column(String(100))
    reason: Mapped[str | None] = mapped_column(String(50))
    created_at: Mapped[datetime]


class LibraryUsage(Model):
    """The number of items a user has and of bytes they take, updated with every change.

    A user without a row has not been measured yet: the first change does so.
    """

    __tablename__ = "library_usage"
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    items: Mapped[int]
    bytes: Mapped[int]
