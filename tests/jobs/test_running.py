"""A running worker: waking, renewing, stopping, all on the machine's clock."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from sqlalchemy import select, text, update

from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.jobs.handlers import HandlerRegistry, handles
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue, verify_claim
from refract.jobs.worker import JobWorker
from tests.jobs.conftest import Spawn, jobs
from tests.jobs.work import HANDLERS, Ping
from tests.waiting import eventually

only_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


async def _enqueue(rt: Runtime, *payloads: JobPayload) -> None:
    async with rt.db.write() as session:
        for payload in payloads:
            await enqueue(session, rt, payload)


class Held(JobPayload):
    kind: ClassVar[str] = "test.held"
    n: int = 0


class Hold:
    """A handler that reports its beginning and its end, and runs until it is released."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.ends: list[str] = []
        self.ended_at = 0.0  # of the runtime's monotonic clock

        @handles(Held)
        async def handler(rt: Runtime, job: Held) -> None:
            self.begun.set()
            try:
                await self.go.wait()
                async with rt.db.write() as session:
                    await verify_claim(session, job)
            except BaseException as exc:
                self.ended_at = rt.clock.monotonic()
                self.ends.append(type(exc).__name__)
                raise
            self.ends.append("done")

        self.registry = HandlerRegistry.from_functions([handler])


def _with(rt: Runtime, **settings: Any) -> Runtime:
    return replace(rt, settings=rt.settings.model_copy(update=settings))


async def _done(rt: Runtime) -> bool:
    return {job.status for job in await jobs(rt)} == {JobStatus.DONE}


async def test_a_worker_finds_what_was_waiting_before_it_started(real: Runtime) -> None:
    await _enqueue(real, Ping(n=1))
    worker = JobWorker(
        _with(real, job_poll_seconds=600.0), HandlerRegistry.from_functions(HANDLERS)
    )
    await worker.start()

    await eventually(lambda: _done(real))
    await worker.stop()


async def test_an_idle_worker_is_woken_by_a_commit_of_its_process_without_a_poll(
    real: Runtime,
) -> None:
    rt = _with(real, job_poll_seconds=600.0)
    worker = JobWorker(rt, HandlerRegistry.from_functions(HANDLERS))
    await worker.start()
    await eventually(lambda: worker._wake._waiters)  # it has found nothing to do
    for n in range(3):
        await _enqueue(rt, Ping(n=n))
        await eventually(lambda: _done(rt))
    await worker.stop()


@only_postgresql
async def test_postgresql_wakes_a_worker_in_another_process_without_a_poll(
    real: Runtime, spawn: Spawn
) -> None:
    await spawn(poll=600)
    await asyncio.sleep(0.5)

    await _enqueue(real, Ping(n=1))

    await eventually(lambda: _done(real))


@only_postgresql
async def test_a_listening_connection_that_was_cut_is_made_again(real: Runtime) -> None:
    deaf = replace(
        _with(real, job_poll_seconds=600.0), db=Database(real.settings)
    )  # only PostgreSQL can wake it
    worker = JobWorker(deaf, HandlerRegistry.from_functions(HANDLERS))
    await worker.start()

    for n in range(2):
        await eventually(lambda: _listeners(real, 1))
        await _enqueue(real, Ping(n=n))
        await eventually(lambda: _done(real))
        await _listeners(real, 1, cut=True)
    await worker.stop()
    await deaf.db.close()


async def _listeners(rt: Runtime, wanted: int, *, cut: bool = False) -> bool:
    what = "pg_terminate_backend(pid)" if cut else "pid"
    async with rt.db.read() as session:
        asked = text(
            f"SELECT {what} FROM pg_stat_activity"  # noqa: S608
            " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )
        return len((await session.execute(asked)).all()) == wanted


async def test_a_worker_takes_no_more_jobs_at_a_time_than_it_may(real: Runtime) -> None:
    hold = Hold()
    await _enqueue(real, *(Held(n=n) for n in range(5)))
    worker = JobWorker(real, hold.registry, concurrency=2)
    await worker.start()
    await hold.begun.wait()
    await eventually(lambda: len(worker._running) == 2)
    await eventually(lambda: worker._wake._waiters)  # it would not claim more by itself
    assert Counter(job.status for job in await jobs(real)) == {
        JobStatus.IN_PROGRESS: 2,
        JobStatus.PENDING: 3,
    }

    hold.go.set()

    await eventually(lambda: _done(real))
    await worker.stop()


async def test_a_graceful_stop_lets_a_job_end(real: Runtime) -> None:
    hold = Hold()
    await _enqueue(real, Held(), Held())
    worker = JobWorker(real, hold.registry, concurrency=1)
    await worker.start()
    await hold.begun.wait()
    stopping = asyncio.create_task(worker.stop(grace=30))
    await eventually(lambda: worker._stopping)
    hold.go.set()
    await stopping

    assert [job.status for job in await jobs(real)] == [
        JobStatus.DONE,
        JobStatus.PENDING,
    ], "and takes no other"


async def test_a_stop_beyond_its_grace_gives_the_job_back_at_once(real: Runtime) -> None:
    hold = Hold()
    await _enqueue(real, Held())
    worker = JobWorker(real, hold.registry)
    await worker.start()
    await hold.begun.wait()

    await worker.stop(grace=0.05)

    (job,) = await jobs(real)
    assert (job.status, job.attempt_count, job.locked_by) == (JobStatus.PENDING, 0, None)
    assert hold.ends == ["CancelledError"]
    heir = JobWorker(real, hold.registry)
    hold.go.set()
    assert await heir.run_due_jobs() == 1
    assert await _done(real)


async def test_a_handler_whose_lease_was_taken_is_cancelled_and_writes_nothing(
    real: Runtime,
) -> None:
    hold = Hold()
    rt = _with(real, job_lease_seconds=1.5)
    await _enqueue(rt, Held())
    worker = JobWorker(rt, hold.registry)
    await worker.start()
    await hold.begun.wait()
    async with rt.db.write() as session:  # as a recovery and another worker's claim would
        await session.execute(update(Job).values(locked_by="another", attempt_count=2))

    await eventually(lambda: _ended(hold))
    await worker.stop()

    assert hold.ends == ["CancelledError"]
    (job,) = await jobs(rt)
    assert (job.locked_by, job.attempt_count, job.status) == ("another", 2, JobStatus.IN_PROGRESS)


async def _ended(hold: Hold) -> bool:
    return bool(hold.ends)


async def test_a_handler_that_cannot_renew_stops_itself_before_its_lease_runs_out(
    real: Runtime,
) -> None:
    hold = Hold()
    rt = _with(real, job_lease_seconds=6.0)
    worker = JobWorker(rt, hold.registry)
    await worker.start()
    await asyncio.sleep(0.3)  # the claim falls between two rounds of renewal
    await _enqueue(rt, Held())
    await hold.begun.wait()
    (running,) = worker._running
    async with rt.db.write() as session:
        # Renewals pass over a locked row; on SQLite they wait.
        await session.execute(select(Job.id).with_for_update())
        await eventually(lambda: _ended(hold))
        (job,) = await jobs(rt)
        assert job.status == JobStatus.IN_PROGRESS
    await worker.stop()

    assert hold.ends == ["CancelledError"]
    unrenewed = hold.ended_at - running.claim.renewed_at
    assert unrenewed < rt.settings.job_lease_seconds
    assert unrenewed >= rt.settings.job_lease_seconds / 2, "it was given time to renew"
