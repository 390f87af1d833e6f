"""A task may be cancelled at any moment: its transaction is undone, and no connection is lost."""

import asyncio
from collections import Counter

from sqlalchemy import text

from refract.core.runtime import Runtime

MOMENTS = 60


async def test_cancelling_the_undoing_of_a_failed_block_hides_nothing_and_keeps_no_connection(
    rt: Runtime,
) -> None:
    failing = asyncio.Event()

    async def work() -> None:
        async with rt.db.write() as session:
            await session.execute(text("SELECT 1"))
            failing.set()
            raise LookupError

    ends: Counter[str] = Counter()
    for moment in range(MOMENTS):
        failing.clear()
        task = asyncio.create_task(work())
        await failing.wait()
        for _ in range(moment % 20):
            await asyncio.sleep(0)
        task.cancel()
        (end,) = await asyncio.gather(task, return_exceptions=True)
        ends[type(end).__name__] += 1

    assert set(ends) <= {"LookupError", "CancelledError"}, ends
    assert ends["CancelledError"], "no cancellation met a roll-back: the test shows nothing"
    assert rt.db.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
