"""The assistant's budget: a counter per person and day, and the book that explains it."""

from datetime import date, datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, Date, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.types import TABLE_OPTIONS, Model


class EntryKind(StrEnum):
    CHARGE = "charge"
    REFUND = "refund"


class QuotaDay(Model):
    """What a person has used on a UTC day. The limit is their plan's unless this day has its own."""

    __tablename__ = "quota_days"
    __table_args__ = (CheckConstraint("used >= 0", name="used"), TABLE_OPTIONS)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    used: Mapped[int] = mapped_column(default=0)
    limit_override: Mapped[int | None]
    updated_at: Mapped[datetime]


class LedgerEntry(Model):
    """One charge or its refund. Rows are only ever added: at most one of each kind per job."""

    __tablename__ = "usage_ledger"
    __table_args__ = (
        UniqueConstraint("job_id", "kind"),
        CheckConstraint("kind IN ('charge', 'refund')", name="kind"),
        Index("ix_usage_ledger_user", "user_id", "day", "id"),
        TABLE_OPTIONS,
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    day: Mapped[date] = mapped_column(Date)  # the day whose counter it moved
    kind: Mapped[str] = mapped_column(String(10))
    action: Mapped[str] = mapped_column(String(50))
    job_id: Mapped[int]
    item_id: Mapped[int]
    units: Mapped[int]
    model: Mapped[str] = mapped_column(String(100))
    reason: Mapped[str | None] = mapped_column(String(50))
    created_at: Mapped[datetime]


class LibraryUsage(Model):
    """How many items a person keeps and how many bytes they take, moved in the transaction of every change.

    A person without a row has not been counted yet: the first change counts them.
    """

    __tablename__ = "library_usage"
    __table_args__ = (TABLE_OPTIONS,)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    items: Mapped[int]
    bytes: Mapped[int]
