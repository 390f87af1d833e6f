"""Several workers in separate processes, some of which are killed or stopped."""

import asyncio
import signal
from collections import Counter

from refract.core.runtime import Runtime
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue, enqueue_all
from refract.jobs.worker import RECOVERY_INTERVAL
from tests.jobs.conftest import Spawn, jobs
from tests.jobs.work import BEAT_SECONDS, Beat, Once, Ping, Slow, traces
from tests.waiting import PATIENCE, eventually

LEASE = 2.0
PROMISE = 5.0  # seconds after the end of a lease


async def _all_done(rt: Runtime) -> bool:
    return {job.status for job in await jobs(rt)} == {JobStatus.DONE}


async def test_four_workers_do_each_of_500_jobs_exactly_once(real: Runtime, spawn: Spawn) -> None:
    children = await asyncio.gather(*(spawn() for _ in range(4)))
    for start in range(0, 500, 100):
        payloads: list[JobPayload] = [
            (Ping if n % 2 else Once)(n=n) for n in range(start, start + 100)
        ]
        async with real.db.write() as session:
            await enqueue_all(session, real, payloads)

    await eventually(lambda: _all_done(real), 2 * PATIENCE)

    done = [*await traces(real, "ping"), *await traces(real, "once")]
    assert Counter(n for n, _pid in done) == Counter(range(500))
    assert {pid for _n, pid in done} == {child.pid for child in children}, "every worker took part"
    assert {job.attempt_count for job in await jobs(real)} == {1}


async def test_the_job_of_a_killed_worker_is_done_by_another_within_the_lease_and_five_seconds(
    real: Runtime, spawn: Spawn
) -> None:
    doomed = await spawn(lease=LEASE, concurrency=1)
    async with real.db.write() as session:
        await enqueue(session, real, Slow(n=1, seconds=600))
    await doomed.says("begin 1")
    heir = await spawn(concurrency=2)
    async with real.db.write() as session:
        await enqueue(session, real, Beat())  # by the heir: the other worker is full
    await eventually(lambda: _has_beaten(real, LEASE + RECOVERY_INTERVAL))
    slow = await _find_job(real, Slow.kind)
    assert slow.attempt_count == 1, "a living worker keeps its job beyond the first lease"

    doomed.send(signal.SIGKILL)
    await doomed.process.wait()
    beats_before = len(await traces(real, "beat"))

    await eventually(lambda: _is_done(real, Slow.kind))
    beats_after = len(await traces(real, "beat"))
    assert await traces(real, "end") == [(1, heir.pid)]
    assert {pid for _n, pid in await traces(real, "beat")} == {heir.pid}
    # The heir's own beats are the clock: a busy machine slows them down as it does the recovery.
    assert (beats_after - beats_before) * BEAT_SECONDS <= LEASE + PROMISE
    assert RECOVERY_INTERVAL < PROMISE, "the interval that keeps the promise in every phase"


async def _find_job(rt: Runtime, kind: str) -> Job:
    (job,) = [job for job in await jobs(rt) if job.kind == kind]
    return job


async def _is_done(rt: Runtime, kind: str) -> bool:
    return (await _find_job(rt, kind)).status == JobStatus.DONE


async def _has_beaten(rt: Runtime, seconds: float) -> bool:
    return len(await traces(rt, "beat")) * BEAT_SECONDS >= seconds


async def test_a_zombie_that_wakes_after_its_lease_writes_nothing(
    real: Runtime, spawn: Spawn
) -> None:
    zombie = await spawn(lease=LEASE)
    async with real.db.write() as session:
        await enqueue(session, real, Slow(n=1, seconds=1.0, deaf=True))
    await zombie.says("begin 1")
    zombie.send(signal.SIGSTOP)
    heir = await spawn(lease=LEASE)
    await eventually(lambda: _all_done(real))

    zombie.send(signal.SIGCONT)
    refused = await zombie.says("refused 1")
    zombie.send(signal.SIGTERM)
    await zombie.process.wait()

    assert refused.split()[-1] in ("LeaseLost", "CancelledError")
    assert {pid for _n, pid in await traces(real, "begin")} == {zombie.pid, heir.pid}
    assert await traces(real, "end") == [(1, heir.pid)]
    (job,) = await jobs(real)
    assert (job.status, job.attempt_count) == (JobStatus.DONE, 2)
    assert f":{heir.pid}:" in str(job.locked_by)


async def test_a_worker_told_to_end_gives_its_job_back_at_once(real: Runtime, spawn: Spawn) -> None:
    leaving = await spawn()
    async with real.db.write() as session:
        await enqueue(session, real, Slow(n=1, seconds=600))
    await leaving.says("begin 1")

    leaving.send(signal.SIGTERM)

    assert await leaving.process.wait() == 0
    (job,) = await jobs(real)
    assert (job.status, job.attempt_count, job.locked_by) == (JobStatus.PENDING, 0, None)
