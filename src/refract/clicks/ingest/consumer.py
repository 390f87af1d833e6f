"""Ingest from the stream into the database, each click exactly once.

The checkpoint of a spool decides whether a batch is applied, no matter who delivers it and how
often.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from refract.clicks.ingest import stream
from refract.clicks.ingest.ingester import MAX_BATCH_SIZE, RETRY_INTERVAL, Ingester
from refract.clicks.ingest.stream import CONSUMER_GROUP, STREAM_KEY, StreamBatch
from refract.clicks.ingest.transaction import CheckpointMoved
from refract.clicks.spool.reader import SpoolPosition
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.redis import RedisClient, RedisUnavailable
from refract.core.runtime import Runtime

READ_COUNT = 32
BLOCK_MS = 1000
CLAIM_IDLE_MS = 5000
"""Idle time after which another consumer claims an unacknowledged entry."""

MAINTENANCE_INTERVAL = 1.0
CONSUMER_EXPIRY_MS = 3_600_000
MAX_EARLY_ENTRIES = 256
EARLY_RETRY_INTERVAL = 0.05


@dataclass(frozen=True, slots=True)
class StreamEntry:
    id: bytes
    batch: StreamBatch


class StreamConsumer:
    """One of any number of consumers of the stream."""

    def __init__(self, rt: Runtime, redis: RedisClient, ingester: Ingester) -> None:
        self._rt = rt
        self._redis = redis
        self._ingester = ingester
        self._name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(3)}"
        self._positions: dict[int, SpoolPosition] = {}
        self._early: dict[bytes, StreamEntry] = {}
        self._refreshed_spools: set[int] = set()
        self._maintained_at = float("-inf")
        self._group_created = False
        self._log = structlog.get_logger("refract.consume")
        self._errors = ErrorThrottle(self._log, "clicks_delayed")
        self._taken = rt.metrics.counter(
            "refract_stream_clicks", "Clicks read from the stream and stored"
        )
        self._length = rt.metrics.gauge("refract_stream_length", "Batches of clicks on the stream")

    async def run(self) -> None:
        """Store clicks until cancelled. Retries while Redis or the database is unavailable."""
        while True:
            try:
                await self.run_once()
                self._errors.clear()
            except RedisUnavailable:
                self._group_created = False
                await asyncio.sleep(RETRY_INTERVAL)
            except Unavailable as exc:
                self._positions.clear()
                self._errors.report(exc)
                await asyncio.sleep(RETRY_INTERVAL)

    async def run_once(self, block_ms: int = BLOCK_MS) -> int:
        """Read entries, waiting up to `block_ms`; return the number of clicks stored."""
        if not self._group_created:
            await stream.create_group(self._redis)
            self._group_created = True
        due = self._rt.clock.monotonic() >= self._maintained_at + MAINTENANCE_INTERVAL
        taken = await self._claim_idle() if due else []
        early = bool(self._early)
        # However many wait: the entry they wait for may be behind them.
        new = await self._read(1 if early else block_ms)
        known = {entry.id: entry for entry in (*self._early.values(), *taken, *new)}
        self._early = {}
        self._refreshed_spools.clear()
        stored = await self._store_entries(sorted(known.values(), key=_get_sort_key))
        if len(self._early) > MAX_EARLY_ENTRIES:
            soonest = sorted(self._early.items(), key=lambda item: _get_sort_key(item[1]))[
                :MAX_EARLY_ENTRIES
            ]
            self._early = dict(soonest)  # the others are claimed later
        if self._early:
            await asyncio.sleep(EARLY_RETRY_INTERVAL)  # another consumer has the batch before them
        if due:  # decided once: waiting for a second above must not cause trimming without claiming
            await self._maintain_stream()
        return stored

    async def _read(self, block_ms: int) -> list[StreamEntry]:
        words = (
            "GROUP",
            CONSUMER_GROUP,
            self._name,
            "COUNT",
            READ_COUNT,
            "BLOCK",
            block_ms,
            "STREAMS",
            STREAM_KEY,
            ">",
        )
        answer = await self._redis.execute(
            "XREADGROUP", *words, seconds=block_ms / 1000 + stream.STREAM_TIMEOUT
        )
        return await self._parse_entries(answer[0][1]) if answer else []

    async def _claim_idle(self) -> list[StreamEntry]:
        """Claim entries of consumers that died or are too slow."""
        words = (STREAM_KEY, CONSUMER_GROUP, self._name, CLAIM_IDLE_MS, "0", "COUNT", READ_COUNT)
        answer = await self._redis.execute("XAUTOCLAIM", *words, seconds=stream.STREAM_TIMEOUT)
        return await self._parse_entries(answer[1])

    async def _parse_entries(self, raw_entries: Iterable[list[object]]) -> list[StreamEntry]:
        entries = []
        for number, fields in raw_entries:
            assert isinstance(number, bytes)  # noqa: S101 - guaranteed by the protocol
            try:
                batch = stream.parse_entry(fields)  # type: ignore[arg-type]
                entries.append(StreamEntry(number, batch))
            except (ValueError, KeyError, TypeError):
                self._log.error("stream_entry_rejected", entry=number.decode())
                # The node that sent it still has its clicks and reports the difference.
                await self._acknowledge([number])
        return entries

    async def _store_entries(self, entries: list[StreamEntry]) -> int:
        stored, at = 0, 0
        while at < len(entries):
            first, ids = entries[at], [entries[at].id]
            parcel = first.batch
            at += 1
            while (
                at < len(entries)
                and (more := parcel.join(entries[at].batch, MAX_BATCH_SIZE)) is not None
            ):
                parcel = more
                ids.append(entries[at].id)
                at += 1
            number = await self._apply_batch(parcel)
            if number is None:
                self._early |= {entry.id: entry for entry in entries if entry.id in set(ids)}
                continue
            stored += number
            self._taken.inc(number)
            await self._acknowledge(ids)
        return stored

    async def _apply_batch(self, parcel: StreamBatch) -> int | None:
        """Apply a batch; return the number of new clicks, None if an earlier batch is missing."""
        for _ in range(2):
            position = self._positions.get(parcel.spool_id) or await self._load_position(parcel)
            if (
                position < parcel.start or position >= parcel.batch.next
            ) and parcel.spool_id not in self._refreshed_spools:
                # Others store too; checked once a round.
                position = await self._load_position(parcel)
            if position >= parcel.batch.next:
                return 0
            if position < parcel.start:
                return None
            rest = parcel.skip_to(position)
            try:
                await self._ingester.apply_batch(rest.spool, position, rest.batch)
            except CheckpointMoved:
                self._positions.pop(parcel.spool_id, None)
                continue
            self._positions[parcel.spool_id] = rest.batch.next
            return rest.batch.click_count
        return None

    async def _load_position(self, parcel: StreamBatch) -> SpoolPosition:
        if len(self._positions) > 10_000:
            self._positions.clear()
        position = self._positions[parcel.spool_id] = await self._ingester.load_checkpoint(
            parcel.spool
        )
        self._refreshed_spools.add(parcel.spool_id)
        return position

    async def _acknowledge(self, ids: list[bytes]) -> None:
        await self._redis.execute(
            "XACK", STREAM_KEY, CONSUMER_GROUP, *ids, seconds=stream.STREAM_TIMEOUT
        )

    async def _maintain_stream(self) -> None:
        self._maintained_at = self._rt.clock.monotonic()
        await stream.trim_acknowledged(self._redis)
        self._length.set(await stream.get_length(self._redis))
        await stream.delete_idle_consumers(self._redis, CONSUMER_EXPIRY_MS)


def _get_sort_key(entry: StreamEntry) -> tuple[int, SpoolPosition]:
    """Return the order of the spool, not that of arrival.

    A batch that was lost and sent again arrives last, and all later ones wait for it.
    """
    return entry.batch.spool_id, entry.batch.start
