"""What an operator sees and does, and what the outbox forgets."""

import pytest

from refract.core.clock import ManualClock
from refract.core.page import Cursors, InvalidCursor
from refract.core.runtime import Runtime
from refract.jobs import metrics, queries
from refract.jobs.errors import JobNotDead, JobNotFound
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import Payload
from refract.jobs.queue import enqueue, enqueue_all
from refract.jobs.registry import Registry
from refract.jobs.upkeep import SLICE, ForgetDoneJobs, forget_done_jobs
from refract.jobs.worker import Worker
from tests.jobs.conftest import jobs
from tests.jobs.work import HANDLERS, Broken, Ping


async def _enqueue(rt: Runtime, *payloads: Payload) -> None:
    async with rt.db.write() as session:
        await enqueue_all(session, rt, payloads)


async def _dead(rt: Runtime, number: int) -> None:
    await _enqueue(rt, *(Broken() for _ in range(number)))
    await Worker(rt, Registry.of(HANDLERS)).run_due()


async def test_depth_age_and_the_gauges(rt: Runtime, clock: ManualClock) -> None:
    await _dead(rt, 2)
    async with rt.db.read() as session:
        assert await queries.oldest_due_seconds(session, rt) == 0
    await _enqueue(rt, Ping(n=1), Ping(n=2), Ping(n=3))
    clock.advance(12)

    async with rt.db.read() as session:
        assert await queries.depth(session) == {("DEAD", "test.broken"): 2, ("PENDING", "test.ping"): 3}
        assert await queries.oldest_due_seconds(session, rt) == 12
    await metrics.observe(rt)
    value = rt.metrics.registry.get_sample_value
    assert value("refract_jobs_depth", {"kind": "test.ping", "status": "PENDING"}) == 3
    assert value("refract_jobs_oldest_seconds") == 12


async def test_a_gauge_forgets_what_is_gone(rt: Runtime) -> None:
    await _enqueue(rt, Broken())
    await metrics.observe(rt)
    await Worker(rt, Registry.of(HANDLERS)).run_due()
    await metrics.observe(rt)

    value = rt.metrics.registry.get_sample_value
    assert value("refract_jobs_depth", {"kind": "test.broken", "status": "PENDING"}) is None
    assert value("refract_jobs_depth", {"kind": "test.broken", "status": "DEAD"}) == 1


async def test_dead_jobs_come_latest_first_page_by_page(rt: Runtime) -> None:
    await _dead(rt, 7)
    cursors = Cursors(rt.secret)

    seen: list[int] = []
    sizes: list[int] = []
    cursor = None
    async with rt.db.read() as session:
        while True:
            page = await queries.dead_jobs(session, cursors, cursor=cursor, limit=3)
            seen += [job.id for job in page.items]
            sizes.append(len(page.items))
            if (cursor := page.next_cursor) is None:
                break
        with pytest.raises(InvalidCursor):
            await queries.dead_jobs(session, cursors, cursor="AAAA", limit=3)

    assert sizes == [3, 3, 1]
    assert sorted(seen) == [job.id for job in await jobs(rt)]


async def test_a_dead_job_that_is_retried_has_all_its_tries_again(rt: Runtime) -> None:
    await _dead(rt, 1)
    (job,) = await jobs(rt)

    async with rt.db.write() as session:
        await queries.retry(session, rt, job.id)

    (job,) = await jobs(rt)
    assert (job.status, job.attempt_count, job.finished_at, job.last_error_code) == (JobStatus.PENDING, 0, None, "VALUE_ERROR")
    assert await Worker(rt, Registry.of(HANDLERS)).run_due() == 1


async def test_only_a_dead_job_can_be_retried(rt: Runtime) -> None:
    async with rt.db.write() as session:
        job_id = await enqueue(session, rt, Ping())
        assert job_id is not None
        with pytest.raises(JobNotDead, match="PENDING"):
            await queries.retry(session, rt, job_id)
        with pytest.raises(JobNotFound):
            await queries.retry(session, rt, 1)


async def test_jobs_done_more_than_a_day_ago_are_forgotten_in_slices(rt: Runtime, clock: ManualClock) -> None:
    def done(n: int, days: float) -> Job:
        at = clock.now()
        job = Job(id=rt.ids.next_id(), kind="test.ping", payload={"n": n}, status=JobStatus.DONE, run_at=at, created_at=at)
        job.finished_at = at.fromtimestamp(at.timestamp() - days * 86_400, tz=at.tzinfo)
        return job

    async with rt.db.write() as session:
        session.add_all([*(done(n, 1.01) for n in range(SLICE + 1)), done(9000, 0.99)])
    await _dead(rt, 1)
    clock.advance(3600)
    await _enqueue(rt, Ping(n=1))
    clock.advance(-3600)

    await forget_done_jobs(rt, ForgetDoneJobs())

    assert [(job.status, job.kind) for job in await jobs(rt)] == [("DONE", "test.ping"), ("DEAD", "test.broken"), ("PENDING", "test.ping")]
