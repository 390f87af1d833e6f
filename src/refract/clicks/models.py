"""Tables of clicks, roll-ups and spool checkpoints."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import Date, Double, Index, Integer, LargeBinary, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, UtcSeconds, long_bytes, text_key


class ClickEvent(Model):
    """An answered redirect, page view or followed entry.

    Its id is the place of its frame: spool, segment, offset. `target_id` is that of a link or a
    list entry, without a foreign key: events outlive their target.

    Facts that many events share are rows of their own. Events of version 0.1.0 and older have them
    in their own columns, so read events by `clicks.queries`.
    """

    __tablename__ = "click_events"
    __table_args__ = (
        Index("ix_click_events_target", "target_id", "at"),
        Index("ix_click_events_at", "at"),
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
    domain: Mapped[str | None] = mapped_column(text_key(253))  # NULL for the default domain
    language: Mapped[str | None] = mapped_column(text_key(3))
    rule: Mapped[str | None] = mapped_column(text_key(10))  # its number; NULL if none decided
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
    agent_id: Mapped[int | None]
    geo_id: Mapped[int | None]
    referrer_id: Mapped[int | None]
    campaign_id: Mapped[int | None]


class SharedFacts:
    """Facts that events refer to.

    The id is a hash of the values, so that writers need not agree on it. The row may be deleted
    when all events that were stored until `seen_on` have left the database.
    """

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seen_on: Mapped[date] = mapped_column(Date, index=True)


class ClickAgent(SharedFacts, Model):
    """A user agent."""

    __tablename__ = "click_agents"

    user_agent: Mapped[str | None] = mapped_column(String(512))
    browser: Mapped[str | None] = mapped_column(String(100))
    browser_version: Mapped[str | None] = mapped_column(String(30))
    system: Mapped[str | None] = mapped_column(String(100))
    system_version: Mapped[str | None] = mapped_column(String(30))


class ClickPlace(SharedFacts, Model):
    """A location of networks."""

    __tablename__ = "click_places"

    country_code: Mapped[str | None] = mapped_column(text_key(2))
    country: Mapped[str | None] = mapped_column(String(100))
    city: Mapped[str | None] = mapped_column(String(100))
    latitude: Mapped[float | None] = mapped_column(Double)
    longitude: Mapped[float | None] = mapped_column(Double)


class ClickReferrer(SharedFacts, Model):
    """A page that clicks came from."""

    __tablename__ = "click_referrers"

    referrer: Mapped[str | None] = mapped_column(String(2048))
    referrer_host: Mapped[str | None] = mapped_column(text_key(255))


class ClickCampaign(SharedFacts, Model):
    """The campaign parameters of a short URL, its domain, its visitor's language, and its rule."""

    __tablename__ = "click_campaigns"

    utm_source: Mapped[str | None] = mapped_column(String(255))
    utm_medium: Mapped[str | None] = mapped_column(String(255))
    utm_campaign: Mapped[str | None] = mapped_column(String(255))
    utm_term: Mapped[str | None] = mapped_column(String(255))
    utm_content: Mapped[str | None] = mapped_column(String(255))
    domain: Mapped[str | None] = mapped_column(text_key(253))  # NULL for the default domain
    language: Mapped[str | None] = mapped_column(text_key(3))
    rule: Mapped[str | None] = mapped_column(text_key(10))


class SpoolCheckpoint(Model):
    """The next byte of a spool to be applied.

    It is moved in the transaction that applies the bytes before it. The row outlives its spool, so
    that a file restored from a backup is not applied again.
    """

    __tablename__ = "spool_checkpoints"

    spool_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    segment: Mapped[int] = mapped_column(Integer)
    place: Mapped[int]
    node: Mapped[str] = mapped_column(String(64))
    stored: Mapped[int]
    # Bytes of a frame that a dying writer left unfinished; its redirect was never sent.
    torn: Mapped[int]
    damaged: Mapped[int]  # bytes that could not be read and were quarantined
    updated_at: Mapped[datetime]


class ListTotals(Model):
    """Views of a list's page, or clicks on one of its entries; no row means none.

    Written only by the ingester.
    """

    __tablename__ = "list_totals"

    # Of a list or an entry.
    target_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    total_clicks: Mapped[int] = mapped_column(default=0)
    bot_clicks: Mapped[int] = mapped_column(default=0)
    last_clicked_at: Mapped[datetime | None]


class ClickRollup(Model):
    """The clicks of one target in one period of one grain.

    Periods of different grains overlap: never add up two grains. `people` includes private clicks,
    which are in no unique count and no breakdown.
    """

    __tablename__ = "click_rollups"
    __table_args__ = (Index("ix_click_rollups_start", "grain", "start", "target_id"),)

    target_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    grain: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    start: Mapped[datetime] = mapped_column(UtcSeconds, primary_key=True, autoincrement=False)
    people: Mapped[int]
    bots: Mapped[int]
    private: Mapped[int]
    uniques: Mapped[int]  # of a month: the sum of its days
    visitors: Mapped[bytes | None] = mapped_column(long_bytes())  # the sketch; NULL in months
    parts: Mapped[bytes | None] = mapped_column(long_bytes())  # the breakdowns
    # Of days that are over: their cumulatives from either end, the top values where there are very
    # many, and the number of clicks when these were computed. If clicks came later, the numbers
    # differ and the three columns are ignored.
    settled_clicks: Mapped[int | None]
    edges: Mapped[bytes | None] = mapped_column(long_bytes())
    tops: Mapped[bytes | None] = mapped_column(long_bytes())


class OpenRollup(Model):
    """The clicks of one target in a quarter hour that are in no `ClickRollup` yet.

    Each writer has rows of its own; a job adds them to all grains after the end of the hour. The
    columns mean the same as there.
    """

    __tablename__ = "open_rollups"

    target_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    start: Mapped[datetime] = mapped_column(UtcSeconds, primary_key=True, autoincrement=False)
    writer: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    people: Mapped[int]
    bots: Mapped[int]
    private: Mapped[int]
    uniques: Mapped[int]
    visitors: Mapped[bytes | None] = mapped_column(long_bytes())
    parts: Mapped[bytes | None] = mapped_column(long_bytes())


class ClickPack(Model):
    """The clicks of one target in a month, as long as they are few; see `clicks.rollups.packs`.

    A UTC day of a target is either in a pack or in `ClickRollup`. A pack becomes a month when days
    are no longer kept.
    """

    __tablename__ = "click_packs"

    # The month. First, so that a month can be found and its rows are near each other.
    start: Mapped[datetime] = mapped_column(UtcSeconds, primary_key=True, autoincrement=False)
    target_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    people: Mapped[int] = mapped_column(Integer)
    bots: Mapped[int] = mapped_column(Integer)
    kind: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    data: Mapped[bytes] = mapped_column(long_bytes())


class RollupWriter(Model):
    """A number under which one process at a time writes open roll-ups.

    A process that changes rows with this number holds its lock.
    """

    __tablename__ = "rollup_writers"

    number: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    holder: Mapped[int]  # a random number of the process that wrote last
    # Incremented by every change of its rows, so that a process notices other changes.
    turn: Mapped[int]
    # No row of this number begins before this.
    oldest: Mapped[datetime] = mapped_column(UtcSeconds)


class RollupState(Model):
    """The single row whose lock every writer of `ClickRollup` holds, with the steps' progress."""

    __tablename__ = "rollup_state"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    # Incremented by every change of roll-ups, so that a writer notices other writers.
    turn: Mapped[int]
    # Clicks from this hour on are only in open roll-ups.
    closed_until: Mapped[datetime] = mapped_column(UtcSeconds)
    # Nothing is kept before these three.
    quarters_from: Mapped[datetime] = mapped_column(UtcSeconds)
    days_from: Mapped[datetime] = mapped_column(UtcSeconds)
    months_from: Mapped[datetime] = mapped_column(UtcSeconds)
    outlived: Mapped[int]  # clicks that are in no roll-up any more
    # Days before this are finalized.
    settled_until: Mapped[datetime | None] = mapped_column(UtcSeconds)
    # Targets of the day at `settled_until` up to this one are finalized as well.
    settled_target: Mapped[int | None]
    # Incremented when the roll-ups of a group of links begin, continue or end; 0 if there are none.
    groups_turn: Mapped[int | None]


class VisitorSalt(Model):
    """The salt of a day's visitor hashes. Destroying it makes the visitors unrecognisable."""

    __tablename__ = "visitor_salts"

    day: Mapped[datetime] = mapped_column(UtcSeconds, primary_key=True, autoincrement=False)
    salt: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]


class Verification(Model):
    """The result of a check whether all clicks are accounted for."""

    __tablename__ = "verifications"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    figures: Mapped[dict[str, Any]]
