"""Usage of API keys: counted in memory, written in batches, limited per hour.

Each process keeps its own bucket and reconciles it with Redis, or with the database, once a second.
Several processes together may exceed the limit by what they answer within that second.
"""

import asyncio
import contextlib
from collections import Counter
from datetime import datetime

import structlog

from refract.core.db.session import WriteSession
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.phrases import Phrase
from refract.core.redis import RedisUnavailable, create_redis
from refract.core.runtime import Runtime
from refract.core.text import count_noun
from refract.identity import audit
from refract.identity.keys import KeyUsageRecord, record_key_usage
from refract.limits.buckets import MemoryBuckets, take_shared
from refract.limits.errors import RateLimited
from refract.limits.service import charge_up_to

FLUSH_INTERVAL = 1.0
_KEY, _USER = "key:", "bearer:"
MAX_REFUSALS = 1_000
"""Different refusals that are counted separately until the next flush."""
MAX_LISTED_REFUSALS = 10
"""Different refusals that one audit entry lists."""
RefusedCredential = tuple[str, str]


class KeyUsageTracker:
    """Counts of one process."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._redis = rt.singleton(create_redis)
        self._per_hour = rt.settings.key_requests_per_hour
        size = self._per_hour or 1
        self._buckets = MemoryBuckets(size=size, per_second=size / 3600)
        self._used: Counter[str] = Counter()
        self._last: dict[str, datetime] = {}
        self._networks: dict[int, str] = {}
        self._refused: Counter[RefusedCredential] = Counter()

    def count_key(self, key_id: int, network: str | None = None) -> list[tuple[bytes, bytes]]:
        """Count a request and return the RateLimit headers. Raises `RateLimited`."""
        if network is not None:
            self._networks[key_id] = network
        return self._count(f"{_KEY}{key_id}", Phrase("per hour and key"))

    def count_user(self, user_id: int) -> list[tuple[bytes, bytes]]:
        """Count a request with a provider's token; all tokens of a user share one limit."""
        return self._count(f"{_USER}{user_id}", Phrase("per hour and user"))

    def _count(self, name: str, per: Phrase) -> list[tuple[bytes, bytes]]:
        self._used[name] += 1
        self._last[name] = self._rt.clock.now()
        if self._per_hour is None:
            return []
        left = self._buckets.take(name, self._rt.clock.monotonic())
        if left < 0:
            self._used[name] -= 1
            raise RateLimited(
                limit=self._per_hour, per=per, retry_after=self._buckets.retry_after(left)
            )
        reset = int((self._per_hour - left) * 3600 / self._per_hour)
        return [
            (b"ratelimit-limit", str(self._per_hour).encode()),
            (b"ratelimit-remaining", str(int(left)).encode()),
            (b"ratelimit-reset", str(reset).encode()),
        ]

    def count_refusal(self, key_prefix: str, network: str) -> None:
        """Count an invalid credential. The audit log gets one entry per flush, not per attempt.

        `key_prefix` is the visible part of a key, empty for other credentials; `network` is
        anonymized.
        """
        found = (key_prefix, network)
        self._refused[
            found if found in self._refused or len(self._refused) < MAX_REFUSALS else ("", "")
        ] += 1

    async def flush(self) -> None:
        """Write the counts, and update the buckets by what other processes have used."""
        used, self._used = self._used, Counter()
        refused, self._refused = self._refused, Counter()
        if not used and not refused:
            return
        try:
            async with self._rt.db.write() as session:
                keys = {
                    int(name.removeprefix(_KEY)): name
                    for name, count in used.items()
                    if count and name.startswith(_KEY)
                }
                await record_key_usage(
                    session,
                    {
                        key_id: KeyUsageRecord(
                            used[name], self._last[name], self._networks.get(key_id)
                        )
                        for key_id, name in keys.items()
                    },
                )
                if refused:
                    prefix = next(
                        (prefix for (prefix, _), _ in refused.most_common() if prefix), None
                    )
                    await audit.record_event(
                        session,
                        self._rt,
                        "credentials.refused",
                        target=prefix,
                        detail=_format_refusals(refused),
                    )
                for name, count in sorted(used.items()):
                    if self._per_hour is not None and count:
                        await self._sync_bucket(session, name, count, self._per_hour)
        except Unavailable:
            self._used.update(used)
            self._refused.update(refused)
            raise

    async def _sync_bucket(
        self, session: WriteSession, name: str, count: int, per_hour: int
    ) -> None:
        self._buckets.set(
            name,
            await self._take_shared_tokens(session, name, count, per_hour) - self._used[name],
            self._rt.clock.monotonic(),
        )

    async def _take_shared_tokens(
        self, session: WriteSession, name: str, count: int, per_hour: int
    ) -> float:
        """Return the tokens that all processes have left, from Redis or else from the database."""
        if self._redis is not None:
            with contextlib.suppress(RedisUnavailable):
                size = float(per_hour)
                return (
                    await take_shared(self._redis, name, count, size=size, per_second=size / 3600)
                )[1]
        return (
            await charge_up_to(session, name, count, per_hour=per_hour, now=self._rt.clock.now())
        )[1]

    async def run(self) -> None:
        """Flush periodically until cancelled."""
        errors = ErrorThrottle(structlog.get_logger("refract.keys"), "key_usage_delayed")
        while True:
            await asyncio.sleep(FLUSH_INTERVAL)
            try:
                await self.flush()
                errors.clear()
            except Unavailable as exc:
                errors.report(exc)


def _format_refusals(refused: Counter[RefusedCredential]) -> str:
    """Return the number of attempts, in total and by key prefix and network."""
    listed = refused.most_common(MAX_LISTED_REFUSALS)
    lines = [
        f"{prefix or 'no key'} from {network or 'elsewhere'}: {count}"
        for (prefix, network), count in listed
    ]
    rest = refused.total() - sum(count for _, count in listed)
    if rest:
        lines.append(f"others: {rest}")
    return f"{count_noun(refused.total(), 'attempt')}: {'; '.join(lines)}"
