"""Token buckets in the memory of one process. Pure: the caller passes the time."""

from collections import OrderedDict
from math import ceil


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
