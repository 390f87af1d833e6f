"""Helpers for tests of the archive: events in the database, and all events anywhere."""

import asyncio
import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, cast

from sqlalchemy import Table

from refract.clicks.archive import service
from refract.clicks.archive.parquet import (
    COLUMN_LIST,
    COLUMN_TYPES,
    build_source,
    iter_batches,
    open_connection,
)
from refract.clicks.models import ClickEvent
from refract.clicks.queries import select_events
from refract.clicks.spool.format import LINK_CLICK, PAGE_VIEW
from refract.core.db.bulk import insert_rows
from refract.core.runtime import Runtime

Event = tuple[Any, ...]
TABLE = cast("Table", ClickEvent.__table__)


def event(at: datetime, number: int, target: int = 42, **given: Any) -> dict[str, Any]:
    """Return an event with a value in every column, some of them empty."""
    empty = dict.fromkeys(COLUMN_TYPES)
    known = {
        "spool_id": 7, "segment": 1 + number // 1000, "place": number, "at": at, "kind": LINK_CLICK,
        "target_id": target, "bot": number % 9 == 0, "private": False, "node": "here",
        "network": f"198.51.{number % 250}.0",
        "user_agent": f"Mozilla/5.0 (Zoë) Firefox/{number % 5}", "referrer_host": "direct",
        "country_code": "XX", "device": "desktop", "latitude": 52.5 if number % 2 else None,
        "utm_source": "=1+1",
    }  # fmt: skip
    return {**empty, **known, **given}


async def fill(
    rt: Runtime, day: datetime, count: int, *, first: int = 0, target: int = 42, seed: int = 1
) -> None:
    chance = random.Random(seed)
    times = [day + timedelta(microseconds=chance.randrange(86_400_000_000)) for _ in range(count)]
    rows = [
        event(at, first + number, target, kind=LINK_CLICK if number % 7 else PAGE_VIEW)
        for number, at in enumerate(times)
    ]
    async with rt.db.write() as session:
        await insert_rows(session, TABLE, rows)


async def hot(rt: Runtime) -> list[Event]:
    async with rt.db.read() as session:
        return [tuple(row) for row in await session.execute(select_events())]


async def archived(rt: Runtime) -> list[Event]:
    async with rt.db.read() as session:
        files = await service.list_files(session, date.min, date.max)
    return await asyncio.to_thread(read, rt, [file.name for file in files]) if files else []


def read(rt: Runtime, names: Sequence[str]) -> list[Event]:
    directory = service.ensure_directory(rt)
    with open_connection(directory) as connection:
        source = build_source(directory, names)
        query = f"SELECT {COLUMN_LIST} FROM {source}"  # noqa: S608 - no user input
        return [row for some in iter_batches(connection, query, [], 1000) for row in some]


async def everything(rt: Runtime) -> list[Event]:
    """Return each event as often as it is found."""
    return sorted([*await hot(rt), *await archived(rt)], key=lambda row: row[:3])
