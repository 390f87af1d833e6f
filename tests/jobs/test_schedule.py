"""Periodic jobs."""

import asyncio
from datetime import UTC, datetime, time, timedelta

import pytest

from refract.core.clock import ManualClock
from refract.core.db import Database
from refract.core.runtime import Runtime
from refract.core.settings import Settings
from refract.jobs.models import JobStatus
from refract.jobs.registry import Registry
from refract.jobs.schedule import Every, Scheduler
from refract.jobs.worker import Worker
from tests.jobs.conftest import eventually, jobs
from tests.jobs.work import HANDLERS, Once, Ping, traces

MINUTELY = Every(Ping(n=1), seconds=60)
DAILY = Every(Once(n=2), daily=time(3, 30))


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
    assert MINUTELY.slot(moment) == datetime.fromisoformat(minutely).replace(tzinfo=UTC)
    assert DAILY.slot(moment) == datetime.fromisoformat(daily).replace(tzinfo=UTC)


@pytest.mark.parametrize("beat", [{}, {"seconds": 60, "daily": time(3)}, {"seconds": 0}])
def test_a_beat_is_one_thing(beat: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="either"):
        Every(Ping(), **beat)  # type: ignore[arg-type]


async def test_two_schedulers_give_each_slot_once(rt: Runtime, traced: Settings, clock: ManualClock) -> None:
    other = Runtime(settings=traced, db=Database(traced), clock=clock, ids=rt.ids, secret=rt.secret)
    schedulers = [Scheduler(rt, [MINUTELY, DAILY]), Scheduler(other, [MINUTELY, DAILY])]
    for _ in range(30):
        await asyncio.gather(*(scheduler.tick() for scheduler in schedulers))
        await Worker(rt, Registry.of([HANDLERS[0]])).run_due()  # a run that has ended does not make room for a second one
        clock.advance(20)
    await other.db.close()

    runs = [job.created_at for job in await jobs(rt) if job.kind == Ping.kind]
    assert [(run - runs[0]).total_seconds() // 60 for run in runs] == list(range(10))
    assert len(await traces(rt, "ping")) == 10
    assert len([job for job in await jobs(rt) if job.kind == Once.kind]) == 1


async def test_only_the_latest_missed_slot_is_caught_up(rt: Runtime, clock: ManualClock) -> None:
    scheduler = Scheduler(rt, [DAILY])
    assert await scheduler.tick() == timedelta(hours=15, minutes=30).total_seconds()
    clock.advance(10 * 86_400)
    await scheduler.tick()
    await scheduler.tick()
    assert len(await jobs(rt)) == 2

    clock.advance(-5 * 86_400)
    await scheduler.tick()

    assert len(await jobs(rt)) == 2, "a clock that steps back repeats no slot"


async def test_a_kind_has_one_beat(rt: Runtime) -> None:
    with pytest.raises(ValueError, match="one beat"):
        Scheduler(rt, [MINUTELY, Every(Ping(n=2), seconds=5)])


async def test_a_worker_runs_its_periodic_jobs(real: Runtime) -> None:
    worker = Worker(real, Registry.of(HANDLERS), periodic=[Every(Ping(), seconds=1)])
    await worker.start()

    async def twice() -> bool:
        return len([job for job in await jobs(real) if job.status == JobStatus.DONE]) >= 2

    await eventually(twice, 15, "two slots")
    await worker.stop()
