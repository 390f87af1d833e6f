"""Operators' view of jobs, and the cleanup of done ones."""

import pytest

from refract.core.clock import ManualClock
from refract.core.pagination import CursorCodec, InvalidCursor
from refract.core.runtime import Runtime
from refract.jobs import metrics, queries
from refract.jobs.cleanup import BATCH_SIZE, DeleteDoneJobs, delete_done_jobs
from refract.jobs.errors import JobNotDead, JobNotFound
from refract.jobs.handlers import HandlerRegistry
from refract.jobs.models import Job, JobStatus
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue, enqueue_all
from refract.jobs.worker import JobWorker
from tests.jobs.conftest import jobs
from tests.jobs.work import HANDLERS, Broken, Ping


async def _enqueue(rt: Runtime, *payloads: JobPayload) -> None:
    async with rt.db.write() as session:
        await enqueue_all(session, rt, payloads)


async def _dead(rt: Runtime, number: int) -> None:
    await _enqueue(rt, *(Broken() for _ in range(number)))
    await JobWorker(rt, HandlerRegistry.from_functions(HANDLERS)).run_due_jobs()


async def test_depth_age_and_the_gauges(rt: Runtime, clock: ManualClock) -> None:
    await _dead(rt, 2)
    async with rt.db.read() as session:
        assert await queries.get_oldest_due_seconds(session, rt) == 0
    await _enqueue(rt, Ping(n=1), Ping(n=2), Ping(n=3))
    clock.advance(12)

    async with rt.db.read() as session:
        assert await queries.count_open_jobs(session) == {
            ("DEAD", "test.broken"): 2,
            ("PENDING", "test.ping"): 3,
        }
        assert await queries.get_oldest_due_seconds(session, rt) == 12
    await metrics.update_job_gauges(rt)
    value = rt.metrics.registry.get_sample_value
    assert value("refract_jobs_depth", {"kind": "test.ping", "status": "PENDING"}) == 3
    assert value("refract_jobs_oldest_seconds") == 12


async def test_a_gauge_forgets_what_is_gone(rt: Runtime) -> None:
    await _enqueue(rt, Broken())
    await metrics.update_job_gauges(rt)
    await JobWorker(rt, HandlerRegistry.from_functions(HANDLERS)).run_due_jobs()
    await metrics.update_job_gauges(rt)

    value = rt.metrics.registry.get_sample_value
    assert value("refract_jobs_depth", {"kind": "test.broken", "status": "PENDING"}) is None
    assert value("refract_jobs_depth", {"kind": "test.broken", "status": "DEAD"}) == 1


async def test_dead_jobs_come_latest_first_page_by_page(rt: Runtime) -> None:
    await _dead(rt, 7)
    cursors = CursorCodec(rt.secret)

    seen: list[int] = []
    sizes: list[int] = []
    cursor = None
    async with rt.db.read() as session:
        while True:
            page = await queries.list_dead_jobs(session, cursors, cursor=cursor, limit=3)
            seen += [job.id for job in page.items]
            sizes.append(len(page.items))
            if (cursor := page.next_cursor) is None:
                break
        with pytest.raises(InvalidCursor):
            await queries.list_dead_jobs(session, cursors, cursor="AAAA", limit=3)

    assert sizes == [3, 3, 1]
    assert sorted(seen) == [job.id for job in await jobs(rt)]


async def test_a_dead_job_that_is_retried_has_all_its_tries_again(rt: Runtime) -> None:
    await _dead(rt, 1)
    (job,) = await jobs(rt)

    async with rt.db.write() as session:
        await queries.retry_dead_job(session, rt, job.id)

    (job,) = await jobs(rt)
    assert (job.status, job.attempt_count, job.finished_at, job.last_error_code) == (
        JobStatus.PENDING,
        0,
        None,
        "VALUE_ERROR",
    )
    assert await JobWorker(rt, HandlerRegistry.from_functions(HANDLERS)).run_due_jobs() == 1


async def test_only_a_dead_job_can_be_retried(rt: Runtime) -> None:
    async with rt.db.write() as session:
        job_id = await enqueue(session, rt, Ping())
        assert job_id is not None
        with pytest.raises(JobNotDead, match="PENDING"):
            await queries.retry_dead_job(session, rt, job_id)
        with pytest.raises(JobNotFound):
            await queries.retry_dead_job(session, rt, 1)


async def test_jobs_done_more_than_a_day_ago_are_forgotten_in_slices(
    rt: Runtime, clock: ManualClock
) -> None:
    def done(n: int, days: float) -> Job:
        at = clock.now()
        job = Job(
            id=rt.ids.next_id(),
            kind="test.ping",
            payload={"n": n},
            status=JobStatus.DONE,
            run_at=at,
            created_at=at,
        )
        job.finished_at = at.fromtimestamp(at.timestamp() - days * 86_400, tz=at.tzinfo)
        return job

    async with rt.db.write() as session:
        session.add_all([*(done(n, 1.01) for n in range(BATCH_SIZE + 1)), done(9000, 0.99)])
    await _dead(rt, 1)
    clock.advance(3600)
    await _enqueue(rt, Ping(n=1))
    clock.advance(-3600)

    await delete_done_jobs(rt, DeleteDoneJobs())

    assert [(job.status, job.kind) for job in await jobs(rt)] == [
        ("DONE", "test.ping"),
        ("DEAD", "test.broken"),
        ("PENDING", "test.ping"),
    ]
