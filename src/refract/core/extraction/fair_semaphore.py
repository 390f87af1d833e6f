"""A semaphore that is fair between owners."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from refract.core.extraction.tasks import ExtractionBusy

_Waiting = OrderedDict[str, deque[asyncio.Future[None]]]


class FairSemaphore:
    """Grants `size` slots at a time, round-robin by owner.

    Slow work gets all slots but one, if there are two. `max_waiting` bounds the waiting work of one
    owner; beyond it `ExtractionBusy` is raised immediately.
    """

    def __init__(self, size: int, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._free = size
        self._free_for_slow = max(1, size - 1)
        self._waiting: dict[bool, _Waiting] = {False: OrderedDict(), True: OrderedDict()}
        self._was_slow_last = False

    @property
    def waiting_count(self) -> int:
        return sum(len(line) for lines in self._waiting.values() for line in lines.values())

    @asynccontextmanager
    async def acquire(self, owner: str, *, slow: bool) -> AsyncIterator[None]:
        """Wait for a slot and keep it for the block. A cancelled wait leaves the queue."""
        granted = self._enqueue(owner, slow)
        self._grant_waiting()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release(slow)
            else:
                self._dequeue(owner, slow, granted)
            raise
        try:
            yield
        finally:
            self._release(slow)

    def _enqueue(self, owner: str, slow: bool) -> asyncio.Future[None]:
        line = self._waiting[slow].get(owner)
        if line is not None and len(line) >= self._max_waiting:
            raise ExtractionBusy
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[slow].setdefault(owner, deque()).append(granted)
        return granted

    def _dequeue(self, owner: str, slow: bool, granted: asyncio.Future[None]) -> None:
        line = self._waiting[slow][owner]
        line.remove(granted)
        if not line:
            del self._waiting[slow][owner]

    def _release(self, slow: bool) -> None:
        self._free += 1
        self._free_for_slow += slow
        self._grant_waiting()

    def _grant_waiting(self) -> None:
        while (slow := self._choose_next_kind()) is not None:
            lines = self._waiting[slow]
            owner, line = lines.popitem(last=False)
            granted = line.popleft()
            if line:
                lines[owner] = line  # behind all other owners
            self._free -= 1
            self._free_for_slow -= slow
            self._was_slow_last = slow
            granted.set_result(None)

    def _choose_next_kind(self) -> bool | None:
        """Return whether slow work is next; None if no slot can be granted.

        Quick and slow work alternate where both wait.
        """
        quick = bool(self._free and self._waiting[False])
        slow = bool(self._free and self._free_for_slow and self._waiting[True])
        if quick and slow:
            return not self._was_slow_last
        return True if slow else False if quick else None
