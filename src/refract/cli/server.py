"""One server process: uvicorn, with a stop that fails nobody.

Stop = readiness off, listener closed, streams ended, `Connection: close` on each next answer, idle sockets closed after a
grace, the last clicks written.
"""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable

import structlog
import uvicorn
from uvicorn.server import Server

from refract.node import Node

POLL_SECONDS = 0.02
HARD_SECONDS = 10.0


class GracefulServer(Server):
    """Serves until a signal, then lets every request that was sent be answered."""

    def __init__(self, config: uvicorn.Config, application: Node) -> None:
        super().__init__(config)
        self._application = application
        self._grace = application.rt.settings.stop_grace_seconds
        self._log = structlog.get_logger("refract.server")

    async def run_until_stopped(self, listener: socket.socket, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve on a socket; `ready` is told once connections are accepted."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        self.lifespan.state.update(self._application.connection_state)
        await self.startup([listener])
        await ready()
        await self.main_loop()
        await self.shutdown([listener])

    def stop(self) -> None:
        """Stop gracefully; asked again, stop now."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.stopping()
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        await self._wait(self._grace)  # clients of this moment get an answer that tells them to go elsewhere
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._wait(HARD_SECONDS)
        for task in list(self.server_state.tasks):
            self._log.warning("request_cut_off")
            task.cancel()

    async def _wait(self, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:
            if asyncio.get_running_loop().time() >= deadline:
                return
            await asyncio.sleep(POLL_SECONDS)
