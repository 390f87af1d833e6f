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

from refract.core.sockets import has_unread_data, shut_down_writing
from refract.server.listener import SHUTDOWN_TIMEOUT, stop_accepting, wait_until_empty
from refract.server.node import ServerNode
from refract.server.terminal import is_terminal_closed

POLL_INTERVAL = 0.02


class GracefulServer(Server):
    """Serves until a signal, then lets every request that was sent be answered."""

    def __init__(self, config: uvicorn.Config, node: ServerNode) -> None:
        super().__init__(config)
        self._node = node
        self._grace = node.rt.settings.stop_grace_seconds
        self._stop_requested = asyncio.Event()
        self._shares_listener = False
        self.on_reload: Callable[[], None] = self.stop
        """What SIGHUP does to a process that serves alone."""
        self._log = structlog.get_logger("refract.server")

    async def run_until_stopped(
        self, listener: socket.socket, ready: Callable[[], Awaitable[None]], *, shared: bool = False
    ) -> None:
        """Serve on a socket, our own or shared with others. `ready` is told once everything is answered; links are followed before that."""
        self._shares_listener = shared
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.stop_or_force)
        # A child is told by its parent, and perhaps by whoever told the parent: twice is no hurry then.
        loop.add_signal_handler(signal.SIGTERM, self.stop if shared else self.stop_or_force)
        # A terminal that closes, and somebody who asks for a reload, may tell every process: a child leaves it to its parent.
        loop.add_signal_handler(signal.SIGHUP, (lambda: None) if shared else self._on_sighup)
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        self.lifespan.state.update(self._node.connection_state)
        await self.startup([listener])
        completing = asyncio.create_task(self._finish_startup(ready))
        await self.main_loop()
        await self.shutdown([listener])
        completing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await completing

    async def _finish_startup(self, ready: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._node.wait_until_loaded()
            await ready()
            await self._node.wait_until_complete()
        except Exception:
            self.stop()
            raise
        _freeze_memory()

    def stop(self) -> None:
        """Stop gracefully."""
        self.should_exit = True
        self._stop_requested.set()

    def hand_over(self) -> None:
        """Stop gracefully, and leave the socket to the successor that serves on it."""
        self._shares_listener = True
        self.stop()

    def _on_sighup(self) -> None:
        if is_terminal_closed():
            self.stop()
        else:
            self.on_reload()

    def stop_or_force(self) -> None:
        """Stop gracefully; asked again, stop now."""
        self.force_exit = self.should_exit
        self.stop()

    async def main_loop(self) -> None:
        """Renew the date once a second; a stop is heard at once."""
        while not self.should_exit:
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._node.start_draining()
        for one in sockets or []:
            await (wait_until_empty(one) if self._shares_listener else stop_accepting(one))
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        self._disable_keep_alive()
        await self._wait_for_connections(
            self._grace
        )  # clients of this moment get an answer that tells them to go elsewhere
        await self._wait_for_connections(SHUTDOWN_TIMEOUT, closing=True)
        for task in list(self.server_state.tasks):
            self._log.warning("request_cut_off")
            task.cancel()

    def _disable_keep_alive(self) -> None:
        """Let answers that are being made say that they are the last on their connection; of later ones the application sees to it."""
        for connection in self.server_state.connections:
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_started:
                cycle.keep_alive = False

    async def _wait_for_connections(self, seconds: float, *, closing: bool = False) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:
            if asyncio.get_running_loop().time() >= deadline:
                return
            for connection in list(self.server_state.connections) if closing else ():
                if not has_unread_data(connection.transport):
                    connection.shutdown()
                    shut_down_writing(connection.transport)
            await asyncio.sleep(POLL_INTERVAL)


def _freeze_memory() -> None:
    """What start-up made stays for good: the collector need not walk over it again and again while requests wait."""
    gc.collect()
    gc.freeze()
    gc.enable()
