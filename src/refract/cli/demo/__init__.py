"""`refract demo`: a data directory with realistic sample data."""

import asyncio
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from refract import migrations
from refract.cli.common import load_command_settings
from refract.cli.demo.items import plan_items
from refract.cli.demo.links import plan_links
from refract.cli.demo.lists import plan_lists
from refract.cli.demo.people import fill_people
from refract.cli.demo.timeline import DailyTraffic, Timeline
from refract.cli.demo.traffic import TrafficPlan, Visit, make_visits, write_spool
from refract.cli.options import DataDir
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.rollups.compaction import close_hours
from refract.clicks.spool.format import LINK_CLICK, PAGE_VIEW
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.errors import Conflict
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import load_secret
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.identity.users import ensure_owner
from refract.links import queries
from refract.links.access import LinkCaller
from refract.names.service import namespace_of

DEFAULT_DAYS = 90


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
    now = datetime.now(UTC)
    settings = settings.model_copy(update={"model_url": None})  # works offline, and costs nothing
    clock = ManualClock(now - timedelta(days=days))
    db = Database(settings)
    try:
        await migrations.upgrade(db)
        ids = SnowflakeGenerator(0, clock, wait=clock.advance)
        rt = Runtime(settings=settings, db=db, clock=clock, ids=ids, secret=load_secret(settings))
        owner = await _create_owner(rt, settings)
        timeline = Timeline(clock, now)
        space = namespace_of(rt)
        people = await fill_people(rt, timeline, owner)
        links = plan_links(rt, timeline, space, people)
        lists = plan_lists(rt, timeline, space, owner)
        items = plan_items(rt, timeline, owner)
        await timeline.run()
        clicks = await fill_clicks(rt, {LINK_CLICK: links, **lists})
        await rt.close()
        return (
            f"{len(links)} links, {len(lists[PAGE_VIEW])} lists, {items} items, {len(people)}"
            f" people and {clicks:,} clicks"
        )
    finally:
        await db.close()


async def _create_owner(rt: Runtime, settings: Settings) -> User:
    async with rt.db.write() as session:
        owner, _ = await ensure_owner(session, rt)
        if await queries.has_visible_link(session, LinkCaller(owner.id, is_admin=True)):
            raise DataDirNotEmpty(place=settings.data_dir)
    return owner


# Clicks: realistic visits since each link was created, stored by the code that stores real ones.


async def fill_clicks(rt: Runtime, traffic: Mapping[int, Mapping[int, DailyTraffic]]) -> int:
    """Store the clicks of targets by kind; return their number."""
    every: list[Visit] = []
    for kind, targets in traffic.items():
        for target, (begin, end, daily, growth) in targets.items():
            wanted = int(daily * max(1.0, (end - begin) / timedelta(days=1)))
            if wanted and begin < end:
                seed = zlib.crc32(str(target).encode())
                plan = TrafficPlan(
                    [target], begin, end, wanted, seed=seed, growth=growth, kind=kind
                )
                every += make_visits(plan)
    every.sort(key=lambda visit: visit.time_ns)
    write_spool(rt.settings.effective_spool_dir, every, node="demo")
    await Ingester(rt).apply_all()
    while await close_hours(rt):
        pass
    return len(every)
