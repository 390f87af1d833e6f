"""Enqueueing and claiming: in the caller's transaction, by one worker at a time, behind a fence."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from refract.core.clock import ManualClock
from refract.core.db.session import Database, count_statements
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.jobs import claims, leases, queue
from refract.jobs.errors import LeaseLost
from refract.jobs.handlers import JobDead, JobDone, JobFailed, JobReleased
from refract.jobs.models import JobStatus
from refract.jobs.payload import JobClaim, JobPayload
from tests.jobs.conftest import jobs
from tests.jobs.work import Once, Ping, leave, traces

TRIES = {Ping.kind: 3, Once.kind: 3}


async def _enqueue(rt: Runtime, payload: JobPayload, dedup: str | None = None) -> int | None:
    async with rt.db.write() as session:
        return await queue.enqueue(session, rt, payload, dedup=dedup)


async def _claim(rt: Runtime, worker: str = "a", limit: int = 1) -> list[JobClaim]:
    async with rt.db.write() as session:
        return await claims.claim_jobs(session, rt, worker, TRIES, limit)


async def _settle(
    rt: Runtime, claim: JobClaim, outcome: JobDone | JobFailed | JobDead | JobReleased
) -> bool:
    async with rt.db.write() as session:
        return await leases.record_outcome(session, rt, claim, outcome)


async def test_a_job_commits_with_the_change_that_asked_for_it(rt: Runtime) -> None:
    woken = asyncio.Event()
    with rt.signals.listen(queue.JOBS_TOPIC, woken):
        async with rt.db.write() as session:
            job_id = await queue.enqueue(session, rt, Ping(n=7))
            assert not woken.is_set()
        assert woken.is_set()

    (job,) = await jobs(rt)
    assert (job.id, job.kind, job.payload, job.status, job.attempt_count) == (
        job_id,
        "test.ping",
        {"n": 7},
        JobStatus.PENDING,
        0,
    )


async def test_a_job_vanishes_with_the_change_that_asked_for_it(rt: Runtime) -> None:
    woken = asyncio.Event()
    with rt.signals.listen(queue.JOBS_TOPIC, woken), pytest.raises(LookupError):
        async with rt.db.write() as session:
            await queue.enqueue(session, rt, Ping())
            raise LookupError

    assert await jobs(rt) == []
    assert not woken.is_set()


async def test_many_jobs_cost_as_many_statements_as_one(rt: Runtime) -> None:
    counts: list[int] = []
    for number in (1, 200):
        statements: list[str] = []
        stop = count_statements(rt.db.engine, statements.append)
        async with rt.db.write() as session:
            await queue.enqueue_all(session, rt, [Ping(n=n) for n in range(number)])
        stop()
        counts.append(len(statements))

    assert counts[0] == counts[1]


@pytest.mark.parametrize("dedup", [None, "link:1"])
async def test_a_value_that_does_not_fit_is_an_error_with_and_without_a_key(
    rt: Runtime, dedup: str | None
) -> None:
    with pytest.raises((DBAPIError, OverflowError)):
        async with rt.db.write() as session:
            await queue.enqueue(session, rt, Ping(), dedup=dedup, share=2**63)

    assert await jobs(rt) == []


async def test_one_open_job_per_key(rt: Runtime) -> None:
    first = await _enqueue(rt, Ping(n=1), dedup="link:1")
    assert await _enqueue(rt, Ping(n=2), dedup="link:1") is None, "it waits"
    assert await _enqueue(rt, Ping(n=3), dedup="link:2") is not None

    claim, _other = await _claim(rt, limit=2)
    assert claim.job_id == first
    assert await _enqueue(rt, Ping(n=2), dedup="link:1") is None, "it is being worked on"
    assert await _settle(rt, claim, JobFailed("X", "x", 30))
    assert await _enqueue(rt, Ping(n=2), dedup="link:1") is None, "it will be tried again"


@pytest.mark.parametrize("ending", [JobDone(), JobDead("X", "x")])
async def test_a_key_is_free_again_when_its_job_has_ended(
    rt: Runtime, ending: JobDone | JobDead
) -> None:
    await _enqueue(rt, Ping(), dedup="link:1")
    (claim,) = await _claim(rt)
    assert await _settle(rt, claim, ending)

    assert await _enqueue(rt, Ping(), dedup="link:1") is not None


async def test_many_asking_for_one_key_get_one_job(real: Runtime) -> None:
    given = await asyncio.gather(*(_enqueue(real, Ping(n=n), dedup="link:1") for n in range(20)))

    assert len([job_id for job_id in given if job_id is not None]) == 1
    assert len(await jobs(real)) == 1


async def test_jobs_are_claimed_once_in_the_order_they_came_due(
    rt: Runtime, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        later = await queue.enqueue(
            session, rt, Ping(n=1), run_at=clock.now() + timedelta(seconds=10)
        )
        second = await queue.enqueue(session, rt, Ping(n=2))
        first = await queue.enqueue(
            session, rt, Ping(n=3), run_at=clock.now() - timedelta(seconds=10)
        )

    assert [claim.job_id for claim in await _claim(rt, limit=5)] == [first, second]
    assert await _claim(rt, "b", limit=5) == []
    clock.advance(10)
    assert [claim.job_id for claim in await _claim(rt, "b", limit=5)] == [later]


async def test_a_kind_that_this_process_does_not_know_is_left_alone(rt: Runtime) -> None:
    class Foreign(JobPayload):
        kind = "test.foreign"

    await _enqueue(rt, Foreign())

    assert await _claim(rt) == []
    async with rt.db.read() as session:
        assert await claims.get_seconds_until_due(session, rt, list(TRIES)) is None


async def test_looking_for_work_takes_no_write_lock(rt: Runtime, clock: ManualClock) -> None:
    await _enqueue(rt, Ping())
    async with rt.db.write(), rt.db.read() as session:
        assert await claims.get_seconds_until_due(session, rt, list(TRIES)) == 0
    async with rt.db.write() as writing:
        await claims.claim_jobs(writing, rt, "a", TRIES, 1)
    clock.advance(rt.settings.job_lease_seconds - 1)
    async with rt.db.write():
        assert await leases.recover_expired_jobs(rt) == []


async def test_the_claims_of_two_workers_never_overlap(rt: Runtime, settings: Settings) -> None:
    async with rt.db.write() as session:
        await queue.enqueue_all(session, rt, [Ping(n=n) for n in range(100)])
    other = Runtime(
        settings=settings, db=Database(settings), clock=rt.clock, ids=rt.ids, secret=rt.secret
    )

    taken: list[int] = []
    while any(both := await asyncio.gather(_claim(rt, "a", 7), _claim(other, "b", 7))):
        taken += [claim.job_id for claims in both for claim in claims]
    await other.db.close()

    assert sorted(taken) == [job.id for job in await jobs(rt)]


# Leases and the fence


@pytest.fixture
async def lost(rt: Runtime, clock: ManualClock, traced: Settings) -> tuple[JobClaim, JobClaim]:
    """Return a claim whose lease expired, and that of the worker that has the job now."""
    await _enqueue(rt, Once(n=1))
    (zombie,) = await _claim(rt, "zombie")
    clock.advance(rt.settings.job_lease_seconds)
    assert await leases.recover_expired_jobs(rt) == [(Once.kind, False)]
    (heir,) = await _claim(rt, "heir")
    return zombie, heir


async def test_a_zombie_can_end_nothing(rt: Runtime, lost: tuple[JobClaim, JobClaim]) -> None:
    zombie, heir = lost
    before = [vars(job) for job in await jobs(rt)]
    before[0].pop("_sa_instance_state")

    for outcome in (JobDone(), JobFailed("X", "x", 30), JobDead("X", "x"), JobReleased()):
        assert not await _settle(rt, zombie, outcome)
    async with rt.db.write() as session:
        assert await leases.renew_leases(session, rt, [zombie, heir]) == [zombie]

    (job,) = await jobs(rt)
    assert {
        name: value for name, value in vars(job).items() if name != "_sa_instance_state"
    } == before[0]
    assert await _settle(rt, heir, JobDone())


@pytest.mark.parametrize("behind", [queue.verify_claim, queue.finish_job])
async def test_what_a_zombie_wrote_is_undone(
    rt: Runtime, lost: tuple[JobClaim, JobClaim], behind: object
) -> None:
    for claim, what in zip(lost, ("zombie", "heir"), strict=True):
        job = Once(n=1)
        job.bind_claim(claim)
        try:
            async with rt.db.write() as session:
                await leave(session, rt, 1, what)
                await behind(session, job)  # type: ignore[operator]
        except LeaseLost:
            assert what == "zombie"

    assert await traces(rt, "zombie") == []
    assert len(await traces(rt, "heir")) == 1


async def test_a_lease_that_ran_out_is_lost_even_before_anybody_takes_the_job(
    rt: Runtime, clock: ManualClock
) -> None:
    await _enqueue(rt, Ping())
    (claim,) = await _claim(rt)
    clock.advance(rt.settings.job_lease_seconds)
    job = Ping()
    job.bind_claim(claim)

    with pytest.raises(LeaseLost):
        async with rt.db.write() as session:
            await queue.verify_claim(session, job)
    assert not await _settle(rt, claim, JobDone())


async def test_a_renewed_lease_lasts_from_the_renewal(rt: Runtime, clock: ManualClock) -> None:
    await _enqueue(rt, Ping())
    (claim,) = await _claim(rt)
    for _ in range(5):
        clock.advance(rt.settings.job_lease_seconds - 1)
        async with rt.db.write() as session:
            assert await leases.renew_leases(session, rt, [claim]) == []
        assert claim.renewed_at == clock.monotonic()
        assert await leases.recover_expired_jobs(rt) == []


@pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
async def test_a_row_locked_by_the_fence_is_neither_renewed_nor_taken_for_lost(
    real: Runtime,
) -> None:
    """On SQLite there is only one writer anyway."""
    await _enqueue(real, Ping())
    (claim,) = await _claim(real)
    job = Ping()
    job.bind_claim(claim)
    before = claim.renewed_at
    async with real.db.write() as session:
        await queue.verify_claim(session, job)
        async with real.db.write() as other:
            assert await leases.renew_leases(other, real, [claim]) == []
        assert claim.renewed_at == before
    assert await _settle(real, claim, JobDone())


async def test_recovery_goes_page_by_page_and_buries_what_was_tried_often_enough(
    rt: Runtime, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        await queue.enqueue_all(session, rt, [Ping(n=n) for n in range(25)])
    for dead in (False, False, True):
        assert len(await _claim(rt, limit=25)) == 25
        clock.advance(rt.settings.job_lease_seconds)
        assert await leases.recover_expired_jobs(rt, page=10) == [(Ping.kind, dead)] * 25

    assert {(job.status, job.attempt_count, job.last_error_code) for job in await jobs(rt)} == {
        (JobStatus.DEAD, 3, "LEASE_EXPIRED")
    }


async def test_a_released_job_is_pending_at_once_and_its_attempt_does_not_count(
    rt: Runtime,
) -> None:
    await _enqueue(rt, Ping())
    (old,) = await _claim(rt)
    assert await _settle(rt, old, JobReleased())
    (job,) = await jobs(rt)
    assert (job.status, job.attempt_count, job.locked_by) == (JobStatus.PENDING, 0, None)

    (new,) = await _claim(rt)

    assert (new.attempt, old.attempt) == (1, 1)
    assert not await _settle(rt, old, JobDone()), (
        "the same worker, the same attempt, but another claim"
    )
    assert await _settle(rt, new, JobDone())


async def test_without_a_claim_there_is_no_lease_to_lose(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await queue.verify_claim(session, Ping())
        await queue.finish_job(session, Ping())
