"""Charging of limits, exact in the caller's transaction."""

from datetime import datetime
from math import ceil

from sqlalchemy import bindparam, delete, select

from refract.core.db.bulk import update_row
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.phrases import Phrase
from refract.limits.errors import RateLimited
from refract.limits.models import LimitBucket

HOUR_SECONDS = 3600


async def charge(
    session: WriteSession, name: str, cost: int, *, per_hour: int | None, now: datetime
) -> int:
    """Take `cost` tokens and return what remains, or raise `RateLimited`. None sets no limit."""
    granted, remaining = await charge_up_to(session, name, cost, per_hour=per_hour, now=now)
    if per_hour is not None and granted < cost:
        missing = cost - remaining - granted
        retry_after = ceil(missing * HOUR_SECONDS / max(1, per_hour))
        raise RateLimited(
            limit=per_hour, per=Phrase("per hour"), retry_after=retry_after, remaining=0
        )
    return remaining


async def charge_up_to(
    session: WriteSession, name: str, cost: int, *, per_hour: int | None, now: datetime
) -> tuple[int, int]:
    """Take up to `cost` tokens; return how many were granted and how many remain.

    None sets no limit.
    """
    if per_hour is None:
        return cost, 0
    found = await session.fetch(_BUCKET, name=name)
    if not found:  # of two concurrent first callers, one inserts the row, the other waits for it
        row = {"name": name, "tokens": float(per_hour), "updated_at": now}
        await insert_if_absent(session, LimitBucket, [row])
        found = await session.fetch(_BUCKET, name=name)
    ((stored, updated_at),) = found
    elapsed = max(0.0, (now - updated_at).total_seconds())
    tokens = min(float(per_hour), stored + elapsed * per_hour / HOUR_SECONDS)
    granted = min(cost, int(tokens))
    left = {"tokens": tokens - granted, "updated_at": max(now, updated_at)}
    await update_row(session, LimitBucket, {"name": name}, left)
    return granted, int(left["tokens"])


_BUCKET = PreparedSelect(
    lambda: (
        select(LimitBucket.tokens, LimitBucket.updated_at)
        .where(LimitBucket.name == bindparam("name"))
        .with_for_update()
    )
)


async def delete_idle_buckets(session: WriteSession, untouched_since: datetime) -> None:
    """Delete buckets that have had time to fill up again: a missing bucket is a full one."""
    await session.execute(delete(LimitBucket).where(LimitBucket.updated_at < untouched_since))
