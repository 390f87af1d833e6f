"""Worker ids, leased in the database so that two processes never share one.

A lease reserves *id time*: the holder may issue ids up to `reserved_until_ms`, and the next holder
of the worker id begins after it. So nothing depends on the clocks of two machines agreeing.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from sqlalchemy import SmallInteger, String, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.clock import Clock
from refract.core.db.bulk import get_rowcount
from refract.core.db.session import Database, ReadSession, WriteSession
from refract.core.db.types import Model
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.ids import SNOWFLAKE_EPOCH_MS, WORKER_COUNT, SnowflakeGenerator, WorkerIdLost

RESERVE_MS = 60_000
RENEW_INTERVAL = 15.0
_MAX_ATTEMPTS = 8


class WorkerId(Model):
    """The holder of a worker id, and the millisecond up to which it may issue ids."""

    __tablename__ = "worker_ids"

    worker: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    holder: Mapped[str] = mapped_column(String(32))
    reserved_until_ms: Mapped[int]


class WorkerIdsExhausted(Unavailable):
    """All 1,024 worker ids are in use. Stop some processes, or wait a minute."""


class WorkerIdLease:
    """A worker id that is ours for as long as it is renewed."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        worker: int,
        holder: str,
        reserved_until_ms: int,
        floor_ms: int,
    ) -> None:
        self._db = db
        self._clock = clock
        self._worker = worker
        self._holder = holder
        self._reserved_until_ms = reserved_until_ms
        self.ids = SnowflakeGenerator(
            worker,
            clock,
            floor_ms=floor_ms,
            can_issue=lambda: _now_ms(clock) <= self._reserved_until_ms,
        )

    async def renew(self) -> bool:
        """Reserve further ahead; return False if another process has claimed the worker id."""
        target = max(_now_ms(self._clock), self.ids.last_ms) + RESERVE_MS
        return await self._set_reservation(target)

    async def release(self) -> None:
        """Release the reserved time that was not used."""
        await self._set_reservation(self.ids.last_ms)

    async def _set_reservation(self, target_ms: int) -> bool:
        mine = update(WorkerId).where(
            WorkerId.worker == self._worker, WorkerId.holder == self._holder
        )
        async with self._db.write() as session:
            result = await session.execute(mine.values(reserved_until_ms=target_ms))
        kept = get_rowcount(result) == 1
        self._reserved_until_ms = target_ms if kept else 0
        return kept


async def claim_worker_id(db: Database, clock: Clock) -> WorkerIdLease:
    """Reserve a free worker id, at random so that many processes do not compete for the first."""
    holder = secrets.token_hex(16)
    for _ in range(_MAX_ATTEMPTS):
        now = _now_ms(clock)
        async with db.read() as session:
            rows = {
                row.worker: row.reserved_until_ms for row in await session.scalars(select(WorkerId))
            }
        free = [worker for worker in range(WORKER_COUNT) if rows.get(worker, -1) < now]
        if not free:
            break
        worker = secrets.choice(free)
        target = now + RESERVE_MS
        # Another process inserted the row first: try another.
        with contextlib.suppress(IntegrityError):
            async with db.write() as session:
                if await _claim_row(session, worker, holder, rows.get(worker), target):
                    return WorkerIdLease(
                        db, clock, worker, holder, target, floor_ms=rows.get(worker, 0)
                    )
    raise WorkerIdsExhausted


async def _claim_row(
    session: WriteSession, worker: int, holder: str, seen_ms: int | None, target_ms: int
) -> bool:
    if seen_ms is None:
        session.add(WorkerId(worker=worker, holder=holder, reserved_until_ms=target_ms))
        await session.flush()
        return True
    unchanged = update(WorkerId).where(
        WorkerId.worker == worker, WorkerId.reserved_until_ms == seen_ms
    )
    result = await session.execute(unchanged.values(holder=holder, reserved_until_ms=target_ms))
    return get_rowcount(result) == 1


class LeasedIds:
    """Ids under the currently leased worker id; raises `WorkerIdLost` without one."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._lease: WorkerIdLease | None = None

    def next_id(self) -> int:
        return self.next_ids(1)[0]

    def next_ids(self, count: int) -> list[int]:
        if self._lease is None:
            raise WorkerIdLost
        return self._lease.ids.next_ids(count)

    async def renew(self) -> None:
        """Renew the worker id, or claim another one if it was lost."""
        if self._lease is None or not await self._lease.renew():
            self._lease = await claim_worker_id(self._db, self._clock)

    async def release(self) -> None:
        if self._lease is not None:
            await self._lease.release()
            self._lease = None


async def count_leases(session: ReadSession, clock: Clock) -> int:
    """Return how many processes hold a worker id now, of all nodes."""
    held = select(func.count()).where(WorkerId.reserved_until_ms > _now_ms(clock))
    return await session.scalar(held) or 0


@asynccontextmanager
async def lease_ids(
    db: Database, clock: Clock, *, patient: bool = False
) -> AsyncIterator[LeasedIds]:
    """Provide ids while the block runs, renewed in the background.

    If `patient`, begin even while the database is unavailable.
    """
    ids = LeasedIds(db, clock)
    try:
        await ids.renew()
    except Unavailable:
        if not patient:
            raise
    renewing = asyncio.create_task(_renew_forever(ids), name="renew-worker-id")
    try:
        yield ids
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        with contextlib.suppress(Unavailable):  # the reservation expires anyway
            await ids.release()


async def _renew_forever(ids: LeasedIds) -> None:
    errors = ErrorThrottle(structlog.get_logger("refract.ids"), "worker_id_renewal_failed")
    pause = RENEW_INTERVAL
    while True:
        await asyncio.sleep(pause)
        try:
            await ids.renew()
            errors.clear()
            pause = RENEW_INTERVAL
        except Unavailable as exc:
            pause = 1.0
            errors.report(exc)


def _now_ms(clock: Clock) -> int:
    return clock.now_ns() // 1_000_000 - SNOWFLAKE_EPOCH_MS
