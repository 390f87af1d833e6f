"""`refract demo`: a data directory that looks lived in, so that anybody can look around."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from refract import migrations
from refract.cli.common import command_settings
from refract.cli.demo.clicks import fill_clicks
from refract.cli.demo.items import fill_items
from refract.cli.demo.links import DAYS, fill_links
from refract.cli.demo.lists import fill_lists
from refract.cli.options import DataDir
from refract.core.clock import ManualClock
from refract.core.db import Database
from refract.core.errors import Conflict
from refract.core.ids import Snowflakes
from refract.core.runtime import Runtime
from refract.core.secrets import load_secret
from refract.core.settings import Settings
from refract.identity.models import User, UserRole
from refract.identity.people import ensure_owner, make_local_user
from refract.links import queries
from refract.links.access import Who
from refract.names.service import namespace_of

PEOPLE = (("mira@example.com", "Mira Okafor"), ("jonas@example.com", "Jonas Lindqvist"))


class NotFresh(Conflict):
    """There are links in {place} already: the demo fills only an empty data directory. Choose another with --data-dir."""


def demo(
    data_dir: DataDir = None,
    days: Annotated[int, typer.Option("--days", min=7, max=365, help="How far back it reaches.")] = DAYS,
) -> None:
    """Fill a fresh data directory with links, lists, items, people, tags and clicks that look lived in."""
    settings = command_settings(data_dir, creates=True)
    made = asyncio.run(_fill(settings, days))
    typer.echo(f"{made} over {days} days in {settings.data_dir}.")
    typer.echo(f"Start it with: refract serve --data-dir {settings.data_dir}")


async def _fill(settings: Settings, days: int) -> str:
    """Everything is made by the program's own services, on a clock that walks through the past.

    The data directory is fresh, so nobody else makes ids, and those of the past can never meet one of the future: no lease is needed.
    """
    clock = ManualClock(datetime.now(UTC) - timedelta(days=days, minutes=30))  # lists and items come last, and not from the future
    db = Database(settings)
    try:
        await migrations.upgrade(db)
        ids = Snowflakes(0, clock, wait=clock.advance)
        rt = Runtime(settings=settings, db=db, clock=clock, ids=ids, secret=load_secret(settings))
        people = await _people(rt, settings)
        space = namespace_of(rt)
        made = await fill_links(rt, clock, space, people, days)
        lists = await fill_lists(rt, clock, space, people[0])
        items = await fill_items(rt, clock, people[0])
        clicks = await fill_clicks(rt, made)
        await rt.close()
        return f"{len(made)} links, {lists} lists, {items} items and {clicks:,} clicks"
    finally:
        await db.close()


async def _people(rt: Runtime, settings: Settings) -> list[User]:
    async with rt.db.write() as session:
        owner, _ = await ensure_owner(session, rt)
        if await queries.any_link(session, Who(owner.id, is_admin=True)):
            raise NotFresh(place=settings.data_dir)
        others = [await make_local_user(session, rt, email, subject=email, role=UserRole.USER, name=name) for email, name in PEOPLE]
    return [owner, *others]
