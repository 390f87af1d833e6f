"""A server process started by the supervisor. Arguments: LISTENER READY LIFELINE PLACE NUMBER.

The first three are file descriptors; the last two are where the processes of this node find each
other. Slow modules are loaded immediately; the first byte on the lifeline means that the database
is prepared, and its end that the parent is gone.
"""

import os
import socket
import sys
from pathlib import Path

import structlog
import uvloop

from refract.core.errors import RefractError
from refract.core.log import configure_logging
from refract.core.settings.loader import load_settings
from refract.migrations.schema_state import SchemaTooOld
from refract.server.peers import MetricsPeers
from refract.server.process import load_node_class, serve_process
from refract.server.supervisor import EXIT_SCHEMA_TOO_OLD


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

    load_node_class(settings.role)
    if not os.read(lifeline_fd, 1):
        return
    peers = MetricsPeers(Path(sys.argv[4]), int(sys.argv[5]))
    try:
        uvloop.run(serve_process(settings, listener, ready, lifeline_fd, peers))
    except RefractError as exc:
        structlog.get_logger("refract.server").error("server_process_refused", reason=exc.message)
        sys.exit(EXIT_SCHEMA_TOO_OLD if isinstance(exc, SchemaTooOld) else exc.exit_code)
