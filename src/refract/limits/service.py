"""Charging: exactly, in the caller's transaction, or approximately, in memory and Redis."""

from datetime import datetime
from math import ceil

from sqlalchemy import delete, select

from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.redis import create_redis
from refract.core.runtime import Runtime
from refract.limits.errors import RateLimited
from refract.limits.models import LimitBucket
from refract.limits.redis import SharedBuckets

HOUR_SECONDS = 3600


async def charge(
    session: WriteSession, name: str, cost: int, *, per_hour: int | None, now: datetime
) -> int:
    """Take `cost` tokens and return what remains, or raise `RateLimited`. None sets no limit."""
    granted, remaining = await charge_up_to(session, name, cost, per_hour=per_hour, now=now)
    if per_hour is not None and granted < cost:
        missing = cost - remaining - granted
        retry_after = ceil(missing * HOUR_SECONDS / max(1, per_hour))
        raise RateLimited(limit=per_hour, per="an hour", retry_after=retry_after, remaining=0)
    return remaining


async def charge_up_to(
    session: WriteSession, name: str, cost: int, *, per_hour: int | None, now: datetime
) -> tuple[int, int]:
    """Take up to `cost` tokens; return how many were granted, and how many remain. None sets no limit."""
    if per_hour is None:
        return cost, 0
    query = select(LimitBucket).where(LimitBucket.name == name).with_for_update()
    bucket = await session.scalar(query)
    if (
        bucket is None
    ):  # two callers may be the first at the same moment: one inserts the row, the other waits for it
        row = {"name": name, "tokens": float(per_hour), "updated_at": now}
        await insert_if_absent(session, LimitBucket, [row])
        bucket = (await session.scalars(query)).one()
    elapsed = max(0.0, (now - bucket.updated_at).total_seconds())
    tokens = min(float(per_hour), bucket.tokens + elapsed * per_hour / HOUR_SECONDS)
    granted = min(cost, int(tokens))
    bucket.tokens = tokens - granted
    bucket.updated_at = max(now, bucket.updated_at)
    await session.flush()
    return granted, int(bucket.tokens)


async def delete_idle_buckets(session: WriteSession, untouched_since: datetime) -> None:
    """Delete buckets that have had time to fill up again: a missing bucket is a full one."""
    await session.execute(delete(LimitBucket).where(LimitBucket.updated_at < untouched_since))


class SharedLimit:
    """A number of calls per subject and span of time, over all processes where there is Redis. None sets no limit."""

    def __init__(
        self, rt: Runtime, kind: str, limit: int | None, *, per: str, seconds: int = 60
    ) -> None:
        """`kind` names the buckets, `per` ends the sentence "N are allowed …", `seconds` is the span of time."""
        self._clock = rt.clock
        self._limit = limit
        self._per = per
        size = limit or 1
        self._buckets = SharedBuckets(
            rt.singleton(create_redis), kind, size=size, per_second=size / seconds
        )

    async def charge(self, subject: str) -> None:
        """Count one call of a subject, such as a network or a user. Raises `RateLimited` if it has none left."""
        if self._limit is None:
            return
        left = await self._buckets.take(subject, self._clock.monotonic())
        if left < 0:
            raise RateLimited(
                limit=self._limit, per=self._per, retry_after=self._buckets.retry_after(left)
            )


class MissLimit(SharedLimit):
    """Names and codes that do not exist, asked for in a minute: one limit for every way in, by network and by user.

    Without it the codes of unlisted links could be enumerated. What exists is served however much of the limit is left.
    """

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt, "miss", rt.settings.misses_per_minute, per="a minute for links that do not exist"
        )

    async def charge_network(self, network: str, user_id: int | None = None) -> None:
        """Count one miss of a network, and of the user if one is signed in."""
        await self.charge(network)
        if user_id is not None:
            await self.charge_user(user_id)

    async def charge_user(self, user_id: int) -> None:
        """Count one miss of a user."""
        await self.charge(f"user:{user_id}")


class RenderLimit(SharedLimit):
    """Images and feeds that are made for a network in a minute."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt, "render", rt.settings.renders_per_minute, per="a minute for images and feeds"
        )
