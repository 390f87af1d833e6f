"""Everything that must be right before the first request: schema, owner, greeting."""

import asyncio

import typer

from refract.core.db import Database
from refract.core.runtime import Runtime, running
from refract.core.settings import Settings
from refract.identity.people import ensure_owner
from refract.identity.sessions import make_signin_link
from refract.node import UnattendedSpool, unattended

ATTENTION_SECONDS = 5.0


async def prepare(settings: Settings) -> None:
    """Who only redirects may only read: others see to the database."""
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
        await _greet(rt)


async def _demand_attention(settings: Settings) -> None:
    """Somebody must store what this process will spool; a worker that starts together with it gets a moment to show up."""
    for _ in range(int(ATTENTION_SECONDS / 0.25)):
        if not unattended(settings):
            return
        await asyncio.sleep(0.25)
    raise UnattendedSpool(path=settings.effective_spool_dir)


async def _greet(rt: Runtime) -> None:
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
