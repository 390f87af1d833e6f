"""Cache invalidation across processes, by the feed of changes in the database.

Changes of this process apply immediately. Numbers in the feed are assigned before commits, so a
lower one may appear after a higher one: gaps are read again until no transaction can still fill
them. While the feed cannot be read, no cached entry is trusted.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence

import structlog

from refract.core.db.raw import RawReader, RawRow
from refract.core.errors import Unavailable
from refract.core.ids import encode_base62
from refract.core.redis import RedisClient, RedisUnavailable
from refract.core.runtime import Runtime
from refract.domains.table import DomainTable
from refract.links.changes import ALL_TARGETS, CHANGES_TOPIC, TargetChange
from refract.names.grammar import is_kept, name_key
from refract.redirect.cache import NegativeCache, RedirectCache
from refract.redirect.lookup import (
    KEPT_CODES_QUERY,
    TieredLookup,
    build_missing_code_key,
    build_missing_name_key,
)
from refract.redirect.redis_cache import RedisLinkCache

POLL_INTERVAL = 0.2
LISTENING_POLL_INTERVAL = 0.5
"""With PostgreSQL, notifications wake the poll; this only checks that it still responds."""

YIELD_SECONDS = 0.02
POLL_TIMEOUT = 1.0
FEED_LOST_TIMEOUT = 1.0
LEASE_SECONDS = 4.0
"""Cached entries are trusted for this long after the feed was read.

Only a process that was suspended itself is silent for longer.
"""

GAP_TIMEOUT = 30.0
MAX_ROWS = 10_000
MAX_GAPS = 500

_NEWEST_QUERY = "SELECT COALESCE(MAX(number), 0) FROM link_feed"
_CHANGES_QUERY = "SELECT number, target_id, version, names FROM link_feed WHERE number >= ?"
_CHANGES_ORDER = f" ORDER BY number LIMIT {MAX_ROWS + 1}"
_RECENT_ORDER = f" ORDER BY number DESC LIMIT {MAX_ROWS + 1}"
_RECENT_QUERY = "SELECT target_id, version FROM link_feed" + _RECENT_ORDER  # noqa: S608 - constant
FeedChange = tuple[int, int, Sequence[str]]
"""Target, version, names."""


class CacheInvalidator:
    """Keeps the caches of a process consistent with the database."""

    def __init__(
        self,
        rt: Runtime,
        reader: RawReader,
        cache: RedirectCache,
        negatives: NegativeCache,
        lookup: TieredLookup,
        domains: DomainTable,
        redis_cache: RedisLinkCache | None = None,
    ) -> None:
        self.invalidated = 0
        self.feed_lost = False
        self._rt = rt
        self._reader = reader
        self._cache = cache
        self._negatives = negatives
        self._lookup = lookup
        self._domains = domains
        self._redis_cache = redis_cache
        self._position: int | None = None
        self._gaps: dict[int, float] = {}
        self._last_read_at = self._marked_stale_at = rt.clock.monotonic()
        self._wake = asyncio.Event()
        self._log = structlog.get_logger("refract.bus")

    async def run(self, ready: asyncio.Event) -> None:
        """Poll the feed until cancelled. `ready` is set after the first poll, successful or not."""
        listening = self._rt.db.dialect == "postgresql"
        ear = asyncio.create_task(self._listen(), name="redirect-listen") if listening else None
        try:
            while True:
                well = await self.poll()
                ready.set()
                await asyncio.sleep(YIELD_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(
                        LISTENING_POLL_INTERVAL if listening and well else POLL_INTERVAL
                    ):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            if ear is not None:
                ear.cancel()
                await asyncio.gather(ear, return_exceptions=True)

    async def _listen(self) -> None:
        from refract.core.db.notifications import (  # noqa: PLC0415 - loads SQLAlchemy
            listen_for_notifications,
        )

        await listen_for_notifications(self._rt.db, CHANGES_TOPIC, self._wake.set)

    def apply_changes(self, changes: Sequence[TargetChange]) -> None:
        """Apply changes of this process, as soon as they are committed."""
        self._invalidate((change.target_id, change.version, change.names) for change in changes)

    async def poll(self) -> bool:
        """Read new rows of the feed. Return False if it cannot be read."""
        # Taken before the query: a process may be suspended until the result.
        now, began = self._rt.clock.monotonic, self._rt.clock.now_ns()
        try:
            async with asyncio.timeout(POLL_TIMEOUT):
                await (
                    self._start_following()
                    if self._position is None
                    else self._read_changes(self._position)
                )
                if self._domains.is_stale:
                    await self._domains.load(self._reader)
        except (Unavailable, TimeoutError) as exc:
            if self._position is None or now() - self._last_read_at >= FEED_LOST_TIMEOUT:
                self._on_feed_lost(str(exc))
            return False
        self._last_read_at = now()
        self._extend_lease(began)
        if self._redis_cache is not None:
            self._redis_cache.feed_stale = False
        if self.feed_lost:
            self.feed_lost = False
            self._log.info("feed_recovered")
        return True

    async def _start_following(self) -> None:
        """Start at the newest row. Entries that were cached before may be stale."""
        (newest,) = (await self._reader.fetch_rows(_NEWEST_QUERY))[0]
        await self._load_recent_versions()
        self._lookup.has_kept_codes = bool(await self._reader.fetch_rows(KEPT_CODES_QUERY))
        self._position = int(newest)
        self._gaps.clear()
        self._domains.is_stale = True
        self._invalidate_all()

    async def _load_recent_versions(self) -> None:
        """Load versions of recent changes.

        Entries of the shared cache may be older than a change made before this process listened.
        """
        if self._redis_cache is None:
            return
        rows = await self._reader.fetch_rows(_RECENT_QUERY)
        if len(rows) > MAX_ROWS:
            self._redis_cache.distrust_entries()
        for target_id, version in rows:
            self._redis_cache.note_version(target_id, version)

    async def _read_changes(self, position: int) -> None:
        gaps = f" OR number IN ({', '.join(map(str, self._gaps))})" if self._gaps else ""
        rows = await self._reader.fetch_rows(_CHANGES_QUERY + gaps + _CHANGES_ORDER, position)
        numbers = {int(row[0]) for row in rows}
        if len(rows) > MAX_ROWS or (position and position not in numbers):
            # Too many rows, or the row at our position is gone. The newest row is always kept, so
            # this process was away for longer than the feed reaches back.
            self._log.warning("feed_rows_missed", position=position)
            self._invalidate([(ALL_TARGETS, 0, ())])
            await self._start_following()
            return
        self._invalidate(
            (row[1], row[2], _parse_names(row))
            for row in rows
            if row[0] > position or row[0] in self._gaps
        )
        self._track_gaps(position, numbers)

    def _track_gaps(self, position: int, numbers: set[int]) -> None:
        now = self._rt.clock.monotonic()
        newest = max(numbers, default=position)
        self._gaps = {
            gap: since
            for gap, since in self._gaps.items()
            if gap not in numbers and now - since < GAP_TIMEOUT
        }
        if newest - position > len(numbers) + MAX_GAPS:
            self._gaps |= dict.fromkeys(range(newest - MAX_GAPS, newest), now)
        else:
            self._gaps |= {
                number: now for number in range(position + 1, newest) if number not in numbers
            }
        self._position = newest

    def _invalidate(self, changes: Iterable[FeedChange]) -> None:
        heard = False
        for target_id, version, names in changes:
            heard = True
            self.invalidated += 1
            if target_id == ALL_TARGETS and names:
                self._domains.is_stale = True
                self._wake.set()
                continue
            if self._redis_cache is not None:
                self._redis_cache.note_version(target_id, version)
            if target_id == ALL_TARGETS:
                self._cache.invalidate_all()
                self._negatives.invalidate_all()
                continue
            self._cache.invalidate(target_id)
            self._negatives.invalidate(build_missing_code_key(encode_base62(target_id)))
            for name in names:
                self._lookup.has_kept_codes = self._lookup.has_kept_codes or is_kept(name)
                self._cache.invalidate_key(name_key(name))
                self._negatives.invalidate(build_missing_name_key(name_key(name)))
                self._negatives.invalidate(build_missing_code_key(name))
        if heard:
            self._lookup.drop_inflight()

    def _on_feed_lost(self, reason: str) -> None:
        """Make all entries stale, now and once a second until the feed is back."""
        if not self.feed_lost:
            self.feed_lost = True
            if self._redis_cache is not None:
                self._redis_cache.feed_stale = True
            self._log.warning("feed_lost", reason=reason)
            self._invalidate_all()
        elif self._rt.clock.monotonic() - self._marked_stale_at >= FEED_LOST_TIMEOUT:
            self._invalidate_all()

    def _extend_lease(self, since_ns: int) -> None:
        self._cache.trusted_until_ns = since_ns + int(LEASE_SECONDS * 1e9)

    def _invalidate_all(self) -> None:
        self._marked_stale_at = self._rt.clock.monotonic()
        self._cache.mark_stale()
        self._extend_lease(self._rt.clock.now_ns())  # for entries cached from now on
        self._negatives.invalidate_all()
        self._lookup.drop_inflight()


def _parse_names(row: RawRow) -> list[str]:
    names = row[3]
    found: list[str] = json.loads(names) if isinstance(names, str | bytes) else names
    return found


# Change messages over Redis. They arrive sooner than the feed in the database and never replace it:
# a committed change updates the shared cache, then every listening process, then writes the new
# state through. A lost message costs time only, because the feed carries the same change.

CHANGES_CHANNEL = "refract:changes"
MAX_CHANGES_PER_MESSAGE = 1000
MAX_WRITE_THROUGH = 1000
"""Links of one commit that are written to the cache; others are read when requested."""

RECONNECT_INTERVAL = 1.0
WriteThrough = Callable[[str], Awaitable[None]]


class ChangeBroadcaster:
    """Publishes the commits of this process over Redis and receives those of others."""

    def __init__(self, rt: Runtime, redis: RedisClient, redis_cache: RedisLinkCache) -> None:
        self._redis = redis
        self._redis_cache = redis_cache
        self._signals = rt.signals
        self._sender_id = secrets.token_hex(8)
        self._queued: list[TargetChange] = []
        self._wake = asyncio.Event()
        self._log = structlog.get_logger("refract.news")

    async def broadcast(self, write_through: WriteThrough | None = None) -> None:
        """Publish every commit of this process until cancelled.

        `write_through` reads a name or code again and shares the result.
        """
        with self._signals.subscribe(CHANGES_TOPIC, self._queue_changes):
            while True:
                await self._wake.wait()
                self._wake.clear()
                changes, self._queued = self._queued, []
                try:
                    await self._publish(changes)
                    if write_through is not None:
                        await _write_changes(changes[:MAX_WRITE_THROUGH], write_through)
                except RedisUnavailable:
                    continue  # the feed reaches all processes, and overrides the shared cache

    async def receive(self, apply_changes: Callable[[Sequence[TargetChange]], None]) -> None:
        """Apply the changes of other processes until cancelled."""
        while True:
            with contextlib.suppress(RedisUnavailable):
                async with contextlib.aclosing(
                    self._redis.subscribe(CHANGES_CHANNEL, lambda: None)
                ) as messages:
                    async for message in messages:
                        if changes := self._parse_message(message):
                            apply_changes(changes)
            await asyncio.sleep(RECONNECT_INTERVAL)

    def _queue_changes(self, changes: Sequence[TargetChange]) -> None:
        if len(self._queued) > MAX_CHANGES_PER_MESSAGE * 10:
            self._queued.clear()  # Redis is too slow; the feed is enough
        self._queued += changes
        self._wake.set()

    async def _publish(self, changes: Sequence[TargetChange]) -> None:
        await self._redis_cache.invalidate(
            [(change.target_id, change.version) for change in changes]
        )
        for begin in range(0, len(changes), MAX_CHANGES_PER_MESSAGE):
            batch = [
                [change.target_id, change.version, list(change.names)]
                for change in changes[begin : begin + MAX_CHANGES_PER_MESSAGE]
            ]
            await self._redis.execute(
                "PUBLISH",
                CHANGES_CHANNEL,
                json.dumps([self._sender_id, batch], separators=(",", ":")),
            )

    def _parse_message(self, message: bytes) -> list[TargetChange]:
        try:
            sender, changes = json.loads(message)
            if sender == self._sender_id:
                return []
            return [
                TargetChange(int(target), int(version), tuple(map(str, names)))
                for target, version, names in changes
            ]
        except (ValueError, TypeError):
            self._log.warning("change_message_rejected")
            return []


async def _write_changes(changes: Sequence[TargetChange], write: WriteThrough) -> None:
    for change in changes:
        if change.target_id != ALL_TARGETS:
            for text in (*change.names, encode_base62(change.target_id)):
                await write(text.removeprefix("/"))
