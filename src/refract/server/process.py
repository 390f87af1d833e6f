"""A server process, alone or one of several. Loads only what its role needs, and no CLI."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import uvicorn

from refract.core.errors import Unavailable
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import NodeRole, Settings
from refract.migrations.schema_state import SchemaCheck
from refract.server.handover import ListenerHandover
from refract.server.node import ServerNode
from refract.server.peers import MetricsPeers
from refract.server.uvicorn import GracefulServer


async def serve_process(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[], Awaitable[None]],
    lifeline: int | None = None,
    peers: MetricsPeers | None = None,
    handover: ListenerHandover | None = None,
) -> None:
    """Serve until a signal, until the parent is gone, or until `handover` has a successor."""
    async with open_runtime(
        settings, patient=True, makes_ids=settings.role not in ("redirect", "ingest")
    ) as rt:
        await _require_schema(rt)
        application = load_node_class(settings.role)(rt)
        config = uvicorn.Config(
            application,
            http=application.protocol_class,
            ws="none",
            loop="uvloop",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=4096,
        )
        application.vitals.peers = peers
        async with (
            application.run_background(),
            peers.serve(rt.metrics.render) if peers is not None else nullcontext(),
        ):
            server = GracefulServer(config, application)
            if lifeline is not None:
                _stop_with_parent(server, lifeline)
            if handover is not None:
                server.on_reload = lambda: handover.start(server.hand_over)
            await server.run_until_stopped(listener, ready, shared=lifeline is not None)


async def _require_schema(rt: Runtime) -> None:
    """Raise if schema and code do not match.

    While the database is unavailable that is unknown; readiness checks it again.
    """
    check = SchemaCheck()
    with contextlib.suppress(Unavailable):
        await check.probe(rt)
    if check.problem is not None:
        raise check.problem


def _stop_with_parent(server: GracefulServer, lifeline: int) -> None:
    """Stop when the parent is gone.

    The reader is removed, since the end of a pipe stays readable.
    """
    loop = asyncio.get_running_loop()

    def on_parent_exit() -> None:
        loop.remove_reader(lifeline)
        server.stop()

    loop.add_reader(lifeline, on_parent_exit)


def load_node_class(role: NodeRole) -> type[ServerNode]:
    """Return the class for this role, after loading what its first responses need."""
    if role in ("worker", "ingest"):
        return ServerNode
    from refract.redirect import frontend, protocol  # noqa: F401, PLC0415 - not in every role

    if role == "redirect":
        return ServerNode
    from refract.server.lazy import LazyWebNode  # noqa: PLC0415 - not in every role

    return LazyWebNode
