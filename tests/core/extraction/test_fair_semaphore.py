"""Slots are granted round-robin by owner, bounded for each, and a cancelled wait is harmless."""

import asyncio
from contextlib import suppress

import pytest

from refract.core.extraction.fair_semaphore import FairSemaphore
from refract.core.extraction.tasks import ExtractionBusy


class Line:
    """Owners that wait for slots, each kept until the test releases it."""

    def __init__(self, turns: FairSemaphore) -> None:
        self.turns = turns
        self.served: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, owner: str, name: str, *, slow: bool = False) -> None:
        self.gates[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._hold(owner, name, slow))
        await settle()

    async def finish(self, name: str) -> None:
        self.gates[name].set()
        await self.tasks[name]
        await settle()

    async def _hold(self, owner: str, name: str, slow: bool) -> None:
        async with self.turns.acquire(owner, slow=slow):
            self.served.append(name)
            await self.gates[name].wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_comes_with_much_waits_behind_who_comes_with_little() -> None:
    line = Line(FairSemaphore(1, max_waiting=10))
    for number in range(4):
        await line.add("eve", f"eve{number}")
    await line.add("ada", "ada0")
    await line.add("bob", "bob0")

    for name in ("eve0", "eve1", "ada0", "bob0", "eve2"):
        await line.finish(name)

    assert line.served == ["eve0", "eve1", "ada0", "bob0", "eve2", "eve3"]
    await line.finish("eve3")


async def test_slow_work_leaves_one_turn_to_the_rest() -> None:
    line = Line(FairSemaphore(2, max_waiting=10))
    for number in range(3):
        await line.add("eve", f"slow{number}", slow=True)
    await line.add("ada", "quick")

    assert line.served == ["slow0", "quick"]
    await line.finish("quick")
    assert line.served == ["slow0", "quick"], "the second slow one waits although a turn is free"
    for number in range(3):
        await line.finish(f"slow{number}")


async def test_a_single_turn_alternates_between_slow_and_quick() -> None:
    line = Line(FairSemaphore(1, max_waiting=10))
    for name in ("q0", "q1", "q2"):
        await line.add("eve", name)
    for name in ("s0", "s1"):
        await line.add("ada", name, slow=True)

    for name in ("q0", "s0", "q1", "s1", "q2"):
        await line.finish(name)

    assert line.served == ["q0", "s0", "q1", "s1", "q2"]


async def test_one_person_can_only_have_so_much_waiting() -> None:
    line = Line(FairSemaphore(1, max_waiting=2))
    for name in ("a", "b", "c"):
        await line.add("eve", name)
    assert line.turns.waiting_count == 2

    with pytest.raises(ExtractionBusy):
        async with line.turns.acquire("eve", slow=False):
            pass

    await line.add("ada", "ada")
    for name in ("a", "b", "ada", "c"):
        await line.finish(name)


@pytest.mark.parametrize("settled", [True, False])
async def test_a_cancelled_place_is_passed_on(settled: bool) -> None:
    """Also one that was granted in the same turn of the loop in which it is cancelled."""
    line = Line(FairSemaphore(1, max_waiting=9))
    for name in ("a", "b", "c"):
        await line.add("eve", name)

    if not settled:
        line.gates["a"].set()
        await asyncio.sleep(0)  # `b` has been granted its slot and has not run yet
    line.tasks["b"].cancel()
    with suppress(asyncio.CancelledError):
        await line.tasks["b"]
    await line.finish("a")

    assert "c" in line.served
    assert line.turns.waiting_count == 0
    await line.finish("c")
    async with line.turns.acquire("eve", slow=False):
        pass
