"""A server process started by the supervisor: `python -m refract.cli.child LISTENER READY LIFELINE` (file descriptors)."""

import os
import socket
import sys

import uvloop

from refract.cli.process import serve_process
from refract.core.log import configure_logging
from refract.core.settings import load_settings


def main() -> None:
    listener_fd, ready_fd, lifeline_fd = (int(word) for word in sys.argv[1:4])
    os.umask(0o077)
    settings = load_settings()
    configure_logging(settings)
    listener = socket.socket(fileno=listener_fd)
    listener.setblocking(False)

    async def ready() -> None:
        os.write(ready_fd, b"1")
        os.close(ready_fd)

    uvloop.run(serve_process(settings, listener, ready, lifeline_fd))


if __name__ == "__main__":
    main()
