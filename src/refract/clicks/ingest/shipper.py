"""Shipping of a node's spools to the stream, for other nodes to store.

A segment is deleted only when the database says that all of it is stored, since the stream can lose
what it has accepted. Lost batches are sent again; the spool's checkpoint prevents storing one
twice.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from sqlalchemy import select

from refract.clicks.ingest import stream
from refract.clicks.ingest.ingester import BATCH_SIZE, POLL_INTERVAL, RETRY_INTERVAL, Ingester
from refract.clicks.models import SpoolCheckpoint
from refract.clicks.spool.reader import (
    SpoolBatch,
    SpoolPosition,
    SpoolState,
    list_spools,
    lock_ingester,
    quarantine_damage,
    read_batch,
    remove_finished,
    remove_temp_spools,
)
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.redis import RedisClient, RedisUnavailable
from refract.core.runtime import Runtime

WINDOW_BYTES = 32 << 20
"""Bytes of each spool that may be in flight.

The rest waits on the node's own disk, not in Redis' memory.
"""

STORED_POLL_INTERVAL = 1.0
LOST_POLL_INTERVAL = 3.0


@dataclass(slots=True)
class SentBatch:
    """A batch that is in flight."""

    end: SpoolPosition
    entry_id: bytes
    size: int


@dataclass(slots=True)
class ShippingProgress:
    """How far a spool has been sent, and how far it is stored."""

    stored: SpoolPosition
    sent: SpoolPosition
    in_flight: deque[SentBatch] = field(default_factory=deque)
    checked_at: float = 0.0

    @property
    def size(self) -> int:
        return sum(sent.size for sent in self.in_flight)

    def mark_stored(self, stored: SpoolPosition) -> None:
        self.stored = max(self.stored, stored)
        self.sent = max(self.sent, self.stored)
        while self.in_flight and self.in_flight[0].end <= self.stored:
            self.in_flight.popleft()


class SpoolShipper:
    """Ships the spools of one directory, as the only process, by a lock. Only reads the database.

    `fallback` stores clicks directly while Redis is unavailable. A node that may not write to the
    database has none and leaves the directory to others meanwhile.
    """

    def __init__(
        self,
        rt: Runtime,
        redis: RedisClient,
        root: Path | None = None,
        fallback: Ingester | None = None,
    ) -> None:
        self._rt = rt
        self._redis = redis
        self._root = root or rt.settings.effective_spool_dir
        self._fallback = fallback
        self._progress: dict[int, ShippingProgress] = {}
        self._stored_polled_at = float("-inf")
        self._shipped = rt.metrics.counter(
            "refract_clicks_shipped",
            "Clicks put on the stream, including those sent again",
        )
        self._lag = rt.metrics.gauge(
            "refract_ship_lag_seconds",
            "How long clicks of this node have been waiting for a worker",
        )
        self._caught_up_at: float | None = None  # None until this process is the one that ships
        self._log = structlog.get_logger("refract.ship")
        self._errors = ErrorThrottle(self._log, "clicks_delayed")

    async def run(self) -> None:
        """Ship clicks until cancelled."""
        while True:
            with lock_ingester(self._root) as mine:
                while mine:
                    if not await self._run_once():
                        break
            self._progress.clear()
            await asyncio.sleep(RETRY_INTERVAL)

    async def _run_once(self) -> bool:
        """Ship what is there; return False if another process should try this directory."""
        now = self._rt.clock.monotonic()
        self._caught_up_at = now if self._caught_up_at is None else self._caught_up_at
        self._lag.set(now - self._caught_up_at)
        try:
            await self.ship_all()
            if not any(progress.in_flight for progress in self._progress.values()):
                self._caught_up_at = self._rt.clock.monotonic()
                self._lag.set(0)
            self._errors.clear()
            await asyncio.sleep(POLL_INTERVAL)
        except RedisUnavailable:
            if self._fallback is None:
                return False
            await self._ingest_directly(self._fallback)
        except Unavailable as exc:
            self._errors.report(exc)
            await asyncio.sleep(RETRY_INTERVAL)
        return True

    async def _ingest_directly(self, ingester: Ingester) -> None:
        try:
            await ingester.apply_all()
            await asyncio.sleep(POLL_INTERVAL)
        except Unavailable as exc:
            self._errors.report(exc)
            await asyncio.sleep(RETRY_INTERVAL)

    async def ship_all(self) -> int:
        """Send everything that is there and fits; return the number of clicks sent."""
        remove_temp_spools(self._root)
        found = list_spools(self._root)
        await self._update_stored(found)
        sent = 0
        for spool in found:
            sent += await self._ship_spool(spool, self._progress[spool.id])
        return sent

    async def _update_stored(self, found: list[SpoolState]) -> None:
        """Load the checkpoints of these spools, when they matter."""
        now = self._rt.clock.monotonic()
        unknown = any(spool.id not in self._progress for spool in found)
        if not unknown and (
            now < self._stored_polled_at + STORED_POLL_INTERVAL
            or not any(progress.in_flight for progress in self._progress.values())
        ):
            return
        self._stored_polled_at = now
        async with self._rt.db.read() as session:
            rows = await session.scalars(
                select(SpoolCheckpoint).where(
                    SpoolCheckpoint.spool_id.in_([spool.id for spool in found])
                )
            )
            stored = {row.spool_id: SpoolPosition(row.segment, row.place) for row in rows}
        for spool in found:
            position = stored.get(spool.id, SpoolPosition())
            self._progress.setdefault(spool.id, ShippingProgress(position, position)).mark_stored(
                position
            )

    async def _ship_spool(self, spool: SpoolState, progress: ShippingProgress) -> int:
        await self._resend_lost(progress)
        number = 0
        while progress.size < WINDOW_BYTES:
            batch = read_batch(spool, progress.sent, BATCH_SIZE)
            if batch.next == progress.sent:
                break
            number += await self._send_batch(spool, progress, batch)
        if remove_finished(spool, progress.stored):
            del self._progress[spool.id]
        return number

    async def _send_batch(
        self, spool: SpoolState, progress: ShippingProgress, batch: SpoolBatch
    ) -> int:
        if batch.damage is not None:
            aside = quarantine_damage(spool, batch.damage)
            self._log.error("clicks_quarantined", kept_in=str(aside), size=batch.damage.size)
        entry = await stream.send_batch(
            self._redis, stream.StreamBatch(spool.id, spool.node[:64], progress.sent, batch)
        )
        progress.in_flight.append(SentBatch(batch.next, entry, len(batch.frames)))
        progress.sent = batch.next
        self._shipped.inc(batch.click_count)
        return batch.click_count

    async def _resend_lost(self, progress: ShippingProgress) -> None:
        """Send again from the oldest batch in flight if the stream has lost it."""
        now = self._rt.clock.monotonic()
        if not progress.in_flight or now < progress.checked_at + LOST_POLL_INTERVAL:
            return
        progress.checked_at = now
        if not await stream.has_entry(self._redis, progress.in_flight[0].entry_id):
            # It may have been stored and removed since the last poll; then nothing is sent twice.
            self._stored_polled_at = float("-inf")
            self._log.warning(
                "stream_batches_lost",
                spool=progress.in_flight[0].entry_id.decode(),
                batches=len(progress.in_flight),
            )
            progress.in_flight.clear()
            progress.sent = progress.stored
