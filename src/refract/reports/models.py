"""Abuse reports."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key
from refract.domains.models import MAX_HOST_LENGTH
from refract.names.grammar import join_name


class ReportReason(StrEnum):
    """Why the target was reported."""

    PHISHING = "phishing"
    MALWARE = "malware"
    SPAM = "spam"
    ILLEGAL = "illegal"
    OTHER = "other"


class ReportStatus(StrEnum):
    """Whether an administrator has decided."""

    OPEN = "open"
    CLOSED = "closed"


class Report(Model):
    """A report of a link or list. Of the reporter only a digest of the network is stored."""

    __tablename__ = "reports"
    __table_args__ = (
        CheckConstraint("kind IN ('link', 'list')", name="kind"),
        CheckConstraint("status IN ('open', 'closed')", name="status"),
        Index("ix_reports_target", "kind", "target_id", "status"),
        Index("ix_reports_status", "status", "id"),
        Index("ix_reports_closed_at", "closed_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # Snowflake
    kind: Mapped[str] = mapped_column(String(10))
    target_id: Mapped[int]  # no foreign key: a report outlives its target
    # Under which it was reported. The default domain is NULL.
    name: Mapped[str] = mapped_column(text_key(64))
    domain: Mapped[str | None] = mapped_column(text_key(MAX_HOST_LENGTH))
    reason: Mapped[str] = mapped_column(String(10))
    details: Mapped[str | None] = mapped_column(Text)
    network: Mapped[str] = mapped_column(text_key(32))  # keyed digest, to recognize repeats
    status: Mapped[str] = mapped_column(String(10))
    outcome: Mapped[str | None] = mapped_column(String(20))  # what the administrator did
    created_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    closed_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))

    @property
    def full_name(self) -> str:
        """Return the name after the host of its domain, as `names.grammar` writes it."""
        return join_name(self.domain, self.name)
