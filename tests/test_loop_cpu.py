"""The measure itself: it sees work on the loop, and nothing that is done elsewhere."""

import asyncio
import time

import pytest

from tests.loop_cpu import measure_loop_cpu


def _burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_a_busy_callback_is_named() -> None:
    async def greedy() -> None:
        await asyncio.sleep(0)
        _burn(0.03)

    with measure_loop_cpu() as cpu:
        await asyncio.create_task(greedy(), name="hog")

    assert cpu.longest >= 0.03
    with pytest.raises(AssertionError, match=r"hog .*greedy"):
        cpu.assert_below(0.02)


async def test_what_waits_or_runs_in_a_thread_is_not_counted() -> None:
    with measure_loop_cpu() as cpu:
        await asyncio.gather(asyncio.sleep(0.03), asyncio.to_thread(_burn, 0.03))

    assert cpu.callbacks
    cpu.assert_below(0.02)


async def test_what_the_block_does_itself_counts() -> None:
    with measure_loop_cpu() as all_of_it:
        _burn(0.03)
    with measure_loop_cpu() as beginning:
        _burn(0.03)
        await asyncio.sleep(0)
    with measure_loop_cpu() as end:
        await asyncio.sleep(0)
        _burn(0.03)

    assert min(all_of_it.longest, beginning.longest, end.longest) >= 0.03
