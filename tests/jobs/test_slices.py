"""Long work in slices, each in its own transaction and followed by a pause."""

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.slices import PAUSE_SECONDS, run_in_slices, write_in_slices
from tests.client import on_sqlite

pytestmark = on_sqlite


async def test_steps_repeat_until_one_does_nothing_and_their_results_are_added(
    rt: Runtime, clock: ManualClock
) -> None:
    results, before = [3, 2, 0, 7], clock.monotonic()

    async def step() -> int:
        return results.pop(0)

    assert await run_in_slices(rt, step) == 5
    assert results == [7]
    assert clock.monotonic() - before == pytest.approx(2 * PAUSE_SECONDS), "a pause after each"


async def test_no_more_steps_are_taken_than_allowed(rt: Runtime) -> None:
    async def step() -> int:
        return 1

    assert await run_in_slices(rt, step, max_steps=3) == 3


async def test_each_step_has_a_transaction_of_its_own(rt: Runtime) -> None:
    sessions: list[WriteSession] = []
    committed: list[WriteSession] = []

    async def step(session: WriteSession) -> int:
        assert committed == sessions, "those before have ended"
        sessions.append(session)
        session.after_commit(lambda: committed.append(session))
        return len(sessions) < 3

    assert await write_in_slices(rt, step) == 2
    assert len(sessions) == len(committed) == 3
