"""A server process, alone or one of several. Loads only what its role needs, and no CLI."""

import os
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from refract.core.runtime import open_runtime
from refract.core.settings.model import NodeRole, Settings
from refract.links.changes import CHANGES_TOPIC
from refract.migrations.schema_check import require_matching_schema
from refract.server.change_relay import open_change_sender
from refract.server.child_link import ChildLink, run_child
from refract.server.connection_queue import ConnectionSender
from refract.server.handover import ListenerHandover
from refract.server.node import ServerNode
from refract.server.peers import MetricsPeers
from refract.server.uvicorn import GracefulServer, build_config

SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may keep the interpreter while the event loop wants it."""

NICENESS = 5
"""What a serving process yields to the redirecting one, when both want the same core."""

INITIAL_CONNECTIONS = 3
"""Connections of the pool that are open when a process is ready.

On a busy machine the first requests would wait too long for theirs.
"""


def main(arguments: list[str], descriptors: list[int]) -> None:
    """Serve on the socket of a supervisor."""
    run_child(ChildLink(arguments, descriptors), _serve_child)


async def _serve_child(settings: Settings, link: ChildLink) -> None:
    first, *rest = (socket.socket(fileno=number) for number in link.sockets)
    first.setblocking(False)
    if rest:
        os.nice(NICENESS)
        await serve_process(settings, None, link.notify_ready, link, passing=(first, rest[0]))
    else:
        await serve_process(settings, first, link.notify_ready, link)


async def serve_process(
    settings: Settings,
    listener: socket.socket | None,
    ready: Callable[[], Awaitable[None]],
    link: ChildLink | None = None,
    handover: ListenerHandover | None = None,
    passing: tuple[socket.socket, socket.socket] | None = None,
) -> None:
    """Serve until a signal, until the parent is gone, or until `handover` has a successor.

    Instead of a listener, `passing` has the queues from and to the process that only redirects.
    """
    # Threads render pages and run SQLite: the loop gets the interpreter back after this time.
    sys.setswitchinterval(SWITCH_INTERVAL)
    async with open_runtime(
        settings, patient=True, makes_ids=settings.role not in ("redirect", "ingest")
    ) as rt:
        await require_matching_schema(rt)
        await rt.db.open_connections(INITIAL_CONNECTIONS)
        node = load_node_class(settings.role)(rt)
        if passing is not None:
            node.pass_redirects_to(ConnectionSender(passing[1]))
        async with node.run_background(), AsyncExitStack() as exit_stack:
            server = GracefulServer(build_config(node, node.protocol_class), node)
            if link is not None:
                await _join_siblings(exit_stack, node, link)
                link.stop_with_parent(server.stop)
            if handover is not None:
                server.on_reload = lambda: handover.start(server.hand_over)
            await server.run_until_stopped(
                listener,
                ready,
                shared=link is not None,
                connections=passing[0] if passing is not None else None,
            )


async def _join_siblings(exit_stack: AsyncExitStack, node: ServerNode, link: ChildLink) -> None:
    """Exchange metrics with the other processes, and tell the redirecting one of changes."""
    rt = node.rt
    node.vitals.peers = peers = MetricsPeers(link.directory, link.name)
    await exit_stack.enter_async_context(peers.serve(rt.metrics.render))
    if rt.settings.has_redirect_process:
        send = exit_stack.enter_context(open_change_sender(link.directory))
        exit_stack.enter_context(rt.signals.subscribe(CHANGES_TOPIC, send))


def load_node_class(role: NodeRole) -> type[ServerNode]:
    """Return the class for this role, after loading what its first responses need."""
    if role in ("worker", "ingest"):
        return ServerNode
    from refract.redirect import frontend, protocol  # noqa: F401, PLC0415 - not in every role

    if role == "redirect":
        return ServerNode
    from refract.server.lazy import LazyWebNode  # noqa: PLC0415 - not in every role

    return LazyWebNode
