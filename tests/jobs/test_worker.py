"""Outcomes of jobs: done, retried, or dead."""

import asyncio
from collections import Counter
from typing import ClassVar

import pytest

from refract.core.clock import ManualClock
from refract.core.errors import NotFound, StoreUnavailable
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.jobs.errors import TryAgain
from refract.jobs.handlers import HandlerRegistry, handles
from refract.jobs.models import JobStatus
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue
from refract.jobs.worker import JobWorker
from tests.jobs.conftest import jobs
from tests.jobs.work import HANDLERS, Broken, Flaky, Once, Ping, flaky, traces


async def _enqueue(rt: Runtime, *payloads: JobPayload) -> None:
    async with rt.db.write() as session:
        for payload in payloads:
            await enqueue(session, rt, payload)


def _counted(rt: Runtime, kind: str, outcome: str) -> float:
    return (
        rt.metrics.registry.get_sample_value(
            "refract_jobs_total", {"kind": kind, "outcome": outcome}
        )
        or 0.0
    )


async def test_tries_wait_0_30_and_300_seconds_and_the_third_is_the_last(
    rt: Runtime, clock: ManualClock
) -> None:
    calls: Counter[str] = Counter()
    registry = HandlerRegistry.from_functions([flaky(calls)])  # type: ignore[list-item]
    worker = JobWorker(rt, registry)
    await _enqueue(rt, Flaky())

    seen: list[tuple[str, int]] = []
    for pause in (0, 29.999, 0.001, 299.999, 0.001, 100_000):
        clock.advance(pause)
        await worker.run_due_jobs()
        seen.append(((await jobs(rt))[0].status, calls["flaky"]))

    failed, dead = JobStatus.FAILED, JobStatus.DEAD
    assert seen == [(failed, 1), (failed, 1), (failed, 2), (failed, 2), (dead, 3), (dead, 3)]
    (job,) = await jobs(rt)
    assert (job.last_error_code, job.last_error_message) == (
        "BUSY_ELSEWHERE",
        "the other side said 503",
    )
    assert job.finished_at is not None
    assert (_counted(rt, Flaky.kind, "failed"), _counted(rt, Flaky.kind, "dead")) == (2, 1)


async def test_what_passes_is_done_in_the_end(rt: Runtime, clock: ManualClock) -> None:
    calls: Counter[str] = Counter()
    registry = HandlerRegistry.from_functions([flaky(calls)])  # type: ignore[list-item]
    worker = JobWorker(rt, registry)
    await _enqueue(rt, Flaky(fails=1))
    await worker.run_due_jobs()
    clock.advance(30)
    await worker.run_due_jobs()

    (job,) = await jobs(rt)
    assert (job.status, job.attempt_count) == (JobStatus.DONE, 2)


async def test_what_cannot_pass_ends_at_once_without_secrets_in_its_message(rt: Runtime) -> None:
    await _enqueue(rt, Broken())

    assert await JobWorker(rt, HandlerRegistry.from_functions(HANDLERS)).run_due_jobs() == 1

    (job,) = await jobs(rt)
    assert (job.status, job.attempt_count, job.last_error_code) == (
        JobStatus.DEAD,
        1,
        "VALUE_ERROR",
    )
    assert job.last_error_message == "a page at https://[hidden]@example.com is not a page"


class Raises(JobPayload):
    kind: ClassVar[str] = "test.raises"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (TryAgain("BUSY", "later"), JobStatus.FAILED, "BUSY"),
        (StoreUnavailable(), JobStatus.FAILED, "STORE_UNAVAILABLE"),
        (TimeoutError("too slow"), JobStatus.FAILED, "TIMEOUT_ERROR"),
        (ConnectionResetError("gone"), JobStatus.FAILED, "CONNECTION_RESET_ERROR"),
        (OSError(113, "No route to host"), JobStatus.FAILED, "OSERROR"),
        (PermissionError(13, "Permission denied"), JobStatus.DEAD, "PERMISSION_ERROR"),
        (NotFound(), JobStatus.DEAD, "NOT_FOUND"),
        (KeyError("x"), JobStatus.FAILED, "KEY_ERROR"),
    ],
)
async def test_only_what_may_pass_is_tried_again(
    rt: Runtime, error: Exception, status: JobStatus, code: str
) -> None:
    @handles(Raises, transient_errors=(KeyError,))
    async def raising(_rt: Runtime, _job: Raises) -> None:
        raise error

    await _enqueue(rt, Raises())
    await JobWorker(rt, HandlerRegistry.from_functions([raising])).run_due_jobs()

    (job,) = await jobs(rt)
    assert (job.status, job.last_error_code) == (status, code)


async def test_a_payload_that_no_longer_fits_is_dead(rt: Runtime) -> None:
    class Older(JobPayload):
        kind = Ping.kind
        name: str

    await _enqueue(rt, Older(name="x"))
    await JobWorker(rt, HandlerRegistry.from_functions(HANDLERS)).run_due_jobs()

    (job,) = await jobs(rt)
    assert (job.status, job.last_error_code) == (JobStatus.DEAD, "PAYLOAD_INVALID")


async def test_a_handler_beyond_its_budget_is_stopped_and_tried_again(rt: Runtime) -> None:
    @handles(Raises, timeout=0.05)
    async def endless(_rt: Runtime, _job: Raises) -> None:
        await asyncio.sleep(600)

    await _enqueue(rt, Raises())
    await JobWorker(rt, HandlerRegistry.from_functions([endless])).run_due_jobs()

    (job,) = await jobs(rt)
    assert (job.status, job.last_error_code) == (JobStatus.FAILED, "TIMEOUT_ERROR")


async def test_a_job_finished_in_the_handlers_own_transaction_is_done_once(
    rt: Runtime, traced: Settings
) -> None:
    await _enqueue(rt, Once(n=1))
    await JobWorker(rt, HandlerRegistry.from_functions(HANDLERS)).run_due_jobs()

    (job,) = await jobs(rt)
    assert job.status == JobStatus.DONE
    assert len(await traces(rt, "once")) == 1
    assert _counted(rt, Once.kind, "done") == 1


def test_a_registry_is_built_of_marked_functions_one_per_kind() -> None:
    async def unmarked(_rt: Runtime, _job: Ping) -> None: ...

    with pytest.raises(TypeError, match="not marked"):
        HandlerRegistry.from_functions([unmarked])
    with pytest.raises(ValueError, match=r"two handlers for test\.ping"):
        HandlerRegistry.from_functions([HANDLERS[0], HANDLERS[0]])


def test_payloads_that_ask_for_the_same_are_equal() -> None:
    assert Ping(n=1) == Ping(n=1) != Ping(n=2)
    assert len({Ping(n=1), Ping(n=1)}) == 1
