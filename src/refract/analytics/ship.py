"""A node's spool, put on the stream for others to store.

A segment is deleted when the database says that everything in it is stored, and not before: what the stream has accepted can be lost with
it. When it was, the batches are sent again; the checkpoint of the spool sees to it that none is stored twice.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from sqlalchemy import select

from refract.analytics import stream
from refract.analytics.ingest import AWAY_SECONDS, BATCH, LOOK_SECONDS, Ingester
from refract.analytics.models import SpoolCheckpoint
from refract.analytics.spool_reader import (
    Batch,
    Position,
    SpoolState,
    only_ingester,
    raw_frames,
    read_batch,
    remove_finished,
    remove_unborn,
    set_aside,
    spools,
)
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.redis import Redis, RedisAway
from refract.core.runtime import Runtime

WINDOW_BYTES = 32 << 20
"""So much of each spool may be under way; the rest waits on the node's own disk, not in Redis' memory."""

ASK_STORED_SECONDS = 1.0
ASK_LOST_SECONDS = 3.0


@dataclass(slots=True)
class Sent:
    """A batch that is under way."""

    to: Position
    entry: bytes
    size: int


@dataclass(slots=True)
class Way:
    """How far a spool has been sent, and how far it is stored."""

    stored: Position
    sent: Position
    under_way: deque[Sent] = field(default_factory=deque)
    looked_at: float = 0.0

    @property
    def size(self) -> int:
        return sum(one.size for one in self.under_way)

    def arrived(self, stored: Position) -> None:
        self.stored = max(self.stored, stored)
        self.sent = max(self.sent, self.stored)
        while self.under_way and self.under_way[0].to <= self.stored:
            self.under_way.popleft()


class Shipper:
    """Ships the spools of one directory; the lock on the directory lets one process do so. It only reads the database.

    `instead` stores them directly while Redis is away; a node that may not write leaves the directory to others meanwhile.
    """

    def __init__(self, rt: Runtime, redis: Redis, root: Path | None = None, instead: Ingester | None = None) -> None:
        self._rt = rt
        self._redis = redis
        self._root = root or rt.settings.effective_spool_dir
        self._instead = instead
        self._ways: dict[int, Way] = {}
        self._asked = float("-inf")
        self._shipped = rt.metrics.counter("refract_clicks_shipped", "Clicks that were put on the stream, those sent again included")
        self._lag = rt.metrics.gauge("refract_ship_lag_seconds", "How long clicks of this node have been waiting for a worker")
        self._caught_up: float | None = None  # until this process is the one that ships
        self._log = structlog.get_logger("refract.ship")
        self._errors = ErrorThrottle(self._log, "clicks_wait")

    async def run(self) -> None:
        """For as long as the process runs."""
        while True:
            with only_ingester(self._root) as mine:
                while mine:
                    if not await self._round():
                        break
            self._ways.clear()
            await asyncio.sleep(AWAY_SECONDS)

    async def _round(self) -> bool:
        """False: somebody else should have a try at this directory."""
        now = self._rt.clock.monotonic()
        self._caught_up = now if self._caught_up is None else self._caught_up
        self._lag.set(now - self._caught_up)
        try:
            await self.ship_all()
            if not any(way.under_way for way in self._ways.values()):
                self._caught_up = self._rt.clock.monotonic()
                self._lag.set(0)
            self._errors.clear()
            await asyncio.sleep(LOOK_SECONDS)
        except RedisAway:
            if self._instead is None:
                return False
            await self._store_instead(self._instead)
        except Unavailable as error:
            self._errors.report(error)
            await asyncio.sleep(AWAY_SECONDS)
        return True

    async def _store_instead(self, ingester: Ingester) -> None:
        try:
            await ingester.apply_all()
            await asyncio.sleep(LOOK_SECONDS)
        except Unavailable as error:
            self._errors.report(error)
            await asyncio.sleep(AWAY_SECONDS)

    async def ship_all(self) -> int:
        """Send everything that is there now and fits; the answer is the number of clicks sent."""
        remove_unborn(self._root)
        found = spools(self._root)
        await self._hear_of_stored(found)
        sent = 0
        for spool in found:
            sent += await self._ship(spool, self._ways[spool.id])
        return sent

    async def _hear_of_stored(self, found: list[SpoolState]) -> None:
        """What the database says of these spools, asked only when it matters."""
        now = self._rt.clock.monotonic()
        unknown = any(spool.id not in self._ways for spool in found)
        if not unknown and (now < self._asked + ASK_STORED_SECONDS or not any(way.under_way for way in self._ways.values())):
            return
        self._asked = now
        async with self._rt.db.read() as session:
            rows = await session.scalars(select(SpoolCheckpoint).where(SpoolCheckpoint.spool_id.in_([spool.id for spool in found])))
            stored = {row.spool_id: Position(row.segment, row.place) for row in rows}
        for spool in found:
            position = stored.get(spool.id, Position())
            self._ways.setdefault(spool.id, Way(position, position)).arrived(position)

    async def _ship(self, spool: SpoolState, way: Way) -> int:
        await self._look_for_lost(way)
        number = 0
        while way.size < WINDOW_BYTES:
            batch = read_batch(spool, way.sent, BATCH)
            if batch.next == way.sent:
                break
            number += await self._send(spool, way, batch)
        if remove_finished(spool, way.stored):
            del self._ways[spool.id]
        return number

    async def _send(self, spool: SpoolState, way: Way, batch: Batch) -> int:
        if batch.damage is not None:
            aside = set_aside(spool, batch.damage)
            self._log.error("clicks_unreadable", kept_in=str(aside), size=batch.damage.size)
        frames = raw_frames(spool, batch)
        entry = await stream.send(self._redis, stream.Parcel(spool.id, spool.node[:64], way.sent, batch), frames)
        way.under_way.append(Sent(batch.next, entry, len(frames)))
        way.sent = batch.next
        self._shipped.inc(len(batch.clicks))
        return len(batch.clicks)

    async def _look_for_lost(self, way: Way) -> None:
        """The oldest batch under way that is not stored must still be on the stream; if it is not, it is sent again, and all after it."""
        now = self._rt.clock.monotonic()
        if not way.under_way or now < way.looked_at + ASK_LOST_SECONDS:
            return
        way.looked_at = now
        if not await stream.holds(self._redis, way.under_way[0].entry):
            self._asked = float("-inf")  # it may have been stored and removed since we asked: then nothing is sent twice
            self._log.warning("stream_lost_clicks", spool=way.under_way[0].entry.decode(), batches=len(way.under_way))
            way.under_way.clear()
            way.sent = way.stored
