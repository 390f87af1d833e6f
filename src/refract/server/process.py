"""A server process, alone or one of several. Loads only what its role needs, and no CLI."""

import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import uvicorn

from refract.core.runtime import open_runtime
from refract.core.settings.model import NodeRole, Settings
from refract.jobs.queue import JOBS_TOPIC
from refract.migrations.schema_state import require_matching_schema
from refract.server.child_link import ChildLink, run_child
from refract.server.handover import ListenerHandover
from refract.server.node import ServerNode
from refract.server.peers import MetricsPeers
from refract.server.uvicorn import GracefulServer
from refract.server.wakeups import open_wakeup_sender

SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may keep the interpreter while the event loop wants it."""


def main(arguments: list[str], descriptors: list[int]) -> None:
    """Serve on the socket of a supervisor."""
    run_child(ChildLink(arguments, descriptors), _serve_child)


async def _serve_child(settings: Settings, link: ChildLink) -> None:
    listener = socket.socket(fileno=link.listener_fd)
    listener.setblocking(False)
    await serve_process(settings, listener, link.notify_ready, link)


async def serve_process(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[], Awaitable[None]],
    link: ChildLink | None = None,
    handover: ListenerHandover | None = None,
) -> None:
    """Serve until a signal, until the parent is gone, or until `handover` has a successor."""
    # Threads render pages and run SQLite: the loop gets the interpreter back after this time.
    sys.setswitchinterval(SWITCH_INTERVAL)
    delegates = link is not None and settings.has_background_process
    async with open_runtime(
        settings, patient=True, makes_ids=settings.role not in ("redirect", "ingest")
    ) as rt:
        await require_matching_schema(rt)
        application = load_node_class(settings.role)(rt, works_in_background=not delegates)
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
        async with application.run_background(), AsyncExitStack() as exit_stack:
            server = GracefulServer(config, application)
            if link is not None:
                await _join_siblings(exit_stack, application, link)
                link.stop_with_parent(server.stop)
            if handover is not None:
                server.on_reload = lambda: handover.start(server.hand_over)
            await server.run_until_stopped(listener, ready, shared=link is not None)


async def _join_siblings(exit_stack: AsyncExitStack, node: ServerNode, link: ChildLink) -> None:
    """Exchange metrics with the other processes, and wake the one that runs jobs."""
    rt = node.rt
    node.vitals.peers = peers = MetricsPeers(link.directory, link.name)
    await exit_stack.enter_async_context(peers.serve(rt.metrics.render))
    if rt.settings.has_background_process:
        sender = exit_stack.enter_context(open_wakeup_sender(link.directory))
        exit_stack.enter_context(rt.signals.listen(JOBS_TOPIC, sender))


def load_node_class(role: NodeRole) -> type[ServerNode]:
    """Return the class for this role, after loading what its first responses need."""
    if role in ("worker", "ingest"):
        return ServerNode
    from refract.redirect import frontend, protocol  # noqa: F401, PLC0415 - not in every role

    if role == "redirect":
        return ServerNode
    from refract.server.lazy import LazyWebNode  # noqa: PLC0415 - not in every role

    return LazyWebNode
