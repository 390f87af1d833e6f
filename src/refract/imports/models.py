"""Imports and their rows, kept for the report, to resume, and to roll back."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, long_text


class ImportStatus(StrEnum):
    RUNNING = "RUNNING"
    DONE = "DONE"
    STOPPED = "STOPPED"
    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"


class RowOutcome(StrEnum):
    WAITING = "WAITING"
    CREATED = "CREATED"
    EXISTS = "EXISTS"
    SKIPPED = "SKIPPED"  # its name leads elsewhere already
    REFUSED = "REFUSED"
    KEPT = "KEPT"  # changed since by hand, so that a roll-back left it


class ImportSubject(StrEnum):
    """What an import makes."""

    LIBRARY = "library"
    LINKS = "links"


class ImportRun(Model):
    """An import: where it came from, its progress and its counts."""

    __tablename__ = "imports"
    __table_args__ = (
        CheckConstraint(
            "status IN ('RUNNING', 'DONE', 'STOPPED', 'ROLLING_BACK', 'ROLLED_BACK')", name="status"
        ),
        Index("ix_imports_user", "user_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(20))
    name: Mapped[str | None] = mapped_column(String(255))
    status: Mapped[str] = mapped_column(String(20))
    total: Mapped[int]
    created: Mapped[int]
    existing: Mapped[int]
    refused: Mapped[int]
    # ids of tags that it created or revived: a roll-back removes those left unused
    made_tags: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    subject: Mapped[str] = mapped_column(
        String(20), default=ImportSubject.LIBRARY, server_default=ImportSubject.LIBRARY
    )
    # settings that its job needs; none for the library
    options: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # its rows have the outcome that they would have, and nothing was made
    dry_run: Mapped[bool] = mapped_column(default=False, server_default=false())
    skipped: Mapped[int] = mapped_column(default=0, server_default="0")
    kept: Mapped[int] = mapped_column(default=0, server_default="0")  # by a roll-back

    @property
    def done(self) -> int:
        """Return how many rows have an outcome."""
        return self.created + self.existing + self.skipped + self.refused


class ImportRow(Model):
    """A row of a file and its outcome."""

    __tablename__ = "import_rows"
    __table_args__ = (Index("ix_import_rows_outcome", "import_id", "outcome", "number"),)

    import_id: Mapped[int] = mapped_column(
        ForeignKey("imports.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    place: Mapped[str] = mapped_column(String(40))  # in the file
    shown: Mapped[str] = mapped_column(Text)  # an excerpt
    outcome: Mapped[str] = mapped_column(String(10))
    why: Mapped[str | None] = mapped_column(Text)
    item_id: Mapped[int | None]  # of the item or link
    content: Mapped[str | None] = mapped_column(long_text())  # until it is imported
    version: Mapped[int | None]  # of a link when it was made: a higher one was changed since
