"""Table of the Parquet files that hold archived events."""

from datetime import date, datetime

from sqlalchemy import Date, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model


class ArchiveFile(Model):
    """Events of one UTC day in one file.

    The transaction that adds the row deletes the same events from the database. A day may have
    several files until they are merged. Part numbers only rise, so that of two archivers of the
    same day one fails.
    """

    __tablename__ = "click_archives"

    day: Mapped[date] = mapped_column(Date, primary_key=True)
    part: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(String(100))
    events: Mapped[int]
    link_events: Mapped[int]  # clicks on links among these
    size: Mapped[int]  # bytes
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    created_at: Mapped[datetime]
    # End of retention: the file is deleted, its number of events still counts.
    dropped_at: Mapped[datetime | None]
