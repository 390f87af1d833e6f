"""All clicks as columns, in the process that counts them.

Everything that a request needs comes from one snapshot of the database, so that each click is
counted once: those of a day with files from their tables, together with late ones that are still in
the database, and those of other days from the database.
"""

from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import SORT_COLUMNS
from refract.clicks.archive.service import ArchiveFileMissing, use_snapshot
from refract.clicks.columns.counting import DAY_SECONDS, ClickCounter, DayCounts
from refract.clicks.columns.files import FileTables
from refract.clicks.columns.recent import RecentClicks
from refract.clicks.columns.requests import CountRequest, CountResult
from refract.clicks.columns.table import ClickTable, ValueNumbering
from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.rollups.granularity import to_datetime
from refract.core.db.session import Database, ReadSession
from refract.core.settings.model import Settings

EventRow = tuple[Any, ...]
"""The columns of an event, in the order of `COLUMN_TYPES`."""
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


class ClickStore:
    """The clicks of one database and its archive."""

    def __init__(self, settings: Settings) -> None:
        self._db = Database(settings)
        self._numbering = ValueNumbering()
        self._files = FileTables(settings.effective_archive_dir, self._numbering)
        self._recent = RecentClicks(self._numbering)
        self._counts = DayCounts()

    async def count(self, request: CountRequest) -> CountResult:
        """Count clicks.

        Seven queries, and one for each spool with new clicks and each day with late ones.
        """
        first, last = request.begin // DAY_SECONDS, (request.end - 1) // DAY_SECONDS
        async with self._db.read() as session:
            await use_snapshot(session)
            files = await _load_names(session)
            await self._recent.refresh(session, files)
            days = [day for day in sorted(files.keys() | self._recent.days) if first <= day <= last]
            late = {
                day: await _load_events(session, day)
                for day in days
                if day in files and day in self._recent.days
            }
            links = await _load_links(session, request)
            kept_from = await _load_kept_from(session)
        counter = ClickCounter(request, links, self._numbering)
        for day in days:
            if day in files:
                self._add_files(counter, day, files[day], late.get(day, []))
            else:
                counter.add_day(day, self._recent.load(day))
        return counter.build_result(kept_from)

    def _add_files(
        self, counter: ClickCounter, day: int, names: list[str], late: list[EventRow]
    ) -> None:
        """Count an archived day. If all of it is counted, the next request need not do it again."""
        if not counter.is_whole(day):
            counter.add_day(day, self._load_files(day, names, late))
            return
        key = (*names, *(event[:3] for event in late)), counter.question
        count = self._counts.get(key)
        if count is None:
            count = counter.count_day(self._load_files(day, names, late))
            self._counts.add(key, count)
        counter.add_count(day, count)

    def _load_files(self, day: int, names: list[str], late: list[EventRow]) -> ClickTable:
        try:
            return self._files.load(names, late)
        except FileNotFoundError as exc:
            name = Path(exc.filename).name
            raise ArchiveFileMissing(day=to_datetime(day * DAY_SECONDS).date(), name=name) from exc


# In a process of its own, which works for one runtime; see `archive.processes`.
_stores: Final[dict[tuple[str, Path], ClickStore]] = {}


async def count_clicks(settings: Settings, request: CountRequest) -> CountResult:
    """Count clicks by the store of this process, which is kept from one request to the next."""
    key = settings.effective_database_url, settings.effective_archive_dir
    if key not in _stores:
        _stores[key] = ClickStore(settings)
    return await _stores[key].count(request)


async def _load_names(session: ReadSession) -> dict[int, list[str]]:
    """Return the names of the files of each day."""
    file = ArchiveFile
    found = await session.execute(
        select(file.day, file.name).where(file.dropped_at.is_(None)).order_by(file.day, file.part)
    )
    names: defaultdict[int, list[str]] = defaultdict(list)
    for day, name in found:
        names[day.toordinal() - _EPOCH_ORDINAL].append(name)
    return dict(names)


async def _load_kept_from(session: ReadSession) -> int:
    """Return from when on single clicks are kept, in seconds; 0 if all are."""
    dropped: date | None = await session.scalar(
        select(func.max(ArchiveFile.day)).where(ArchiveFile.dropped_at.is_not(None))
    )
    return (dropped.toordinal() + 1 - _EPOCH_ORDINAL) * DAY_SECONDS if dropped else 0


async def _load_links(session: ReadSession, request: CountRequest) -> NDArray[np.int64]:
    found = await session.scalars(request.scope.select_links())
    return np.unique(np.fromiter(found, np.int64))


async def _load_events(session: ReadSession, day: int) -> list[EventRow]:
    """Return the events of a day with all their columns, in order."""
    at, begin = EVENT_COLUMNS["at"], to_datetime(day * DAY_SECONDS)
    of_day = select_events().where(at >= begin, at < begin + timedelta(days=1))
    found = await session.execute(of_day.order_by(*(EVENT_COLUMNS[n] for n in SORT_COLUMNS)))
    return [tuple(row) for row in found]
