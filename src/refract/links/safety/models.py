"""The tables of blocked domains and of results of checks."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key


class UrlVerdict(StrEnum):
    SAFE = "safe"
    BAD = "bad"


class BlockedDomain(Model):
    """A domain that links may not lead to, nor to its subdomains."""

    __tablename__ = "blocked_domains"
    __table_args__ = (Index("ix_blocked_domains_blocked_at", "blocked_at", "domain"),)

    domain: Mapped[str] = mapped_column(text_key(253), primary_key=True)
    reason: Mapped[str] = mapped_column(String(500), default="")
    blocked_by: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    blocked_at: Mapped[datetime]


class BlockEpoch(Model):
    """One row with a number that grows with every change, so that stale copies are detected."""

    __tablename__ = "block_epoch"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    epoch: Mapped[int]


class UrlCheck(Model):
    """The result of a check, by the URL's digest, until it expires."""

    __tablename__ = "url_checks"
    __table_args__ = (
        CheckConstraint("verdict IN ('safe', 'bad')", name="verdict"),
        Index("ix_url_checks_expires_at", "expires_at"),
    )

    url_hash: Mapped[str] = mapped_column(text_key(64), primary_key=True)
    verdict: Mapped[str] = mapped_column(String(10))
    threat: Mapped[str | None] = mapped_column(String(60))
    expires_at: Mapped[datetime]
