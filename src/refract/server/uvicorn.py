"""A server process on uvicorn, with a graceful stop.

A stop means: readiness off, listener closed, streams ended, `Connection: close` on each next
response, idle sockets closed after a grace period, the last clicks written.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import Server

from refract.core.runtime import Runtime
from refract.core.sockets import has_unread_data, shut_down_writing
from refract.server.child_link import freeze_memory
from refract.server.connection_queue import ConnectionReceiver
from refract.server.listener import SHUTDOWN_TIMEOUT, stop_accepting, wait_until_empty
from refract.server.terminal import is_terminal_closed

POLL_INTERVAL = 0.02


class ServedNode(Protocol):
    """What a server needs to know of the node it serves."""

    rt: Runtime

    @property
    def connection_state(self) -> Mapping[str, Any]: ...

    def start_draining(self) -> None: ...

    async def wait_until_loaded(self) -> None: ...

    async def wait_until_complete(self) -> None: ...


def build_config(app: ASGIApp, protocol: type[asyncio.Protocol]) -> uvicorn.Config:
    """Return uvicorn's configuration for an application with our protocol."""
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="uvloop",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=4096,
    )


class GracefulServer(Server):
    """Serves until a signal, then answers every request that was sent."""

    def __init__(self, config: uvicorn.Config, node: ServedNode) -> None:
        super().__init__(config)
        self._node = node
        self._grace = node.rt.settings.stop_grace_seconds
        self._stop_requested = asyncio.Event()
        self._shares_listener = False
        self._drained_at = 0.0
        self._receiver: ConnectionReceiver | None = None
        self._accepting: set[asyncio.Task[Any]] = set()
        self.on_reload: Callable[[], None] = self.stop
        """The reaction to SIGHUP of a process that serves alone."""
        self._log = structlog.get_logger("refract.server")

    async def run_until_stopped(
        self,
        listener: socket.socket | None,
        ready: Callable[[], Awaitable[None]],
        *,
        shared: bool = False,
        connections: socket.socket | None = None,
    ) -> None:
        """Serve on a socket, our own or shared, and what other processes pass on in a queue.

        `ready` is called once every request is answered; redirects work before that.
        """
        listeners = [] if listener is None else [listener]
        self._shares_listener = shared
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.stop_or_force)
        # A child gets the signal from its parent, and perhaps from the sender to the parent as
        # well: the second one does not mean haste.
        on_term = self.stop if shared else self.stop_or_force
        if listener is None:
            # Connections are passed on until the redirecting process has ended, before the parent
            # leaves this one.
            on_term = self._prepare_stop
            loop.add_signal_handler(signal.SIGINT, on_term)
        loop.add_signal_handler(signal.SIGTERM, on_term)
        # A closing terminal, or a reload, may signal every process: a child leaves it to its
        # parent.
        loop.add_signal_handler(signal.SIGHUP, (lambda: None) if shared else self._on_sighup)
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        self.lifespan.state.update(self._node.connection_state)
        await self.startup(listeners)
        if connections is not None:
            self._receiver = ConnectionReceiver(connections, self._accept_connection)
            self._receiver.start()
        completing = asyncio.create_task(self._finish_startup(ready))
        await self.main_loop()
        await self.shutdown(listeners)
        completing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await completing

    def _accept_connection(self, connection: socket.socket, data: bytes, is_last: bool) -> None:
        """Serve a connection that another process has passed on."""
        protocol: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        protocol = partial(
            protocol,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            data=data,
            is_last=is_last,
        )
        loop = asyncio.get_running_loop()
        task = loop.create_task(_serve_connection(loop, protocol, connection))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    async def _finish_startup(self, ready: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._node.wait_until_loaded()
            await ready()
            await self._node.wait_until_complete()
        except Exception:
            self.stop()
            raise
        freeze_memory()

    def stop(self) -> None:
        """Stop gracefully."""
        self.should_exit = True
        self._stop_requested.set()

    def _prepare_stop(self) -> None:
        """Close connections with their next response, and stop when the parent is gone."""
        if not self._drained_at:
            loop = asyncio.get_running_loop()
            self._drained_at = loop.time()
            self._node.start_draining()
            self._disable_keep_alive()
            loop.call_later(self._grace + 2 * SHUTDOWN_TIMEOUT, self.stop)

    def hand_over(self) -> None:
        """Stop gracefully, and leave the socket to the successor."""
        self._shares_listener = True
        self.stop()

    def _on_sighup(self) -> None:
        if is_terminal_closed():
            self.stop()
        else:
            self.on_reload()

    def stop_or_force(self) -> None:
        """Stop gracefully; on the second call, stop immediately."""
        self.force_exit = self.should_exit
        self.stop()

    async def main_loop(self) -> None:
        """Refresh the date once a second; a stop takes effect immediately."""
        while not self.should_exit:
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._node.start_draining()
        drained_at = self._drained_at or asyncio.get_running_loop().time()
        if self._receiver is not None:
            self._receiver.stop()
            await asyncio.gather(*self._accepting)
        for listener in sockets or []:
            await (
                wait_until_empty(listener) if self._shares_listener else stop_accepting(listener)
            )
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        self._disable_keep_alive()
        # Current clients get a response that closes their connection.
        await self._wait_for_connections(drained_at + self._grace)
        until = asyncio.get_running_loop().time() + SHUTDOWN_TIMEOUT
        await self._wait_for_connections(until, closing=True)
        for task in list(self.server_state.tasks):
            self._log.warning("request_cancelled")
            task.cancel()

    def _disable_keep_alive(self) -> None:
        """Make responses in progress the last on their connection.

        Later ones are up to the application.
        """
        for connection in self.server_state.connections:
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_started:
                cycle.keep_alive = False

    async def _wait_for_connections(self, deadline: float, *, closing: bool = False) -> None:
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:
            if asyncio.get_running_loop().time() >= deadline:
                return
            for connection in list(self.server_state.connections) if closing else ():
                if not has_unread_data(connection.transport):
                    connection.shutdown()
                    shut_down_writing(connection.transport)
            await asyncio.sleep(POLL_INTERVAL)


async def _serve_connection(
    loop: asyncio.AbstractEventLoop,
    protocol: Callable[[], asyncio.Protocol],
    connection: socket.socket,
) -> None:
    with contextlib.suppress(OSError):  # the client is gone
        connection.setblocking(False)
        await loop.connect_accepted_socket(protocol, connection)
