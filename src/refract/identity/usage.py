"""How much each API key is used: counted in memory, written in batches, limited by the hour.

The limit is kept per process and squared with Redis, or with the database, once a second, so several processes together may let
through what they answer within that second before they know of each other.
"""

import asyncio
import contextlib
from collections import Counter
from datetime import datetime

import structlog

from refract.core.db import WriteSession
from refract.core.errors import Unavailable
from refract.core.redis import RedisAway, shared_redis
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.keys import note_usage
from refract.web.limits import MemoryBuckets, RateLimited, take_up_to
from refract.web.shared_limits import take_shared

FLUSH_SECONDS = 1.0


class KeyUsage:
    """The tally of one process."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._redis = rt.part(shared_redis)
        self._per_hour = rt.settings.key_requests_per_hour
        self._buckets = MemoryBuckets(size=max(1, self._per_hour), per_second=max(1, self._per_hour) / 3600)
        self._used: Counter[int] = Counter()
        self._last: dict[int, datetime] = {}
        self._refused = 0

    def count(self, key_id: int) -> list[tuple[bytes, bytes]]:
        """Note one request; the answer is the RateLimit headers. Too many raise `RateLimited`."""
        self._used[key_id] += 1
        self._last[key_id] = self._rt.clock.now()
        if not self._per_hour:
            return []
        left = self._buckets.take(str(key_id), self._rt.clock.monotonic())
        if left < 0:
            self._used[key_id] -= 1
            raise RateLimited(limit=self._per_hour, per="an hour for each key", retry_after=self._buckets.wait(left))
        reset = int((self._per_hour - left) * 3600 / self._per_hour)
        return [
            (b"ratelimit-limit", str(self._per_hour).encode()),
            (b"ratelimit-remaining", str(int(left)).encode()),
            (b"ratelimit-reset", str(reset).encode()),
        ]

    def refused(self) -> None:
        """Somebody came with a key that is not one. The audit log gets a line per flush, not per attempt."""
        self._refused += 1

    async def flush(self) -> None:
        """Write the tally and learn what the other processes have used."""
        used, self._used = self._used, Counter()
        refused, self._refused = self._refused, 0
        if not used and not refused:
            return
        try:
            async with self._rt.db.write() as session:
                await note_usage(session, {key_id: (count, self._last[key_id]) for key_id, count in used.items() if count})
                if refused:
                    await audit.note(session, self._rt, "credentials.refused", detail=f"{refused} attempts")
                for key_id, count in sorted(used.items()):
                    if self._per_hour and count:
                        await self._square(session, key_id, count)
        except Unavailable:
            self._used.update(used)
            self._refused += refused
            raise

    async def _square(self, session: WriteSession, key_id: int, count: int) -> None:
        remaining = await self._remaining(session, key_id, count)
        self._buckets.set(str(key_id), remaining - self._used[key_id], self._rt.clock.monotonic())

    async def _remaining(self, session: WriteSession, key_id: int, count: int) -> float:
        """What all processes have left of a key's hour, by Redis if there is one and by the database otherwise."""
        if self._redis is not None:
            with contextlib.suppress(RedisAway):
                size = float(self._per_hour)
                return (await take_shared(self._redis, f"key:{key_id}", count, size=size, per_second=size / 3600))[1]
        return (await take_up_to(session, f"key:{key_id}", count, per_hour=self._per_hour, now=self._rt.clock.now()))[1]

    async def run(self) -> None:
        """Flush for as long as the process runs."""
        log = structlog.get_logger("refract.keys")
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except Unavailable as error:
                log.warning("key_usage_waits", reason=error.message)
