"""What the overview shows of the instance: new links and people by day, storage, versions."""

import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Select, func, literal, select, text, union_all

from refract import __version__
from refract.clicks.archive.models import ArchiveFile
from refract.core.db.session import ReadSession
from refract.core.ids import get_min_link_id
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.identity.models import User
from refract.links.models import Link

TREND_DAYS: Final = 14
MAX_COUNTED: Final = 10_000
"""Rows of a day that are counted, at most, so that a large instance costs no more."""
DATABASE_NAMES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MariaDB"}
_SIZE_SQL: Final = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    "postgresql": "SELECT pg_database_size(current_database())",
    "mysql": (
        "SELECT SUM(data_length + index_length) FROM information_schema.tables"
        " WHERE table_schema = DATABASE()"
    ),
}


@dataclass(frozen=True, slots=True)
class InstanceOverview:
    """The instance in numbers. Trends are by day, the last of which is today (UTC)."""

    new_links: Sequence[int]
    new_people: Sequence[int]
    database_bytes: int
    archive_bytes: int
    disk_free: int
    disk_size: int
    versions: Sequence[str]
    max_counted: int = MAX_COUNTED
    """A day with this number may have had more."""


async def load_overview(rt: Runtime) -> InstanceOverview:
    """Load the numbers, by four queries."""
    now = rt.clock.now()
    async with rt.db.read() as session:
        new_links = list(await session.scalars(_count_by_day(Link, now)))
        new_people = list(await session.scalars(_count_by_day(User, now)))
        size = await session.scalar(text(_SIZE_SQL[session.dialect])) or 0
        kept = select(func.sum(ArchiveFile.size)).where(ArchiveFile.dropped_at.is_(None))
        archived = await session.scalar(kept) or 0
        database = await _get_database_version(session)
    disk = await rt.singleton(WorkThreadPool).run(shutil.disk_usage, rt.settings.data_dir)
    return InstanceOverview(
        new_links,
        new_people,
        int(size),
        int(archived),
        disk.free,
        disk.total,
        [f"Refract {__version__}", f"Python {platform.python_version()}", database],
    )


def _count_by_day(model: type[Link | User], now: datetime) -> Select[int]:
    """Select the number of rows created on each of the last days: ids contain the time."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    counts: list[Select[int, int]] = []
    for index in range(TREND_DAYS):
        start = today - timedelta(days=TREND_DAYS - 1 - index)
        first, last = get_min_link_id(start), get_min_link_id(start + timedelta(days=1))
        rows = select(model.id).where(model.id >= first, model.id < last).limit(MAX_COUNTED)
        counts.append(
            select(literal(index).label("day"), func.count().label("made")).select_from(
                rows.subquery()
            )
        )
    days = union_all(*counts).subquery()
    return select(days.c.made).order_by(days.c.day)


async def _get_database_version(session: ReadSession) -> str:
    connection = await session.connection()
    version = connection.dialect.server_version_info or ()
    if session.dialect == "sqlite":
        version = tuple(str(await session.scalar(text("SELECT sqlite_version()"))).split("."))
    numbers = ".".join(str(part) for part in version[:3] if str(part).isdigit())
    return f"{DATABASE_NAMES[session.dialect]} {numbers}"
