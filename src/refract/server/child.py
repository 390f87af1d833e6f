"""A serving process started by the supervisor."""

import socket

from refract.core.settings.model import Settings
from refract.server.child_link import ChildLink, run_child
from refract.server.process import load_node_class, serve_process


def main() -> None:
    """Serve on the parent's socket. Slow modules are loaded immediately."""
    run_child(_serve, load=lambda settings: load_node_class(settings.role))


async def _serve(settings: Settings, link: ChildLink) -> None:
    listener = socket.socket(fileno=link.listener_fd)
    listener.setblocking(False)
    await serve_process(settings, listener, link.notify_ready, link)
