"""Clicks that are still in the database, as tables that are kept up to date.

Events are only ever added by an ingester, which moves the checkpoint of their spool in the same
transaction, and only ever removed by the archive, which adds a file of their day in the same
transaction. So checkpoints and names of files tell what has changed since the last time.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Table, and_, func, or_, select

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.columns.counting import DAY_SECONDS
from refract.clicks.columns.dimensions import COLUMN_DIMENSIONS, VALUE_EXPRESSIONS
from refract.clicks.columns.errors import TooManyRecentClicks
from refract.clicks.columns.table import ClickTable, ClickTableBuilder, TableRow, ValueNumbering
from refract.clicks.models import ClickEvent, SpoolCheckpoint
from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.rollups.granularity import GRAIN_SECONDS, QUARTER, to_datetime, to_seconds
from refract.core.db.session import ReadSession

DayFiles = Mapping[int, Sequence[str]]
"""The names of the Parquet files of each UTC day that has any."""
MAX_RECENT_CLICKS: Final = 20_000_000
"""Clicks that are kept in memory: half a gigabyte."""
MAX_MOVED_SPOOLS: Final = 200
_PAGE_SIZE: Final = 10_000
_FIRST_STEP: Final = timedelta(minutes=15)
_MAX_STEP: Final = timedelta(days=1)
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_HASH_MASK: Final = (1 << 64) - 1
_SELECTED: Final = select_events(
    *(EVENT_COLUMNS[name] for name in ("segment", "place", "kind", "target_id", "at", "bot")),
    EVENT_COLUMNS["network"],
    EVENT_COLUMNS["user_agent"],
    *(VALUE_EXPRESSIONS[name] for name in COLUMN_DIMENSIONS),
).where(EVENT_COLUMNS["private"].is_(False))
_EVENT: Final = cast("Table", ClickEvent.__table__).c

SpoolPositions = dict[int, tuple[int, int]]


class RecentClicks:
    """The tables of the days of which the database has clicks."""

    def __init__(self, numbering: ValueNumbering) -> None:
        self._numbering = numbering
        self._tables: dict[int, ClickTable] = {}
        self._positions: SpoolPositions | None = None
        self._files: dict[int, tuple[str, ...]] = {}
        self._builders: dict[int, ClickTableBuilder] = {}

    @property
    def days(self) -> set[int]:
        return set(self._builders)

    def load(self, day: int) -> ClickTable:
        if day not in self._tables:
            # The table of the last day is built anew for each request with new clicks.
            is_growing = day == max(self._builders)
            self._tables[day] = self._builders[day].build(self._numbering, with_hashes=is_growing)
        return self._tables[day]

    async def refresh(self, session: ReadSession, files: DayFiles) -> None:
        """Load what has changed. The session has one snapshot, to which `files` belongs."""
        positions = await _load_positions(session)
        await _require_room(session)
        # None until everything is loaded: after an error, the next request begins anew.
        known, self._positions = self._positions, None
        moved = _find_moved(known, positions)
        if moved is None or len(moved) > MAX_MOVED_SPOOLS:
            self._builders, self._tables = {}, {}
            await self._load_period(session)
        else:
            stale = {day for day in self._builders if self._files[day] != _get_names(files, day)}
            for spool, position in moved.items():
                async for rows in _iter_added(session, spool, position):
                    self._add_rows(rows, without=stale)
            for day in stale:
                del self._builders[day]
                self._tables.pop(day, None)
                begin = to_datetime(day * DAY_SECONDS)
                await self._load_period(
                    session, _EVENT.at >= begin, _EVENT.at < begin + timedelta(days=1)
                )
        self._files = {day: _get_names(files, day) for day in self._builders}
        self._positions = positions

    async def _load_period(self, session: ReadSession, *conditions: ColumnElement[bool]) -> None:
        """Load events in order of time, some thousand at once."""
        step = _FIRST_STEP
        begin = await session.scalar(select(func.min(_EVENT.at)).where(*conditions))
        while begin is not None:
            end = begin + step
            found = await session.execute(
                _SELECTED.where(*conditions, _EVENT.at >= begin, _EVENT.at < end)
            )
            rows = found.all()
            self._add_rows(rows)
            step = min(step * min(4.0, max(0.25, _PAGE_SIZE / max(1, len(rows)))), _MAX_STEP)
            begin = await session.scalar(
                select(func.min(_EVENT.at)).where(*conditions, _EVENT.at >= end)
            )

    def _add_rows(self, events: Sequence[Any], without: AbstractSet[int] = frozenset()) -> None:
        by_day: defaultdict[int, list[TableRow]] = defaultdict(list)
        for _, _, kind, target, at, bot, network, agent, *values in events:
            day, second = divmod(to_seconds(at), DAY_SECONDS)
            visitor = 0 if bot else hash((network or "", agent or "")) & _HASH_MASK or 1
            by_day[day].append((kind, target, second // _QUARTER_SECONDS, visitor, *values))
        for day in by_day.keys() - without:
            self._builders.setdefault(day, ClickTableBuilder()).add_rows(by_day[day])
            self._tables.pop(day, None)


async def _load_positions(session: ReadSession) -> SpoolPositions:
    checkpoint = SpoolCheckpoint
    found = await session.execute(select(checkpoint.spool_id, checkpoint.segment, checkpoint.place))
    return {spool: (segment, place) for spool, segment, place in found}


async def _require_room(session: ReadSession) -> None:
    """Raise TooManyRecentClicks if the clicks of the database do not fit into memory.

    They are those that were stored and not archived: nothing else removes them.
    """
    stored = await session.scalar(select(func.sum(SpoolCheckpoint.stored)))
    archived = await session.scalar(select(func.sum(ArchiveFile.events)))
    if int(stored or 0) - int(archived or 0) > MAX_RECENT_CLICKS:
        raise TooManyRecentClicks(limit=MAX_RECENT_CLICKS)


def _find_moved(known: SpoolPositions | None, positions: SpoolPositions) -> SpoolPositions | None:
    """Return the spools with new events and where these begin.

    None if nothing is known, or if what is known is not the past: the database was restored.
    """
    if known is None or any(positions.get(spool, (0, 0)) < at for spool, at in known.items()):
        return None
    return {
        spool: known.get(spool, (0, 0))
        for spool, position in positions.items()
        if known.get(spool) != position
    }


async def _iter_added(
    session: ReadSession, spool: int, position: tuple[int, int]
) -> AsyncIterator[Sequence[Any]]:
    """Yield the events of a spool from a position on."""
    segment, place = position
    while True:
        later = or_(
            _EVENT.segment > segment, and_(_EVENT.segment == segment, _EVENT.place >= place)
        )
        page = (
            _SELECTED.where(_EVENT.spool_id == spool, _EVENT.segment >= segment, later)
            .order_by(_EVENT.segment, _EVENT.place)
            .limit(_PAGE_SIZE)
        )
        rows = (await session.execute(page)).all()
        yield rows
        if len(rows) < _PAGE_SIZE:
            return
        segment, place = rows[-1][0], rows[-1][1] + 1


def _get_names(files: DayFiles, day: int) -> tuple[str, ...]:
    return tuple(files.get(day, ()))
