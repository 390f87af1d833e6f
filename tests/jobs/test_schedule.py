"""Periodic jobs."""

import asyncio
from datetime import UTC, datetime, time, timedelta

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.jobs.handlers import HandlerRegistry
from refract.jobs.models import JobStatus
from refract.jobs.schedule import JobScheduler, PeriodicJob
from refract.jobs.worker import JobWorker
from tests.jobs.conftest import jobs
from tests.jobs.work import HANDLERS, Once, Ping, traces
from tests.waiting import eventually

MINUTELY = PeriodicJob(Ping(n=1), seconds=60)
DAILY = PeriodicJob(Once(n=2), daily=time(3, 30))


@pytest.mark.parametrize(
    ("at", "minutely", "daily"),
    [
        ("2026-06-01T12:00:00", "2026-06-01T12:00:00", "2026-06-01T03:30:00"),
        ("2026-06-01T12:00:59.999", "2026-06-01T12:00:00", "2026-06-01T03:30:00"),
        ("2026-06-01T03:29:59.999", "2026-06-01T03:29:00", "2026-05-31T03:30:00"),
        ("2026-06-01T03:30:00", "2026-06-01T03:30:00", "2026-06-01T03:30:00"),
    ],
)
def test_slots(at: str, minutely: str, daily: str) -> None:
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert MINUTELY.get_slot(moment) == datetime.fromisoformat(minutely).replace(tzinfo=UTC)
    assert DAILY.get_slot(moment) == datetime.fromisoformat(daily).replace(tzinfo=UTC)


@pytest.mark.parametrize("beat", [{}, {"seconds": 60, "daily": time(3)}, {"seconds": 0}])
def test_a_beat_is_one_thing(beat: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="either"):
        PeriodicJob(Ping(), **beat)  # type: ignore[arg-type]


async def test_two_schedulers_give_each_slot_once(
    rt: Runtime, traced: Settings, clock: ManualClock
) -> None:
    other = Runtime(settings=traced, db=Database(traced), clock=clock, ids=rt.ids, secret=rt.secret)
    schedulers = [JobScheduler(rt, [MINUTELY, DAILY]), JobScheduler(other, [MINUTELY, DAILY])]
    for _ in range(30):
        await asyncio.gather(*(scheduler.enqueue_due_jobs() for scheduler in schedulers))
        await JobWorker(
            rt, HandlerRegistry.from_functions([HANDLERS[0]])
        ).run_due_jobs()  # a run that has ended does not make room for a second one
        clock.advance(20)
    await other.db.close()

    runs = [job.created_at for job in await jobs(rt) if job.kind == Ping.kind]
    assert [(run - runs[0]).total_seconds() // 60 for run in runs] == list(range(10))
    assert len(await traces(rt, "ping")) == 10
    assert len([job for job in await jobs(rt) if job.kind == Once.kind]) == 1


async def test_only_the_latest_missed_slot_is_caught_up(rt: Runtime, clock: ManualClock) -> None:
    scheduler = JobScheduler(rt, [DAILY])
    assert await scheduler.enqueue_due_jobs() == timedelta(hours=15, minutes=30).total_seconds()
    clock.advance(10 * 86_400)
    await scheduler.enqueue_due_jobs()
    await scheduler.enqueue_due_jobs()
    assert len(await jobs(rt)) == 2

    clock.advance(-5 * 86_400)
    await scheduler.enqueue_due_jobs()

    assert len(await jobs(rt)) == 2, "a clock that steps back repeats no slot"


async def test_a_kind_has_one_beat(rt: Runtime) -> None:
    with pytest.raises(ValueError, match="one beat"):
        JobScheduler(rt, [MINUTELY, PeriodicJob(Ping(n=2), seconds=5)])


async def test_a_worker_runs_its_periodic_jobs(real: Runtime) -> None:
    worker = JobWorker(
        real, HandlerRegistry.from_functions(HANDLERS), periodic=[PeriodicJob(Ping(), seconds=1)]
    )
    await worker.start()

    async def twice() -> bool:
        return len([job for job in await jobs(real) if job.status == JobStatus.DONE]) >= 2

    await eventually(twice)
    await worker.stop()
