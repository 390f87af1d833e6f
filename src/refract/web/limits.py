"""Token buckets: exact ones in the transaction they limit, and bounded ones in memory for what may be approximate."""

from collections import OrderedDict
from datetime import datetime
from math import ceil
from typing import cast

from sqlalchemy import Table, delete, select

from refract.core.db import WriteSession
from refract.core.errors import Limited
from refract.core.rows import insert_or_skip
from refract.web.models import Bucket


class RateLimited(Limited):
    """Too many requests: {limit} are allowed {per}. Try again in {retry_after} seconds."""


async def take(session: WriteSession, name: str, cost: int, *, per_hour: int | None, now: datetime) -> int:
    """Take tokens in the caller's transaction; return what remains, or raise `RateLimited`. None sets no limit."""
    granted, remaining = await take_up_to(session, name, cost, per_hour=per_hour, now=now)
    if per_hour is not None and granted < cost:
        missing = cost - remaining - granted
        raise RateLimited(limit=per_hour, per="an hour", retry_after=ceil(missing * 3600 / max(1, per_hour)), remaining=0)
    return remaining


async def take_up_to(session: WriteSession, name: str, cost: int, *, per_hour: int | None, now: datetime) -> tuple[int, int]:
    """Take as many of `cost` tokens as there are: how many were granted and how many remain. All or nothing is `take`."""
    if per_hour is None:
        return cost, 0
    mine = select(Bucket).where(Bucket.name == name).with_for_update()
    bucket = await session.scalar(mine)
    if bucket is None:  # two may be the first at the same moment: the row is made by one of them, and waited for by the other
        await insert_or_skip(session, cast("Table", Bucket.__table__), [{"name": name, "tokens": float(per_hour), "updated_at": now}])
        bucket = (await session.scalars(mine)).one()
    elapsed = max(0.0, (now - bucket.updated_at).total_seconds())
    tokens = min(float(per_hour), bucket.tokens + elapsed * per_hour / 3600)
    granted = min(cost, int(tokens))
    bucket.tokens = tokens - granted
    bucket.updated_at = max(now, bucket.updated_at)
    await session.flush()
    return granted, int(bucket.tokens)


async def forget_full(session: WriteSession, untouched_since: datetime) -> None:
    """Buckets that have had time to fill up again mean nothing."""
    await session.execute(delete(Bucket).where(Bucket.updated_at < untouched_since))


class MemoryBuckets:
    """Buckets of one process, bounded in number: the ones longest unused are forgotten, which forgives and never accuses."""

    def __init__(self, *, size: float, per_second: float, capacity: int = 10_000) -> None:
        self.size = size
        self._per_second = per_second
        self._capacity = capacity
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> float:
        """What remains after taking one; negative when there was none, and then nothing is taken."""
        tokens, since = self._buckets.pop(name, (self.size, now))
        tokens = min(self.size, tokens + (now - since) * self._per_second)
        left = tokens - 1
        self._buckets[name] = (left if left >= 0 else tokens, now)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)
        return left

    def wait(self, left: float) -> int:
        """Seconds until one token is there."""
        return max(1, ceil(-left / self._per_second)) if left < 0 else 0

    def set(self, name: str, tokens: float, now: float) -> None:
        """Take over what the other processes have left of a bucket."""
        self._buckets[name] = (min(self.size, tokens), now)
