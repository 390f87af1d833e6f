"""Links by the ten thousand or the million, put into a database as fast as its driver can."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from refract import migrations
from refract.core.db.session import Database
from refract.core.ids import get_creation_time
from refract.core.settings.model import Settings
from refract.domains.models import Domain
from refract.links.models import Link
from refract.links.service import digest
from refract.names import similarity
from refract.names.grammar import join_name, name_key
from refract.names.models import Name

FIRST_ID = 100_000_000_000_000_000
SLICE = 5_000
STEP = 1 << 22


def destination(number: int) -> str:
    return f"https://example.com/article/{number}?ref=short"


def make_links(data_dir: Path, count: int, database_url: str | None = None) -> None:
    """`count` links named s0, s1, … in a migrated database."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run(_make(Settings(data_dir=data_dir, database_url=database_url), count))


def make_domains(data_dir: Path, names: int, count: int) -> None:
    """`count` domains with the names s0, s1, … on each, of the links that `make_links` made."""
    asyncio.run(_make_domains(Settings(data_dir=data_dir), names, count))


async def _make_domains(settings: Settings, names: int, count: int) -> None:
    db = Database(settings)
    try:
        for place in range(count):
            host = f"d{place}.example"
            await copy_rows(db, Domain, [build_domain(place, host)])
            for start in range(0, names, SLICE):
                some = range(start, min(names, start + SLICE))
                await copy_rows(db, Name, [build_name(number, host) for number in some])
    finally:
        await db.close()


async def _make(settings: Settings, count: int) -> None:
    db = Database(settings)
    try:
        await migrations.upgrade(db)
        for start in range(0, count, SLICE):
            some = range(start, min(count, start + SLICE))
            await copy_rows(db, Link, [build_link(number) for number in some])
            await copy_rows(db, Name, [build_name(number) for number in some])
    finally:
        await db.close()


async def copy_rows(db: Database, model: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows in a transaction of their own, by COPY on PostgreSQL."""
    async with db.engine.begin() as connection:
        if db.dialect != "postgresql":
            await connection.execute(insert(model), rows)
            return
        driver: Any = (await connection.get_raw_connection()).driver_connection
        columns = list(rows[0])
        records: Iterator[tuple[Any, ...]] = (tuple(row.values()) for row in rows)
        await driver.copy_records_to_table(model.__tablename__, records=records, columns=columns)


def build_link(number: int) -> dict[str, Any]:
    """Return the row of a link."""
    link_id, href = FIRST_ID + number * STEP, destination(number)
    made = get_creation_time(link_id)
    return {
        "id": link_id,
        "destination": href,
        "href": href,
        "href_digest": digest(href),
        "destination_host": "example.com",
        "has_placeholders": False,
        "title": None,
        "notes": None,
        "redirect_status": 302,
        "visibility": "unlisted",
        "forward_query": False,
        "status": "active",
        "disabled_by_admin": False,
        "flagged": False,
        "expires_at": None,
        "created_at": made,
        "updated_at": made,
        "deleted_at": None,
        "version": 1,
        "search_text": href,
    }


def build_name(number: int, host: str = "") -> dict[str, Any]:
    """Return the row of a name of the link with this number, on a domain."""
    name = join_name(host or None, f"s{number}")
    parts = ("", "", "") if host else similarity.split_key(name)  # only suggested without a host
    similar = dict(zip(("head", "middle", "tail"), parts, strict=True))
    made = datetime(2026, 1, 1, tzinfo=UTC)
    target = FIRST_ID + number * STEP
    return {
        "key": name_key(name),
        "name": name,
        "kind": "link",
        "target_id": target,
        **similar,
        "created_at": made,
    }


def build_domain(place: int, host: str) -> dict[str, Any]:
    """Return the row of a domain."""
    return {
        "id": FIRST_ID + place,
        "host": host,
        "state": "active",
        "default_redirect_status": 302,
        "creators": "everyone",
        "created_at": get_creation_time(FIRST_ID),
        "version": 1,
    }
