"""Clicks as they are kept in the database, and how far each spool has been read."""

from datetime import datetime

from sqlalchemy import Double, Index, Integer, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.types import TABLE_OPTIONS, Model, text_key


class ClickEvent(Model):
    """One answered redirect, page view or followed entry. Its id is where its frame lay: spool, segment, offset.

    `target_id` is a link's or a list entry's, without a foreign key: history stays when its target goes.
    """

    __tablename__ = "click_events"
    __table_args__ = (
        Index("ix_click_events_target", "target_id", "at"),
        Index("ix_click_events_country", "country_code", "at"),
        Index("ix_click_events_at", "at"),
        TABLE_OPTIONS,
    )

    spool_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    segment: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    kind: Mapped[int] = mapped_column(SmallInteger)
    target_id: Mapped[int]
    bot: Mapped[bool]
    private: Mapped[bool]
    node: Mapped[str] = mapped_column(String(64))
    network: Mapped[str | None] = mapped_column(String(45))
    user_agent: Mapped[str | None] = mapped_column(String(512))
    referrer: Mapped[str | None] = mapped_column(String(2048))
    referrer_host: Mapped[str | None] = mapped_column(text_key(255))
    utm_source: Mapped[str | None] = mapped_column(String(255))
    utm_medium: Mapped[str | None] = mapped_column(String(255))
    utm_campaign: Mapped[str | None] = mapped_column(String(255))
    utm_term: Mapped[str | None] = mapped_column(String(255))
    utm_content: Mapped[str | None] = mapped_column(String(255))
    country_code: Mapped[str | None] = mapped_column(text_key(2))
    country: Mapped[str | None] = mapped_column(String(100))
    city: Mapped[str | None] = mapped_column(String(100))
    latitude: Mapped[float | None] = mapped_column(Double)
    longitude: Mapped[float | None] = mapped_column(Double)
    device: Mapped[str] = mapped_column(String(10))
    browser: Mapped[str | None] = mapped_column(String(100))
    system: Mapped[str | None] = mapped_column(String(100))


class SpoolCheckpoint(Model):
    """The next byte of a spool to be applied, moved in the transaction that applies what lies before it.

    The row outlives its spool, so that a file which comes back from a backup is not applied again.
    """

    __tablename__ = "spool_checkpoints"

    spool_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    segment: Mapped[int] = mapped_column(Integer)
    place: Mapped[int]
    node: Mapped[str] = mapped_column(String(64))
    stored: Mapped[int]
    torn: Mapped[int]  # bytes of a frame that a dying writer left unfinished: its redirect was never sent
    damaged: Mapped[int]  # bytes that could not be read, kept aside
    updated_at: Mapped[datetime]


class ListTotals(Model):
    """How often a list's page was seen or one of its entries followed; no row means never. Written by the ingester alone."""

    __tablename__ = "list_totals"

    target_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # a list's or an entry's
    total_clicks: Mapped[int] = mapped_column(default=0)
    bot_clicks: Mapped[int] = mapped_column(default=0)
    last_clicked_at: Mapped[datetime | None]
