"""Preparation before the first request: schema, owner, greeting."""

import asyncio
import os
import shlex
import sys

import structlog
import typer

from refract import __version__, migrations
from refract.core.db.session import Database
from refract.core.errors import RefractError, Unavailable
from refract.core.log import configure_logging
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.loader import load_settings
from refract.core.settings.model import Settings
from refract.identity.sessions import create_signin_link, has_signin_trace
from refract.identity.users import ensure_owner
from refract.server.installation import record_address
from refract.server.node import SpoolReaderMissing, is_spool_unattended

SPOOL_READER_TIMEOUT = 5.0
SCHEMA_TIMEOUT = 30.0
POLL_INTERVAL = 0.25


async def prepare_server(settings: Settings) -> None:
    """Prepare the database and print the address.

    A role that may not migrate waits a while for one that does.
    """
    if settings.role == "redirect":
        await _require_spool_reader(settings)
    if settings.role in ("redirect", "ingest"):
        await _wait_for_schema(settings)
        _announce(settings)
        return
    await prepare_database(settings)
    async with open_runtime(settings) as rt:
        _announce(settings)  # only once the secret and the database can be used
        await _greet_owner(rt)


def _announce(settings: Settings) -> None:
    """Log the role and address, and save the address for commands that print it."""
    log = structlog.get_logger("refract.server")
    where = {"address": settings.public_url, "host": settings.host, "port": settings.port}
    log.info(
        "server_starting",
        role=settings.role,
        version=__version__,
        schema=migrations.HEAD,
        processes=settings.workers,
        **where,
    )
    if settings.listens_everywhere and settings.base_url is None:
        log.warning(
            "base_url_missing",
            sentence=(
                f"Short URLs will say {settings.public_url}: set REFRACT_BASE_URL to the public"
                " address."
            ),
        )
    if settings.role in ("all", "web"):
        record_address(settings)
    _print_line(settings, f"Refract is running at {settings.public_url}")


async def prepare_database(settings: Settings) -> None:
    """Migrate, or require a new enough schema in a role that may not migrate."""
    db = Database(settings)
    try:
        if settings.role in ("redirect", "ingest"):
            await _require_schema(db)
        else:
            await migrations.upgrade(db)
    finally:
        await db.close()


def main(_arguments: list[str], _descriptors: list[int]) -> None:
    """Prepare the database with the installed code, before processes of older code are replaced."""
    os.umask(0o077)
    settings = load_settings()
    configure_logging(settings)
    try:
        asyncio.run(prepare_database(settings))
    except RefractError as exc:
        structlog.get_logger("refract.migrations").error(
            "schema_preparation_failed", reason=exc.message
        )
        sys.exit(exc.exit_code)


async def _require_schema(db: Database) -> None:
    """Raise if the schema does not match. While the database is unavailable, do nothing."""
    try:
        state = await migrations.check_schema(db)
    except Unavailable:
        return
    if state.problem is not None:
        raise state.problem


async def _wait_for_schema(settings: Settings) -> None:
    deadline = asyncio.get_running_loop().time() + SCHEMA_TIMEOUT
    while True:
        try:
            await prepare_database(settings)
        except migrations.SchemaTooOld:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(POLL_INTERVAL)
        else:
            return


async def _require_spool_reader(settings: Settings) -> None:
    """Raise unless another process stores the clicks that this one will spool.

    A worker that starts at the same time has a moment to appear.
    """
    for _ in range(int(SPOOL_READER_TIMEOUT / POLL_INTERVAL)):
        if not is_spool_unattended(settings):
            return
        await asyncio.sleep(POLL_INTERVAL)
    raise SpoolReaderMissing(path=settings.effective_spool_dir)


async def _greet_owner(rt: Runtime) -> None:
    """Create the owner on the first start, and print how to sign in.

    The first start prints a link, also in a directory that the demo has filled.
    """
    prints_link = rt.settings.log_format != "json" and rt.settings.signin_links_allowed
    async with rt.db.write() as session:
        owner, new = await ensure_owner(session, rt)
        link = (
            await create_signin_link(session, rt, owner)
            if prints_link and not await has_signin_trace(session, owner.id)
            else None
        )
    if new:
        structlog.get_logger("refract.server").info(
            "owner_created", next="refract signin-link prints a link to sign in with"
        )
    if link:
        _print_line(rt.settings, f"Sign in (one-time link): {link}")
    elif rt.settings.signin_links_allowed:
        _print_line(rt.settings, f"Sign in with a link from: {_get_link_command(rt.settings)}")
    else:
        names = " or ".join(issuer.display_name for issuer in rt.settings.issuers.values())
        _print_line(
            rt.settings,
            (
                f"Sign in with {names}"
                if names
                else "Sign-in links are switched off, and no identity provider is configured."
            ),
        )


def _get_link_command(settings: Settings) -> str:
    """Return the command that prints a sign-in link to this server, from the same directory."""
    words = ["refract", "signin-link"]
    if settings.data_dir != Settings.model_fields["data_dir"].default:
        words += ["--data-dir", str(settings.data_dir)]
    return shlex.join(words)


def _print_line(settings: Settings, line: str) -> None:
    """Print a line for people.

    With JSON logs the log has it instead, and `refract signin-link` creates the link.
    """
    if settings.log_format != "json":
        typer.echo(line)
