"""A slot of the supervisor: it always has a process, and restarts one that died."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from refract.server.fork_client import ForkedProcess

MIN_LIFETIME_SECONDS = 2.0
MIN_RESTART_SECONDS = 0.25
MAX_RESTART_SECONDS = 10.0


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A process that serves, or only redirects.

    It has the other end of `lifeline`: a byte on it lets it begin; when it closes, it stops. So no
    orphan outlives the parent.
    """

    name: str
    process: ForkedProcess
    lifeline: int
    started_at: float
    ready: bool

    def cut_lifeline(self) -> None:
        """Let the process stop. Does nothing the second time."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


class ProcessSlot:
    """A slot that always has a process. Slots are independent, so that none waits for another."""

    def __init__(
        self,
        spawn: Callable[[], Awaitable[ChildProcess]],
        stop: Callable[[ChildProcess], Awaitable[None]],
    ) -> None:
        self._spawn = spawn
        self._stop = stop
        self._child: ChildProcess | None = None
        self._change_lock = asyncio.Lock()
        self._restart_delay = 0.0
        self._log = structlog.get_logger("refract.supervisor")

    async def run(self) -> None:
        """Start a process, and another one whenever it dies, forever."""
        while True:
            child = self._child
            if child is not None:
                await child.process.wait()
            async with self._change_lock:
                # Otherwise it was replaced on purpose; wait for its successor.
                if self._child is child:
                    await self._restart_child(child)

    async def replace_child(self) -> bool:
        """Replace the process by a new one once that serves; return False if it does not."""
        async with self._change_lock:
            new = await self._spawn()
            if not new.ready:
                self._log.error("replacement_failed", code=new.process.returncode)
                await self._stop(new)
                return False
            old, self._child = self._child, new
        if old is not None:
            await self._stop(old)
        return True

    async def _restart_child(self, dead: ChildProcess | None) -> None:
        """Restart a process that died, with growing delays if they keep dying young."""
        if dead is not None:
            young = time.monotonic() - dead.started_at < MIN_LIFETIME_SECONDS or not dead.ready
            self._restart_delay = (
                min(MAX_RESTART_SECONDS, max(MIN_RESTART_SECONDS, self._restart_delay * 2))
                if young
                else 0.0
            )
            self._log.error(
                "server_process_died",
                code=dead.process.returncode,
                next_in_seconds=self._restart_delay,
            )
            await self._stop(dead)
            self._child = None
            await asyncio.sleep(self._restart_delay)
        self._child = await self._spawn()
        if not self._child.ready:
            self._log.error("server_process_failed", code=self._child.process.returncode)
