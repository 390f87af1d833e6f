"""Tables of the HTTP toolkit."""

from datetime import datetime

from sqlalchemy import Index, SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, long_text, text_key


class StoredResponse(Model):
    """The response to a POST with an Idempotency-Key, committed with its change."""

    __tablename__ = "stored_answers"
    __table_args__ = (Index("ix_stored_answers_expires_at", "expires_at"),)

    actor: Mapped[str] = mapped_column(text_key(64), primary_key=True)
    key: Mapped[str] = mapped_column(text_key(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(text_key(64))
    status: Mapped[int | None] = mapped_column(SmallInteger)
    headers: Mapped[str | None] = mapped_column(long_text())
    body: Mapped[str | None] = mapped_column(long_text())
    expires_at: Mapped[datetime]
