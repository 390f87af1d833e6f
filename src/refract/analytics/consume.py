"""From the stream to the database, each click exactly once: the checkpoint of its spool decides, whoever brings it and how often."""

import asyncio
import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from refract.analytics import stream
from refract.analytics.frames import Broken
from refract.analytics.ingest import AWAY_SECONDS, BATCH, CheckpointMoved, Ingester
from refract.analytics.spool_reader import Position
from refract.analytics.stream import GROUP, STREAM, Parcel
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.redis import Redis, RedisAway
from refract.core.runtime import Runtime

COUNT = 32
BLOCK_MS = 1000
IDLE_MS = 5000
"""What a consumer has had for so long without acknowledging it, another takes over."""

TEND_SECONDS = 1.0
FORGET_MS = 3_600_000
MOST_EARLY = 256
EARLY_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Entry:
    id: bytes
    parcel: Parcel


class Consumer:
    """One of any number of readers of the stream."""

    def __init__(self, rt: Runtime, redis: Redis, ingester: Ingester) -> None:
        self._rt = rt
        self._redis = redis
        self._ingester = ingester
        self._name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(3)}"
        self._positions: dict[int, Position] = {}
        self._early: dict[bytes, Entry] = {}
        self._asked: set[int] = set()
        self._tended = float("-inf")
        self._begun = False
        self._log = structlog.get_logger("refract.consume")
        self._errors = ErrorThrottle(self._log, "clicks_wait")
        self._taken = rt.metrics.counter("refract_stream_clicks", "Clicks that were taken from the stream and stored")
        self._length = rt.metrics.gauge("refract_stream_length", "Batches of clicks on the stream")

    async def run(self) -> None:
        """Store what comes for as long as the process runs; a Redis or a database that is away is waited for."""
        while True:
            try:
                await self.round()
                self._errors.clear()
            except RedisAway:
                self._begun = False
                await asyncio.sleep(AWAY_SECONDS)
            except Unavailable as error:
                self._positions.clear()
                self._errors.report(error)
                await asyncio.sleep(AWAY_SECONDS)

    async def round(self, block_ms: int = BLOCK_MS) -> int:
        """Take what has come, waiting a while for it; the answer is the number of clicks stored."""
        if not self._begun:
            await stream.begin(self._redis)
            self._begun = True
        due = self._rt.clock.monotonic() >= self._tended + TEND_SECONDS
        taken = await self._take_over() if due else []
        early = bool(self._early)
        new = await self._read(1 if early else block_ms)  # however many wait: what they wait for may be behind them
        known = {entry.id: entry for entry in (*self._early.values(), *taken, *new)}
        self._early = {}
        self._asked.clear()
        stored = await self._store(sorted(known.values(), key=_order))
        if len(self._early) > MOST_EARLY:
            soonest = sorted(self._early.items(), key=lambda item: _order(item[1]))[:MOST_EARLY]
            self._early = dict(soonest)  # the others are taken over later
        if self._early:
            await asyncio.sleep(EARLY_PAUSE)  # somebody else has what comes before them
        if due:  # decided once: whoever waited for news for a second must not trim in place of taking over
            await self._tend()
        return stored

    async def _read(self, block_ms: int) -> list[Entry]:
        words = ("GROUP", GROUP, self._name, "COUNT", COUNT, "BLOCK", block_ms, "STREAMS", STREAM, ">")
        answer = await self._redis.ask("XREADGROUP", *words, seconds=block_ms / 1000 + stream.SEND_SECONDS)
        return await self._understood(answer[0][1]) if answer else []

    async def _take_over(self) -> list[Entry]:
        """What processes that died, or were too slow, have left."""
        words = (STREAM, GROUP, self._name, IDLE_MS, "0", "COUNT", COUNT)
        answer = await self._redis.ask("XAUTOCLAIM", *words, seconds=stream.SEND_SECONDS)
        return await self._understood(answer[1])

    async def _understood(self, told: Iterable[list[object]]) -> list[Entry]:
        entries = []
        for number, fields in told:
            assert isinstance(number, bytes)  # noqa: S101 - the protocol's word
            try:
                entries.append(Entry(number, stream.received(fields)))  # type: ignore[arg-type]
            except (ValueError, KeyError, TypeError, Broken):
                self._log.error("stream_entry_not_understood", entry=number.decode())
                await self._acknowledge([number])  # the node that sent it still has its clicks, and says so in its figures
        return entries

    async def _store(self, entries: list[Entry]) -> int:
        stored, at = 0, 0
        while at < len(entries):
            first, ids = entries[at], [entries[at].id]
            parcel = first.parcel
            at += 1
            while at < len(entries) and (more := parcel.joined(entries[at].parcel, BATCH)) is not None:
                parcel = more
                ids.append(entries[at].id)
                at += 1
            number = await self._apply(parcel)
            if number is None:
                self._early |= {entry.id: entry for entry in entries if entry.id in set(ids)}
                continue
            stored += number
            self._taken.inc(number)
            await self._acknowledge(ids)
        return stored

    async def _apply(self, parcel: Parcel) -> int | None:
        """How many clicks were new; None when something that comes before them is not stored yet."""
        for _ in range(2):
            position = self._positions.get(parcel.spool_id) or await self._ask_position(parcel)
            if (position < parcel.begins or position >= parcel.batch.next) and parcel.spool_id not in self._asked:
                position = await self._ask_position(parcel)  # others store too; asked once a round
            if position >= parcel.batch.next:
                return 0
            if position < parcel.begins:
                return None
            rest = parcel.rest(position)
            try:
                await self._ingester.apply(rest.spool, position, rest.batch)
            except CheckpointMoved:
                self._positions.pop(parcel.spool_id, None)
                continue
            self._positions[parcel.spool_id] = rest.batch.next
            return len(rest.batch.clicks)
        return None

    async def _ask_position(self, parcel: Parcel) -> Position:
        if len(self._positions) > 10_000:
            self._positions.clear()
        position = self._positions[parcel.spool_id] = await self._ingester.checkpoint(parcel.spool)
        self._asked.add(parcel.spool_id)
        return position

    async def _acknowledge(self, ids: list[bytes]) -> None:
        await self._redis.ask("XACK", STREAM, GROUP, *ids, seconds=stream.SEND_SECONDS)

    async def _tend(self) -> None:
        self._tended = self._rt.clock.monotonic()
        await stream.trim(self._redis)
        self._length.set(await stream.length(self._redis))
        await stream.forget_gone_consumers(self._redis, FORGET_MS)


def _order(entry: Entry) -> tuple[int, Position]:
    """As they lie in their spool, not as they came: what was lost and sent again comes last, and everything else waits for it."""
    return entry.parcel.spool_id, entry.parcel.begins
