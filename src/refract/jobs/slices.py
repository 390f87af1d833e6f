"""Long work in short transactions, so that no other writer waits long for a lock."""

from collections.abc import Awaitable, Callable
from typing import Final

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime

PAUSE_SECONDS: Final = 0.01
"""After each slice, for other writers."""


async def run_in_slices(
    rt: Runtime, step: Callable[[], Awaitable[int]], *, max_steps: int | None = None
) -> int:
    """Repeat `step` until it returns 0 or `max_steps` is reached; return the sum of its results."""
    done = steps = 0
    while (max_steps is None or steps < max_steps) and (number := await step()):
        done += number
        steps += 1
        await rt.clock.sleep(PAUSE_SECONDS)
    return done


async def write_in_slices(rt: Runtime, step: Callable[[WriteSession], Awaitable[int]]) -> int:
    """Repeat `step` like `run_in_slices`, each time in a transaction of its own."""

    async def write() -> int:
        async with rt.db.write() as session:
            return await step(session)

    return await run_in_slices(rt, write)
