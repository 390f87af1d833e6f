"""Fair shares of the workers.

The finding: jobs were claimed first come, first served across users, so one user's thousands of
captures delayed all others, and privacy jobs (salts, erasure) were in the same queue.
"""

import asyncio
from collections.abc import Awaitable, Callable

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.jobs import claims, leases, queue
from refract.jobs.claims import ShareCursor
from refract.jobs.handlers import HandlerRegistry, JobDone, JobFailed, handles
from refract.jobs.models import COMMON_SHARE, MAINTENANCE_SHARE
from refract.jobs.payload import JobClaim, JobPayload
from refract.jobs.worker import JobWorker
from tests.jobs.work import Once, Ping
from tests.waiting import PATIENCE

TRIES = {Ping.kind: 3}
EVE, ADA, BOB = 900, 100, 500
MANY = 3000


async def _ask(rt: Runtime, share: int, count: int = 1) -> list[int]:
    async with rt.db.write() as session:
        return await queue.enqueue_all(
            session, rt, [Ping(n=share) for _ in range(count)], share=share
        )


async def _claim(rt: Runtime, turn: ShareCursor | None = None, limit: int = 1) -> list[JobClaim]:
    async with rt.db.write() as session:
        return await claims.claim_jobs(session, rt, "a", TRIES, limit, turn)


async def _order(rt: Runtime, turns: int, turn: ShareCursor | None = None) -> list[int]:
    """Return whose jobs are run, in order."""
    turn = turn or ShareCursor()
    served = []
    for _ in range(turns):
        (claim,) = await _claim(rt, turn)
        served.append(claim.share)
        async with rt.db.write() as session:
            await leases.record_outcome(session, rt, claim, JobDone())
    return served


async def test_thousands_of_jobs_of_one_person_delay_anothers_by_one_turn(rt: Runtime) -> None:
    await _ask(rt, EVE, MANY)
    assert await _order(rt, 2) == [EVE, EVE]
    await _ask(rt, ADA, 2)
    await _ask(rt, BOB)

    assert await _order(rt, 6, ShareCursor(EVE)) == [ADA, BOB, EVE, ADA, EVE, EVE]


async def test_within_a_share_the_oldest_comes_first(rt: Runtime) -> None:
    first, second = await _ask(rt, EVE, 2)

    assert [claim.job_id for claim in await _claim(rt, limit=2)] == [first, second]


async def test_several_places_are_shared_out(rt: Runtime) -> None:
    await _ask(rt, EVE, MANY)
    await _ask(rt, ADA, 5)
    await _ask(rt, COMMON_SHARE)

    assert [claim.share for claim in await _claim(rt, ShareCursor(EVE), limit=5)] == [
        COMMON_SHARE,
        ADA,
        ADA,
        EVE,
        EVE,
    ]
    assert [claim.share for claim in await _claim(rt, ShareCursor(ADA), limit=4)] == [
        EVE,
        EVE,
        ADA,
        ADA,
    ]


async def test_what_fails_again_and_again_waits_its_turn_too(
    rt: Runtime, clock: ManualClock
) -> None:
    """Retries come before a user's own new jobs, never before another user's."""
    await _ask(rt, EVE, 3)
    for claim in await _claim(rt, limit=3):
        async with rt.db.write() as session:
            await leases.record_outcome(session, rt, claim, JobFailed("X", "x", 30))
    clock.advance(60)
    await _ask(rt, ADA, 3)

    assert await _order(rt, 4) == [ADA, EVE, ADA, EVE]


async def test_what_is_not_due_takes_no_turn(rt: Runtime, clock: ManualClock) -> None:
    async with rt.db.write() as session:
        await queue.enqueue(session, rt, Ping(), run_at=clock.now().replace(year=2030), share=ADA)
        await queue.enqueue(
            session, rt, Once(n=1), share=BOB
        )  # of a kind that this worker does not know
    await _ask(rt, EVE, 2)

    assert await _order(rt, 2) == [EVE, EVE]
    assert await _claim(rt) == []


async def test_maintenance_has_a_lane_of_its_own(rt: Runtime) -> None:
    await _ask(rt, EVE, MANY)
    kept = await _ask(rt, MAINTENANCE_SHARE)

    assert {claim.share for claim in await _claim(rt, limit=10)} == {EVE}
    async with rt.db.read() as session:
        assert (
            await claims.get_seconds_until_due(session, rt, list(TRIES), maintenance_only=True) == 0
        )
    async with rt.db.write() as session:
        assert [
            claim.job_id
            for claim in await claims.claim_maintenance_jobs(session, rt, "a", TRIES, 10)
        ] == kept


async def test_a_claim_costs_the_same_however_many_wait(rt: Runtime) -> None:
    await _ask(rt, ADA)
    await _ask(rt, EVE)
    counts = []
    for more in (1, MANY):
        await _ask(rt, EVE, more)
        statements: list[str] = []
        stop = count_statements(rt.db.engine, statements.append)
        await _claim(rt, ShareCursor(ADA), limit=1)
        stop()
        counts.append(len(statements))

    assert counts[0] == counts[1]
    assert counts[0] <= 8


class Waiting(JobPayload):
    """A job that takes as long as the test wants."""

    kind = "test.waiting"


async def test_a_worker_full_of_peoples_jobs_still_does_maintenance(rt: Runtime) -> None:
    """All slots have captures that do not end; the salts are destroyed meanwhile."""
    release, full, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    begun = 0

    @handles(Waiting)
    async def wait(_rt: Runtime, _job: Waiting) -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            full.set()
        await release.wait()

    @handles(Ping)
    async def tidy(_rt: Runtime, _job: Ping) -> None:
        done.set()

    worker = JobWorker(rt, HandlerRegistry.from_functions([wait, tidy]), concurrency=2)
    async with rt.db.write() as session:
        await queue.enqueue_all(session, rt, [Waiting() for _ in range(5)], share=EVE)
    await worker.start()
    try:
        await _within(full.wait)
        await _ask(rt, MAINTENANCE_SHARE)
        await _within(done.wait)
        assert begun == 2, "the reserved place is not for captures"
    finally:
        release.set()
        await worker.stop()


async def _within(condition: Callable[[], Awaitable[object]]) -> None:
    await asyncio.wait_for(condition(), PATIENCE)
