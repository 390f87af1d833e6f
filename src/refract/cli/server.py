"""One server process: uvicorn, with a stop that fails nobody.

Stop = readiness off, listener closed, streams ended, `Connection: close` on each next answer, idle sockets closed after a
grace, the last clicks written.
"""

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Awaitable, Callable

import structlog
import uvicorn
from uvicorn.server import Server

from refract.cli.listener import HARD_SECONDS, emptied, fall_silent
from refract.cli.terminal import is_terminal_gone
from refract.core.sockets import hang_up, unread
from refract.node import Node

POLL_SECONDS = 0.02


class GracefulServer(Server):
    """Serves until a signal, then lets every request that was sent be answered."""

    def __init__(self, config: uvicorn.Config, application: Node) -> None:
        super().__init__(config)
        self._application = application
        self._grace = application.rt.settings.stop_grace_seconds
        self._asked = asyncio.Event()
        self._shared = False
        self.on_reload: Callable[[], None] = self.stop
        """What SIGHUP does to a process that serves alone."""
        self._log = structlog.get_logger("refract.server")

    async def run_until_stopped(self, listener: socket.socket, ready: Callable[[], Awaitable[None]], *, shared: bool = False) -> None:
        """Serve on a socket, our own or shared with others. `ready` is told once everything is answered; links are followed before that."""
        self._shared = shared
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.stop_or_hurry)
        # A child is told by its parent, and perhaps by whoever told the parent: twice is no hurry then.
        loop.add_signal_handler(signal.SIGTERM, self.stop if shared else self.stop_or_hurry)
        # A terminal that closes, and somebody who asks for a reload, may tell every process: a child leaves it to its parent.
        loop.add_signal_handler(signal.SIGHUP, (lambda: None) if shared else self._hang_up)
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        self.lifespan.state.update(self._application.connection_state)
        await self.startup([listener])
        completing = asyncio.create_task(self._complete(ready))
        await self.main_loop()
        await self.shutdown([listener])
        completing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await completing

    async def _complete(self, ready: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._application.loaded()
            await ready()
            await self._application.complete()
        except Exception:
            self.stop()
            raise
        _settle_memory()

    def stop(self) -> None:
        """Stop gracefully."""
        self.should_exit = True
        self._asked.set()

    def hand_over(self) -> None:
        """Stop gracefully, and leave the socket to the successor that serves on it."""
        self._shared = True
        self.stop()

    def _hang_up(self) -> None:
        if is_terminal_gone():
            self.stop()
        else:
            self.on_reload()

    def stop_or_hurry(self) -> None:
        """Stop gracefully; asked again, stop now."""
        self.force_exit = self.should_exit
        self.stop()

    async def main_loop(self) -> None:
        """Renew the date once a second; a stop is heard at once."""
        while not self.should_exit:
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._asked.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.stopping()
        for one in sockets or []:
            await (emptied(one) if self._shared else fall_silent(one))
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        self._announce()
        await self._wait(self._grace)  # clients of this moment get an answer that tells them to go elsewhere
        await self._wait(HARD_SECONDS, closing=True)
        for task in list(self.server_state.tasks):
            self._log.warning("request_cut_off")
            task.cancel()

    def _announce(self) -> None:
        """Let answers that are being made say that they are the last on their connection; of later ones the application sees to it."""
        for connection in self.server_state.connections:
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_started:
                cycle.keep_alive = False

    async def _wait(self, seconds: float, *, closing: bool = False) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:
            if asyncio.get_running_loop().time() >= deadline:
                return
            for connection in list(self.server_state.connections) if closing else ():
                if not unread(connection.transport):
                    connection.shutdown()
                    hang_up(connection.transport)
            await asyncio.sleep(POLL_SECONDS)


def _settle_memory() -> None:
    """What start-up made stays for good: the collector need not walk over it again and again while requests wait."""
    gc.collect()
    gc.freeze()
    gc.enable()
