"""Token buckets: in the memory of one process, and in Redis for all of them.

The caller passes the time.
"""

from collections import OrderedDict
from math import ceil
from typing import Final

from refract.core.redis import RedisClient, RedisScript, RedisUnavailable


class MemoryBuckets:
    """The buckets of one limit by subject.

    LRU-bounded; eviction resets a bucket in the caller's favour.
    """

    def __init__(self, *, size: float, per_second: float, capacity: int = 10_000) -> None:
        self.size = size
        self._per_second = per_second
        self._capacity = capacity
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> float:
        """Take one token and return what remains; if there is none, take nothing, return < 0."""
        tokens, since = self._buckets.pop(name, (self.size, now))
        tokens = min(self.size, tokens + (now - since) * self._per_second)
        left = tokens - 1
        self._buckets[name] = (left if left >= 0 else tokens, now)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)
        return left

    def peek(self, name: str, now: float) -> float:
        """Return what `take` would return, without taking a token."""
        tokens, since = self._buckets.get(name, (self.size, now))
        return min(self.size, tokens + (now - since) * self._per_second) - 1

    def retry_after(self, left: float) -> int:
        """Return the seconds until there is a token again, given what `take` returned."""
        return max(1, ceil(-left / self._per_second)) if left < 0 else 0

    def set(self, name: str, tokens: float, now: float) -> None:
        """Set the tokens of a bucket to what all processes together have left."""
        self._buckets[name] = (min(self.size, tokens), now)


# Token buckets in Redis. While it is unavailable, each process uses its own.

TAKE: Final = RedisScript("""
local size, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(kept[1]) or size, tonumber(kept[2]) or now
tokens = math.min(size, tokens + math.max(0, now - at) * rate)
local granted = math.min(cost, math.floor(tokens))
tokens = tokens - granted
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens),
           'at', string.format('%.6f', math.max(now, at)))
redis.call('PEXPIRE', KEYS[1], math.ceil((size - tokens) / rate * 1000) + 1000)
return {granted, string.format('%.6f', tokens)}
""")
"""Uses the clock of Redis, since those of machines differ. A bucket that is full again expires."""


async def take_shared(
    redis: RedisClient, name: str, cost: int, *, size: float, per_second: float
) -> tuple[int, float]:
    """Take up to `cost` tokens; return how many were granted, and how many remain."""
    granted, tokens = await redis.run_script(
        TAKE, [f"refract:limit:{name}"], size, per_second, cost
    )
    return int(granted), float(tokens)


class SharedBuckets:
    """The buckets of one limit, such as misses, in Redis.

    Not queried while this process alone has exhausted the limit.
    """

    def __init__(
        self, redis: RedisClient | None, kind: str, *, size: float, per_second: float
    ) -> None:
        self._redis = redis
        self._kind = kind
        self._size = size
        self._per_second = per_second
        self._own = MemoryBuckets(size=size, per_second=per_second)

    async def take(self, name: str, now: float) -> float:
        """Take one token and return what remains; negative if there was none."""
        left = self._own.take(name, now)
        if left < 0 or self._redis is None:
            return left
        try:
            granted, tokens = await take_shared(
                self._redis, f"{self._kind}:{name}", 1, size=self._size, per_second=self._per_second
            )
        except RedisUnavailable:
            return left
        self._own.set(name, tokens, now)
        return tokens if granted else tokens - 1

    def take_own(self, name: str, now: float) -> float:
        """Take one token of this process alone; return as `take`."""
        return self._own.take(name, now)

    def peek(self, name: str, now: float) -> float:
        """Return what `take` would return as far as this process knows, without taking a token."""
        return self._own.peek(name, now)

    def retry_after(self, left: float) -> int:
        """Return the seconds until there is a token again, given what `take` returned."""
        return self._own.retry_after(left)
