"""The process of role `all` that accepts connections and only redirects.

It loads neither pages nor the API nor jobs, so nothing keeps a redirect waiting. Connections with
any other request are passed to the serving processes (`redirect.passing`).
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from starlette.types import Receive, Scope, Send

from refract.core.db.raw import SqliteFile, open_raw_reader
from refract.core.db.schema_state import require_readable_schema
from refract.core.loop_lag import LoopLagProbe
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.redirect.engine import RedirectEngine
from refract.redirect.passing import PassingState, RedirectOnlyProtocol
from refract.server.change_relay import receive_changes
from refract.server.child_link import ChildLink, run_child
from refract.server.connection_queue import ConnectionSender
from refract.server.peers import MetricsPeers
from refract.server.uvicorn import GracefulServer, build_config
from refract.web.connections import CONNECTIONS_STATE_KEY, PASSING_STATE_KEY

if TYPE_CHECKING:
    from refract.core.db.session import Database


class RedirectNode:
    """The engine of a process that only redirects, as its server sees it."""

    def __init__(self, rt: Runtime, queue: ConnectionSender) -> None:
        self.rt = rt
        self.engine = RedirectEngine(rt)
        self.protocol_class = RedirectOnlyProtocol
        self._passing = PassingState(queue, self.engine.look_up)

    @property
    def connection_state(self) -> Mapping[str, Any]:
        """Return the state that every connection gets."""
        return {CONNECTIONS_STATE_KEY: self.engine.connections, PASSING_STATE_KEY: self._passing}

    def start_draining(self) -> None:
        """Close open connections with their next response."""
        self.engine.connections.is_draining = True

    async def wait_until_loaded(self) -> None:
        """Do nothing: there is nothing more to load."""

    async def wait_until_complete(self) -> None:
        """Do nothing, as above."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Do nothing: every request is answered by the protocol, or passed on."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the engine, and measure the delay of the event loop."""
        probing = asyncio.create_task(LoopLagProbe(self.rt).run(), name="loop-probe")
        try:
            async with self.engine.run():
                yield
        finally:
            probing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await probing


def _open_database(settings: Settings) -> "Database":
    """Open the database. Of SQLite only what the engine uses: SQLAlchemy takes 20 MB."""
    if settings.dialect == "sqlite":
        return cast("Database", SqliteFile(settings))
    from refract.core.db.session import Database  # noqa: PLC0415 - see above

    return Database(settings)


async def _require_schema(db: "Database") -> None:
    reader = open_raw_reader(db)
    await require_readable_schema(reader)
    await reader.close()


async def _redirect(settings: Settings, link: ChildLink) -> None:
    listener, receiver, sender = (socket.socket(fileno=number) for number in link.sockets)
    listener.setblocking(False)
    async with AsyncExitStack() as exit_stack:
        db = _open_database(settings)
        exit_stack.push_async_callback(db.close)
        await _require_schema(db)
        rt = await exit_stack.enter_async_context(open_runtime(settings, db=db, makes_ids=False))
        node = RedirectNode(rt, ConnectionSender(sender))
        await exit_stack.enter_async_context(node.run())
        await exit_stack.enter_async_context(
            receive_changes(link.directory, node.engine.invalidator.apply_changes)
        )
        await exit_stack.enter_async_context(
            MetricsPeers(link.directory, link.name).serve(rt.metrics.render)
        )
        server = GracefulServer(build_config(node, node.protocol_class), node)
        link.stop_with_parent(server.stop)
        await server.run_until_stopped(
            listener, link.notify_ready, shared=True, connections=receiver
        )


def main(arguments: list[str], descriptors: list[int]) -> None:
    """Redirect on the socket of a supervisor."""
    run_child(ChildLink(arguments, descriptors), _redirect)
