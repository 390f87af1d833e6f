"""Everything that must be right before the first request: schema, owner, greeting."""

import asyncio
import os
import sys

import structlog
import typer

from refract import __version__, migrations
from refract.cli.installation import record_address
from refract.core.configuring import load_settings
from refract.core.db import Database
from refract.core.errors import RefractError, Unavailable
from refract.core.log import configure_logging
from refract.core.runtime import Runtime, running
from refract.core.settings import Settings
from refract.identity.people import ensure_owner
from refract.identity.sessions import make_signin_link
from refract.node import UnattendedSpool, unattended

ATTENTION_SECONDS = 5.0
SCHEMA_SECONDS = 30.0
POLL_SECONDS = 0.25


async def prepare(settings: Settings) -> None:
    """Prepare the database and say where the server is. A role that may not migrate waits a moment for one that does."""
    if settings.role == "redirect":
        await _demand_attention(settings)
    if settings.role in ("redirect", "ingest"):
        await _wait_for_schema(settings)
        _announce(settings)
        return
    await prepare_database(settings)
    async with running(settings) as rt:
        _announce(settings)  # only once the secret and the database can be used
        await _greet(rt)


def _announce(settings: Settings) -> None:
    """Say what starts where, and keep the address for commands that print it."""
    log = structlog.get_logger("refract.server")
    where = {"address": settings.public_url, "host": settings.host, "port": settings.port}
    log.info("server_starting", role=settings.role, version=__version__, schema=migrations.HEAD, processes=settings.workers, **where)
    if settings.listens_everywhere and settings.base_url is None:
        log.warning("base_url_missing", sentence=f"Short URLs will say {settings.public_url}: set REFRACT_BASE_URL to the public address.")
    if settings.role in ("all", "web"):
        record_address(settings)
    _say(settings, f"Refract is at {settings.public_url}")


async def prepare_database(settings: Settings) -> None:
    """Migrate; in a role that may not, demand that the schema is new enough. An older role cannot do without the database here."""
    db = Database(settings)
    try:
        if settings.role in ("redirect", "ingest"):
            await _demand_schema(db)
        else:
            await migrations.upgrade(db)
    finally:
        await db.close()


def main() -> None:
    """Prepare the database with the code that is installed now, before the processes of older code are replaced."""
    os.umask(0o077)
    settings = load_settings()
    configure_logging(settings)
    try:
        asyncio.run(prepare_database(settings))
    except RefractError as exc:
        structlog.get_logger("refract.migrations").error("schema_not_prepared", reason=exc.message)
        sys.exit(exc.exit_code)


async def _demand_schema(db: Database) -> None:
    """Raise if the schema does not fit. A database that is away says nothing about it."""
    try:
        state = await migrations.examine(db)
    except Unavailable:
        return
    if state.problem is not None:
        raise state.problem


async def _wait_for_schema(settings: Settings) -> None:
    deadline = asyncio.get_running_loop().time() + SCHEMA_SECONDS
    while True:
        try:
            await prepare_database(settings)
        except migrations.SchemaTooOld:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


async def _demand_attention(settings: Settings) -> None:
    """Raise unless somebody stores what this process will spool. A worker that starts at the same time gets a moment to show up."""
    for _ in range(int(ATTENTION_SECONDS / POLL_SECONDS)):
        if not unattended(settings):
            return
        await asyncio.sleep(POLL_SECONDS)
    raise UnattendedSpool(path=settings.effective_spool_dir)


async def _greet(rt: Runtime) -> None:
    """Let the owner in on the first start, and say how to sign in."""
    shows = rt.settings.log_format != "json"
    async with rt.db.write() as session:
        owner, new = await ensure_owner(session, rt)
        link = await make_signin_link(session, rt, owner) if new and shows and rt.settings.signin_links_allowed else None
    if new:
        structlog.get_logger("refract.server").info("owner_created", next="refract signin-link prints a link to sign in with")
    if link:
        _say(rt.settings, f"Sign in once with {link}")
    elif rt.settings.signin_links_allowed:
        _say(rt.settings, "Sign in with a link from: refract signin-link")
    else:
        names = " or ".join(one.shown_name for one in rt.settings.issuers.values())
        _say(rt.settings, f"Sign in with {names}" if names else "Sign-in links are switched off, and no identity provider is configured.")


def _say(settings: Settings, line: str) -> None:
    """Greet people. Where every line must be JSON, the log says it instead; `refract signin-link` makes the link."""
    if settings.log_format != "json":
        typer.echo(line)
