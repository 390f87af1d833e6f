"""A serving process started by the supervisor."""

import socket

from refract.core.settings.model import Settings
from refract.server.child_link import ChildLink, run_child
from refract.server.process import serve_process


def main(arguments: list[str], descriptors: list[int]) -> None:
    """Serve on the parent's socket."""
    run_child(ChildLink(arguments, descriptors), _serve)


async def _serve(settings: Settings, link: ChildLink) -> None:
    listener = socket.socket(fileno=link.listener_fd)
    listener.setblocking(False)
    await serve_process(settings, listener, link.notify_ready, link)
