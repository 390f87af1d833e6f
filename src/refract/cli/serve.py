"""`refract serve`.

With several processes, the first one starts while another prepares the database.
"""

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
from typing import Annotated

import typer

from refract.cli.options import DataDir
from refract.core.errors import ConfigurationError
from refract.core.log import configure_logging
from refract.core.settings.loader import check_extras, load_settings, prepare_data_dir
from refract.core.settings.model import Settings
from refract.server.parent import become_parent
from refract.server.systemd import feed_watchdog, notify_ready

PREPARE_ENTRY_POINT = "refract.cli.serve:run_prepare"
MAX_OPEN_FILES = 65_536


def serve(
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on. [env: REFRACT_HOST]", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port; 0 picks a free one. [env: REFRACT_PORT]", show_default="8000"),
    ] = None,
    data_dir: DataDir = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of server processes. [env: REFRACT_WORKERS]", show_default="1"),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            help="all, web, redirect, worker or ingest. [env: REFRACT_ROLE]", show_default="all"
        ),
    ] = None,
) -> None:
    """Migrate the database and start the server.

    Print its URL and, on the first start, a sign-in link.
    """
    gc.disable()  # until everything is loaded
    os.umask(0o077)
    raise_open_file_limit()
    settings = load_settings(host=host, port=port, data_dir=data_dir, workers=workers, role=role)
    check_extras(settings)
    prepare_data_dir(settings.data_dir)
    configure_logging(settings)
    with open_listener(settings) as listener:
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        if settings.workers == 1 and not settings.has_redirect_process:
            _serve_single(settings, listener)
        else:
            become_parent(settings, listener, PREPARE_ENTRY_POINT)


def raise_open_file_limit() -> None:
    """Allow as many open files as the system does: shells start with 1,024, a connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_REMEDIES = {
    errno.EADDRINUSE: "Stop what uses it, or choose another with --port or REFRACT_PORT.",
    errno.EACCES: (
        "Ports below 1024 need a privilege: choose a higher one with --port or REFRACT_PORT behind"
        " a reverse proxy, or give the service AmbientCapabilities=CAP_NET_BIND_SERVICE."
    ),
}


def open_listener(settings: Settings) -> socket.socket:
    """Open the socket first, so that a port in use is reported immediately."""
    listener = socket.socket(
        socket.AF_INET6 if ":" in settings.host else socket.AF_INET, socket.SOCK_STREAM
    )
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(4096)
    except (OSError, UnicodeError) as exc:
        listener.close()
        raise ConfigurationError(
            problem=(
                f"Can't listen on {settings.host} port {settings.port}:"
                f" {getattr(exc, 'strerror', None) or 'not a host name'}."
            ),
            remedy=_REMEDIES.get(
                getattr(exc, "errno", 0),
                "Set --host or REFRACT_HOST to an address of this machine.",
            ),
        ) from exc
    listener.setblocking(False)
    return listener


def _serve_single(settings: Settings, listener: socket.socket) -> None:
    import uvloop  # noqa: PLC0415 - a supervisor serves no requests

    from refract.server.handover import ListenerHandover  # noqa: PLC0415
    from refract.server.process import serve_process  # noqa: PLC0415
    from refract.server.startup import prepare_server  # noqa: PLC0415

    async def on_ready() -> None:
        notify_ready()

    async def run() -> None:
        await prepare_server(settings)
        handover = ListenerHandover(settings, listener)
        watchdog = asyncio.create_task(feed_watchdog(lambda: True))
        try:
            await serve_process(settings, listener, on_ready, handover=handover)
        finally:
            watchdog.cancel()
            await handover.wait_until_finished()

    uvloop.run(run())


def run_prepare(_arguments: list[str], _descriptors: list[int]) -> None:
    """Prepare the database and greet the owner, for a parent with the same environment."""
    from refract.cli import commands  # noqa: PLC0415 - imports this module, too

    commands.run(_prepare)


def _prepare() -> None:
    from refract.server.startup import prepare_server  # noqa: PLC0415 - loads the database's code

    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops it
    settings = load_settings()
    configure_logging(settings)
    asyncio.run(prepare_server(settings))
