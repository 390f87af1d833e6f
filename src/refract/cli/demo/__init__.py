"""`refract demo`: a data directory with realistic sample data."""

import asyncio
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from refract import migrations
from refract.cli.common import load_command_settings
from refract.cli.demo.items import fill_items
from refract.cli.demo.links import DEFAULT_DAYS, fill_links
from refract.cli.demo.lists import DailyTraffic, fill_lists
from refract.cli.demo.traffic import TrafficPlan, Visit, make_visits, write_spool
from refract.cli.options import DataDir
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.rollups.compaction import close_hours
from refract.clicks.spool.format import LINK_CLICK
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.errors import Conflict
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import load_secret
from refract.core.settings.model import Settings
from refract.identity.models import User, UserRole
from refract.identity.users import create_local_user, ensure_owner
from refract.links import queries
from refract.links.access import LinkCaller
from refract.names.service import namespace_of

DEMO_USERS = (("mira@example.com", "Mira Okafor"), ("jonas@example.com", "Jonas Lindqvist"))


class DataDirNotEmpty(Conflict):
    """There are already links in {place}, and the demo needs an empty data directory.

    Choose another with --data-dir.
    """


def demo(
    data_dir: DataDir = None,
    days: Annotated[
        int, typer.Option("--days", min=7, max=365, help="Days of history.")
    ] = DEFAULT_DAYS,
) -> None:
    """Fill a new data directory with realistic sample data."""
    settings = load_command_settings(data_dir, creates=True)
    made = asyncio.run(_fill_data(settings, days))
    typer.echo(f"{made} over {days} days in {settings.data_dir}.")
    typer.echo(f"Start it with: refract serve --data-dir {settings.data_dir}")


async def _fill_data(settings: Settings, days: int) -> str:
    """Create everything with the program's own services, on a clock that walks through the past.

    Ids need no lease: no other process creates any in a new data directory, and ids of the past
    can't collide with later ones.
    """
    clock = ManualClock(
        datetime.now(UTC) - timedelta(days=days, minutes=30)
    )  # items come last, but not from the future
    db = Database(settings)
    try:
        await migrations.upgrade(db)
        ids = SnowflakeGenerator(0, clock, wait=clock.advance)
        rt = Runtime(settings=settings, db=db, clock=clock, ids=ids, secret=load_secret(settings))
        people = await _create_users(rt, settings)
        space = namespace_of(rt)
        lists, traffic = await fill_lists(rt, clock, space, people[0], days)
        made = await fill_links(rt, clock, space, people, days)
        items = await fill_items(rt, clock, people[0])
        clicks = await fill_clicks(rt, {LINK_CLICK: made, **traffic})
        await rt.close()
        return f"{len(made)} links, {lists} lists, {items} items and {clicks:,} clicks"
    finally:
        await db.close()


async def _create_users(rt: Runtime, settings: Settings) -> list[User]:
    async with rt.db.write() as session:
        owner, _ = await ensure_owner(session, rt)
        if await queries.has_visible_link(session, LinkCaller(owner.id, is_admin=True)):
            raise DataDirNotEmpty(place=settings.data_dir)
        others = [
            await create_local_user(
                session, rt, email, subject=email, role=UserRole.USER, name=name
            )
            for email, name in DEMO_USERS
        ]
    return [owner, *others]


# Clicks: realistic visits since each link was created, stored by the code that stores real ones.


async def fill_clicks(rt: Runtime, traffic: Mapping[int, DailyTraffic]) -> int:
    """Store clicks by kind, given by target, start, end and clicks per day; return their number."""
    every: list[Visit] = []
    for kind, made in traffic.items():
        for target, (begin, end, daily) in made.items():
            wanted = int(daily * max(1.0, (end - begin) / timedelta(days=1)))
            if wanted and begin < end:
                seed = zlib.crc32(str(target).encode())
                every += make_visits(
                    TrafficPlan([target], begin, end, wanted, seed=seed, kind=kind)
                )
    every.sort(key=lambda visit: visit.time_ns)
    write_spool(rt.settings.effective_spool_dir, every, node="demo")
    await Ingester(rt).apply_all()
    while await close_hours(rt):
        pass
    return len(every)
