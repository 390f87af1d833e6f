"""A process that loads the server's code once, and forks the processes of a node.

Forked processes share the memory of that code and start within milliseconds. This one has no
threads and opens nothing, so that a fork copies no lock or connection in any state. It ends when
nothing has been forked for a while: its memory is needed no longer, and what it forked stays.

Its argument is the descriptor of its connection to the supervisor (`fork_client`). A request is
JSON with an entry point and its arguments, and descriptors: first that of a pipe for the exit
status, then those of the entry point. The response is a line with the process id.
"""

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

IDLE_SECONDS = 60.0
"""Longer than a start takes on a busy machine: the last process shares the code with the first."""
MAX_REQUEST_BYTES = 64 * 1024
MAX_DESCRIPTORS = 8
REDIRECT_MODULE = "refract.server.redirect_process"
SERVING_MODULE = "refract.server.process"

_IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal or systemd sends them to the whole group. This process ends with its connection."""


def main() -> None:
    """Fork on request, until there are none for a while or the supervisor is gone."""
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes processes that ended
    set_process_title("refract: fork server")
    connection = socket.socket(fileno=int(sys.argv[1]))
    role = os.environ.get("REFRACT_ROLE", "all")
    # The redirecting process is forked first, from an image without the code of the others.
    first = REDIRECT_MODULE if os.environ.get("REFRACT_BACKGROUND") == "process" else SERVING_MODULE
    load_code(role, first)
    gc.freeze()
    has_features = False
    while select.select([connection], [], [], IDLE_SECONDS)[0]:
        request, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, MAX_DESCRIPTORS)
        if not request:
            break
        called = json.loads(request)
        module = called["entry_point"].partition(":")[0]
        load_code(role, module)
        pid = os.fork()
        if pid == 0:
            connection.close()
            run_forked(called, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(BrokenPipeError):  # the supervisor is gone
            connection.sendall(b"%d\n" % pid)
        if not has_features and first in (module, SERVING_MODULE):
            # While the first processes start, and the database is prepared.
            load_code(role, SERVING_MODULE)
            load_features(role)
            gc.freeze()
            has_features = True


def load_code(role: str, module: str) -> None:
    """Import the code of a process in this role, and what its first responses need."""
    # Structlog would load it for tracebacks in a terminal: 5 MB, and 0.1 s of a start.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # "not there", to the importer
    if module in (REDIRECT_MODULE, SERVING_MODULE):
        import_module("uvloop")
        import_module(module)
    if module == SERVING_MODULE:
        sys.modules[SERVING_MODULE].load_node_class(role)


def load_features(role: str) -> None:
    """Import what jobs and the web app have in common, where a node has both."""
    if role == "all":
        import_module("refract.registry").list_jobs()


def run_forked(request: dict[str, Any], descriptors: list[int]) -> None:
    """Call the entry point of a request, and write the exit status to its pipe.

    A process that is killed writes none, and the pipe ends.
    """
    for number in (*_IGNORED_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    set_process_title(request["title"])
    status_writer, *descriptors = descriptors
    code: Any = 1
    try:
        module, _, name = request["entry_point"].partition(":")
        getattr(import_module(module), name)(request["arguments"], descriptors)
        code = 0
    except SystemExit as exc:
        code = exc.code
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(status_writer, bytes([code if isinstance(code, int) else 1]))


def set_process_title(title: str) -> None:
    """Show a title in lists of processes, where the system has one (Linux)."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begin, end = int(fields[45]), int(fields[46])  # of the command line, see proc(5)
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, title.encode()[: end - begin - 1], len(title[: end - begin - 1]))
