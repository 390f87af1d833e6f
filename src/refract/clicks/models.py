"""Clicks as they are kept in the database, and how far each spool has been read."""

from datetime import datetime

from sqlalchemy import Double, Index, Integer, LargeBinary, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import TABLE_OPTIONS, Model, UtcSeconds, long_bytes, text_key


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
    browser_version: Mapped[str | None] = mapped_column(String(30))
    system: Mapped[str | None] = mapped_column(String(100))
    system_version: Mapped[str | None] = mapped_column(String(30))


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
    torn: Mapped[
        int
    ]  # bytes of a frame that a dying writer left unfinished: its redirect was never sent
    damaged: Mapped[int]  # bytes that could not be read, kept aside
    updated_at: Mapped[datetime]


class ListTotals(Model):
    """How often a list's page was seen or one of its entries followed; no row means never. Written by the ingester alone."""

    __tablename__ = "list_totals"

    target_id: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False
    )  # a list's or an entry's
    total_clicks: Mapped[int] = mapped_column(default=0)
    bot_clicks: Mapped[int] = mapped_column(default=0)
    last_clicked_at: Mapped[datetime | None]


class ClickRollup(Model):
    """What happened to one target in one stretch of time. Stretches of different grain overlap: never add up two grains.

    `people` counts the private ones among them, who are in no unique and in no breakdown.
    """

    __tablename__ = "click_rollups"
    __table_args__ = (Index("ix_click_rollups_start", "grain", "start", "target_id"), TABLE_OPTIONS)

    target_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    grain: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    start: Mapped[datetime] = mapped_column(UtcSeconds, primary_key=True, autoincrement=False)
    people: Mapped[int]
    bots: Mapped[int]
    private: Mapped[int]
    uniques: Mapped[int]  # of a month: its days added up
    visitors: Mapped[bytes | None] = mapped_column(long_bytes())  # the sketch; none in months
    parts: Mapped[bytes | None] = mapped_column(long_bytes())  # the breakdowns
    # Of days that are over: what they look like from either end, the most frequent values where there are very many, and how many clicks
    # they had when that was found out. Clicks that came since make the numbers differ; then it says nothing.
    settled_clicks: Mapped[int | None]
    edges: Mapped[bytes | None] = mapped_column(long_bytes())
    tops: Mapped[bytes | None] = mapped_column(long_bytes())


class RollupState(Model):
    """One row: who writes roll-ups holds its lock, and whoever holds it knows how far everything is."""

    __tablename__ = "rollup_state"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    turn: Mapped[
        int
    ]  # moved by every change of roll-ups, so that a writer knows whether somebody else was here
    closed_until: Mapped[datetime] = mapped_column(
        UtcSeconds
    )  # hours before this are in hours, six hours, days and months too
    closed_target: Mapped[int]  # of the hour that begins there, the targets up to this one
    quarters_from: Mapped[datetime] = mapped_column(
        UtcSeconds
    )  # before these there is nothing any more
    days_from: Mapped[datetime] = mapped_column(UtcSeconds)
    months_from: Mapped[datetime] = mapped_column(UtcSeconds)
    outlived: Mapped[int]  # clicks that are in no roll-up any more
    settled_until: Mapped[datetime | None] = mapped_column(
        UtcSeconds
    )  # days before this have their edges
    settled_target: Mapped[int | None]  # of the day that begins there, the targets up to this one


class VisitorSalt(Model):
    """What makes visitors of a day countable, and unrecognisable once it is destroyed."""

    __tablename__ = "visitor_salts"

    day: Mapped[datetime] = mapped_column(UtcSeconds, primary_key=True, autoincrement=False)
    salt: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
