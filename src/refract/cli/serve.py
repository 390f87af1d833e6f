"""`refract serve`."""

import asyncio
import errno
import os
import socket
from typing import Annotated

import typer
import uvloop

from refract.cli.common import DataDir
from refract.cli.process import serve_process
from refract.cli.supervisor import Supervisor
from refract.core.db import Database
from refract.core.errors import ConfigurationError
from refract.core.log import configure_logging
from refract.core.runtime import Runtime, running
from refract.core.settings import Settings, load_settings, prepare_data_dir
from refract.identity.people import ensure_owner
from refract.identity.sessions import make_signin_link
from refract.node import UnattendedSpool, unattended

ATTENTION_SECONDS = 5.0


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on. [env: REFRACT_HOST]", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one. [env: REFRACT_PORT]", show_default="8000")] = None,
    data_dir: DataDir = None,
    workers: Annotated[
        int | None, typer.Option(help="Server processes that share the port. [env: REFRACT_WORKERS]", show_default="1")
    ] = None,
    role: Annotated[str | None, typer.Option(help="all, web, redirect, worker or ingest. [env: REFRACT_ROLE]", show_default="all")] = None,
) -> None:
    """Migrate, start, print the address and, on the first start, a sign-in link."""
    os.umask(0o077)
    settings = load_settings(host=host, port=port, data_dir=data_dir, workers=workers, role=role)
    prepare_data_dir(settings.data_dir)
    configure_logging(settings)
    with listen(settings) as listener:
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        if settings.workers == 1:
            uvloop.run(_serve_alone(settings, listener))
        else:
            asyncio.run(_serve_together(settings, listener))


def listen(settings: Settings) -> socket.socket:
    """The socket, opened before anything else: a port that is taken should say so at once."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(4096)
    except (OSError, UnicodeError) as error:
        port = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        raise ConfigurationError(
            problem=f"Cannot listen on {settings.host} port {settings.port}: {getattr(error, 'strerror', None) or 'this is no host name'}.",
            remedy="Stop what uses it, or choose another with --port or REFRACT_PORT."
            if port
            else "Name an address of this machine with --host or REFRACT_HOST.",
        ) from error
    listener.setblocking(False)
    return listener


async def _prepare(settings: Settings) -> None:
    """Everything that must be right before the first request: schema, owner, greeting. Who only redirects may only read."""
    if settings.role == "redirect":
        await _demand_attention(settings)
    if settings.role in ("redirect", "ingest"):
        typer.echo(f"Refract is at {settings.public_url}")
        return
    from refract import migrations  # noqa: PLC0415 - not in every role

    db = Database(settings)
    try:
        await migrations.upgrade(db)
    finally:
        await db.close()
    async with running(settings) as rt:
        await greet(rt)


async def _demand_attention(settings: Settings) -> None:
    """Somebody must store what this process will spool; a worker that starts together with it gets a moment to show up."""
    for _ in range(int(ATTENTION_SECONDS / 0.25)):
        if not unattended(settings):
            return
        await asyncio.sleep(0.25)
    raise UnattendedSpool(path=settings.effective_spool_dir)


async def _serve_alone(settings: Settings, listener: socket.socket) -> None:
    await _prepare(settings)
    await serve_process(settings, listener, _nobody_waits)


async def _serve_together(settings: Settings, listener: socket.socket) -> None:
    await _prepare(settings)
    await Supervisor(settings, listener).run()


async def _nobody_waits() -> None:
    return None


async def greet(rt: Runtime) -> None:
    """Say where it is, and let the owner in on the first start."""
    async with rt.db.write() as session:
        owner, new = await ensure_owner(session, rt)
        link = await make_signin_link(session, rt, owner) if new and rt.settings.signin_links_allowed else None
    typer.echo(f"Refract is at {rt.settings.public_url}")
    if link:
        typer.echo(f"Sign in once with {link}")
    elif rt.settings.signin_links_allowed:
        typer.echo("Sign in with a link from: refract signin-link")
    else:
        names = " or ".join(one.shown_name for one in rt.settings.issuers.values())
        typer.echo(f"Sign in with {names}" if names else "Sign-in links are switched off, and no identity provider is configured.")
