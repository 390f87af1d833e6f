"""Waiting for a condition.

The limit is generous, because a busy machine is slow and a test does not measure time.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

PATIENCE = 120.0

Condition = Callable[[], object] | Callable[[], Awaitable[object]]


async def eventually(
    condition: Condition,
    timeout: float = PATIENCE,  # noqa: ASYNC109 - a test waits here
    *,
    pause: float = 0.02,
) -> None:
    """Wait until the condition holds; fail with its source if it does not within the time."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < deadline, _overdue(condition, timeout)
        await asyncio.sleep(pause)


async def keeps(condition: Callable[[], object], seconds: float = 0.2) -> None:
    """Check that a condition keeps holding: what must not happen has no event to wait for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"no longer true: {_read_source(condition)}"
        await asyncio.sleep(0.01)


def eventually_blocking(
    condition: Callable[[], object],
    timeout: float = PATIENCE,
    *,
    pause: float = 0.05,
    explain: Callable[[], object] = str,
) -> None:
    """Wait as `eventually` does, in a test without an event loop.

    `explain` adds to the failure, say a server's log.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{_overdue(condition, timeout)}\n{explain()}"
        time.sleep(pause)


def _overdue(condition: Callable[[], object], timeout: float) -> str:
    return f"not within {timeout:g} s: {_read_source(condition)}"


def _read_source(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
