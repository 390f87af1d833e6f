"""The process of `refract serve` above several others. It loads little, so it needs little memory.

The command reads the settings and opens the socket; then its process becomes this one, with the
same process id. Nothing here may import the settings, the command line or a database.
"""

import asyncio
import gc
import json
import os
import socket
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NoReturn

from refract.core.import_path import format_import_path
from refract.core.log import configure_logging
from refract.server.fork_server import set_process_title
from refract.server.supervisor import ProcessSupervisor

if TYPE_CHECKING:
    from refract.core.settings.model import Settings

# Structlog and asyncio work without rich and ssl, which take 8 MB.
_PARENT_CODE = """
import gc, sys
gc.disable()
sys.modules.update(rich=None, ssl=None)
from refract.server.parent import main
main()
"""
PARENT_COMMAND = (sys.executable, "-P", "-c", _PARENT_CODE)


@dataclass(frozen=True, slots=True)
class ParentSettings:
    """The settings that a parent needs itself. Its processes read theirs in the environment."""

    workers: int
    has_redirect_process: bool
    stop_grace_seconds: float
    log_format: str
    log_level: str


def become_parent(
    settings: "Settings", listener: socket.socket, prepare_entry_point: str
) -> NoReturn:
    """Replace the program of this process by the one below. It keeps the listener."""
    own = ParentSettings(
        workers=settings.workers,
        has_redirect_process=settings.has_redirect_process,
        stop_grace_seconds=settings.stop_grace_seconds,
        log_format=settings.log_format,
        log_level=settings.log_level,
    )
    listener.set_inheritable(True)
    sys.stdout.flush()
    os.execve(  # noqa: S606 - this program
        PARENT_COMMAND[0],
        [*PARENT_COMMAND, str(listener.fileno()), prepare_entry_point, json.dumps(asdict(own))],
        build_environment(settings),
    )


def build_environment(settings: "Settings") -> dict[str, str]:
    """Return the environment of a process with these settings, also those of the CLI."""
    return os.environ | {
        "PYTHONPATH": format_import_path(),
        "REFRACT_HOST": settings.host,
        "REFRACT_PORT": str(settings.port),
        "REFRACT_DATA_DIR": str(settings.data_dir),
        "REFRACT_WORKERS": str(settings.workers),
        "REFRACT_ROLE": settings.role,
        "REFRACT_BACKGROUND": "process" if settings.has_redirect_process else "inline",
        # Memory that one thread has freed is used by the next, instead of one pool for each.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2"),
        # Large blocks go back to the system at once. By default the limit grows with them.
        "MALLOC_MMAP_THRESHOLD_": os.environ.get("MALLOC_MMAP_THRESHOLD_", "262144"),
    }


def main() -> None:
    """Supervise, with the listener, the entry point and the settings of the arguments."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    listener.set_inheritable(False)
    prepare_entry_point = sys.argv[2]
    settings = ParentSettings(**json.loads(sys.argv[3]))
    set_process_title("refract serve")
    configure_logging(settings)
    with listener:
        asyncio.run(_supervise(settings, listener, prepare_entry_point))


async def _supervise(
    settings: ParentSettings, listener: socket.socket, prepare_entry_point: str
) -> None:
    """Start the first process while the database is being prepared."""
    supervisor = ProcessSupervisor(settings, listener, os.environ)
    # Forked before the others, which share what is loaded meanwhile.
    preparing = asyncio.create_task(_prepare(supervisor, prepare_entry_point))
    serving = asyncio.create_task(supervisor.run())
    try:
        await asyncio.wait([serving, preparing], return_when=asyncio.FIRST_COMPLETED)
        if preparing.done():  # else the server was stopped meanwhile
            await preparing
            gc.enable()
            supervisor.mark_prepared()
        await serving
    finally:
        for task in (preparing, serving):
            task.cancel()
        await asyncio.gather(preparing, serving, return_exceptions=True)


async def _prepare(supervisor: ProcessSupervisor, entry_point: str) -> None:
    """Prepare the database in a process of its own: this one never loads that code."""
    code = await supervisor.run_to_end("refract: preparing", entry_point)
    if code != 0:
        sys.exit(code if code > 0 else 1)  # it has said why
