"""What all connections of one process share, and the one sweep a second that looks after them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from refract.analytics.spool import Spool, Turn
from refract.core.address import TrustedProxies
from refract.redirect import answer
from refract.redirect.table import Table

STATE: Final = "refract.traffic"
"""The key under which the application's lifespan puts the `Traffic` into uvicorn's state, where each `Lane` finds it."""


@dataclass(frozen=True)
class Limits:
    """How long, and how much, a client may take. Seconds are counted by the sweep, so they hold to the second."""

    head_seconds: int = 8
    """From a connection's or request's first moment to the end of its headers."""
    body_seconds: int = 8
    """For a body to arrive, and one more for every `body_rate` bytes that did."""
    body_rate: int = 1024
    idle_seconds: int = 5
    """Between two requests."""
    stall_seconds: int = 30
    """For a client to take what we have written."""
    head_bytes: int = 64 * 1024


class Swept(Protocol):
    """A connection, as the sweep sees it."""

    def sweep(self, limits: Limits) -> None: ...


class Traffic:
    """Table, turn and limits of this process. `start` and `stop` belong to the lifespan."""

    def __init__(
        self,
        table: Table,
        spool: Spool,
        *,
        proxies: TrustedProxies | None = None,
        limits: Limits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.table = table
        self.turn = Turn(spool, lambda call: asyncio.get_running_loop().call_soon(call), self._ending())
        self.proxies = proxies or TrustedProxies()
        self.limits = limits or Limits()
        self.now_ns = now_ns
        self.lanes: set[Swept] = set()
        self.draining = False
        """Set before the process stops: every further answer then closes its connection."""

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + 1.0
        self._timer = loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        """End the sweep and send what is left. The spool is its owner's to close."""
        if self._timer is not None:
            self._timer.cancel()
        self.turn.commit()

    def sweep(self) -> None:
        """Renew the date and let every connection see whether its time is up."""
        self.turn.ending = self._ending()
        for lane in list(self.lanes):
            lane.sweep(self.limits)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = next_tick(self._due, loop.time())
        self._timer = loop.call_at(self._due, self._tick)
        self.sweep()

    @staticmethod
    def _ending() -> bytes:
        return answer.ending(time.time())


def next_tick(due: float, now: float) -> float:
    """The tick after one that was due: on the beat though that one came late, since ten delays in a row would make ten seconds eleven."""
    return due + 1.0 if now < due + 1.0 else now + 1.0
