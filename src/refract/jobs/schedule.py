"""Periodic jobs: one run per slot, however many processes schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from sqlalchemy import select, update

from refract.core.clock import EPOCH
from refract.core.db.bulk import get_rowcount
from refract.core.db.session import WriteSession
from refract.core.db.upsert import try_insert
from refract.core.runtime import Runtime
from refract.jobs.models import MAINTENANCE_SHARE, JobSlot
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue, get_database_time

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """A payload with its schedule.

    Either every so many seconds (counted from 1970, so that all processes agree), or daily at a
    time in UTC.
    """

    payload: JobPayload
    seconds: int | None = None
    daily: time | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.daily is None) or (
            self.seconds is not None and self.seconds < 1
        ):
            problem = f"{self.name} runs either every so many seconds or daily at a time"
            raise ValueError(problem)

    @property
    def name(self) -> str:
        return self.payload.kind

    @property
    def period(self) -> timedelta:
        return DAY if self.seconds is None else timedelta(seconds=self.seconds)

    def get_slot(self, at: datetime) -> datetime:
        """Return the latest slot that has begun."""
        first = (
            EPOCH if self.daily is None else datetime.combine(EPOCH, self.daily.replace(tzinfo=UTC))
        )
        return first + (at - first) // self.period * self.period


class JobScheduler:
    """Enqueues jobs for due slots.

    Of the slots missed while no process ran, only the latest is run.
    """

    def __init__(self, rt: Runtime, periodic: Sequence[PeriodicJob]) -> None:
        names = [job.name for job in periodic]
        if len(set(names)) != len(names):
            problem = f"a kind of job has one beat: {names}"
            raise ValueError(problem)
        self._rt = rt
        self._periodic = periodic

    async def enqueue_due_jobs(self) -> float | None:
        """Enqueue due jobs; return the seconds until the next slot begins."""
        if not self._periodic:
            return None
        async with self._rt.db.read() as session:
            at = await get_database_time(session, self._rt.clock)
            given = {row.name: row.slot for row in await session.scalars(select(JobSlot))}
        for job in self._periodic:
            slot = job.get_slot(at)
            if job.name not in given or given[job.name] < slot:
                async with self._rt.db.write() as session:
                    await self._claim_slot(session, job, slot, known=job.name in given)
        return min((job.get_slot(at) + job.period - at).total_seconds() for job in self._periodic)

    async def _claim_slot(
        self, session: WriteSession, job: PeriodicJob, slot: datetime, *, known: bool
    ) -> None:
        """Advance the slot and enqueue the run in one commit; of two processes one does."""
        if known:
            forward = (
                update(JobSlot)
                .where(JobSlot.name == job.name, JobSlot.slot < slot)
                .values(slot=slot)
            )
            first = (
                get_rowcount(
                    await session.execute(forward.execution_options(synchronize_session=False))
                )
                == 1
            )
        else:
            first = await try_insert(session, JobSlot, {"name": job.name, "slot": slot})
        if first:
            await enqueue(
                session,
                self._rt,
                job.payload,
                dedup=f"{job.name}@{slot.isoformat()}",
                share=MAINTENANCE_SHARE,
            )
