"""Reconciliation of clicks: roll-ups against events and totals."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Table, and_, cast, extract, func, or_, select

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.service import summarize_archive
from refract.clicks.models import ClickEvent, ClickRollup, SpoolCheckpoint
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, HOUR, MONTH, QUARTER, to_datetime
from refract.clicks.rollups.state import RollupProgress, load_progress
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.spool.reader import (
    SpoolPosition,
    count_dropped,
    count_pending,
    list_acknowledged,
    list_quarantined,
    list_spools,
)
from refract.core.clock import EPOCH
from refract.core.db.session import ReadSession
from refract.core.phrases import CountPhrase, Phrase
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals

_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_START_SECONDS = cast(_ROLLUPS.c.start, BigInteger)


class DayDifference(NamedTuple):
    """A UTC day on which events and roll-ups hold different numbers of clicks."""

    day: str
    events: int
    rolled_up: int


def build_once_filter(state: RollupProgress) -> ColumnElement[bool]:
    """Select the rows that hold every click once: months, and quarter hours not closed yet."""
    hour = to_datetime(state.closed_until)
    after = to_datetime(state.closed_until + GRAIN_SECONDS[HOUR])
    still_open = or_(
        _ROLLUPS.c.start >= after,
        and_(_ROLLUPS.c.start >= hour, _ROLLUPS.c.target_id > state.closed_target),
    )
    return or_(_ROLLUPS.c.grain == MONTH, and_(_ROLLUPS.c.grain == QUARTER, still_open))


async def count_rolled_up(session: ReadSession, state: RollupProgress) -> int:
    clicks = await session.scalar(
        select(func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)).where(build_once_filter(state))
    )
    return int(clicks or 0) + state.outlived


async def find_day_differences(
    session: ReadSession, state: RollupProgress
) -> tuple[DayDifference, ...]:
    """Return the days on which events and quarter hours differ, where both are kept."""
    first = to_datetime(state.quarters_from)
    events = await _count_by_day(
        session, _build_day_expression(session), func.count(), ClickEvent.at >= first
    )
    for file in await session.scalars(select(ArchiveFile).where(ArchiveFile.day >= first.date())):
        number = (file.day - EPOCH.date()).days
        events[number] = events.get(number, 0) + file.events
    summed = func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)
    kept = await _count_by_day(
        session,
        _START_SECONDS // GRAIN_SECONDS[DAY],
        summed,
        _ROLLUPS.c.grain == QUARTER,
        _ROLLUPS.c.start >= first,
    )
    differ = sorted(
        day for day in events.keys() | kept.keys() if events.get(day, 0) != kept.get(day, 0)
    )
    return tuple(
        DayDifference(
            f"{to_datetime(day * GRAIN_SECONDS[DAY]):%Y-%m-%d}",
            events.get(day, 0),
            kept.get(day, 0),
        )
        for day in differ
    )


async def count_differing_links(session: ReadSession, state: RollupProgress) -> int:
    """Count the links whose roll-ups and totals differ.

    Valid only while no roll-up has been dropped permanently.
    """
    sums = (
        select(
            _ROLLUPS.c.target_id,
            func.sum(_ROLLUPS.c.people).label("people"),
            func.sum(_ROLLUPS.c.bots).label("bots"),
        )
        .where(build_once_filter(state), _ROLLUPS.c.kind == LINK_CLICK)
        .group_by(_ROLLUPS.c.target_id)
        .subquery()
    )
    same = and_(sums.c.people == LinkTotals.total_clicks, sums.c.bots == LinkTotals.bot_clicks)
    matching = (
        select(func.count())
        .select_from(sums)
        .join(LinkTotals, and_(LinkTotals.link_id == sums.c.target_id, same))
    )
    agreeing = await session.scalar(matching) or 0
    clicked = LinkTotals.total_clicks + LinkTotals.bot_clicks > 0
    counted = await session.scalar(select(func.count()).select_from(LinkTotals).where(clicked)) or 0
    return (
        max(counted, await session.scalar(select(func.count()).select_from(sums)) or 0) - agreeing
    )


async def _count_by_day(
    session: ReadSession,
    day: ColumnElement[Any],
    number: ColumnElement[Any],
    *where: ColumnElement[bool],
) -> dict[int, int]:
    which = day.label("day")
    found = await session.execute(
        select(which, number.label("clicks")).where(*where).group_by(which)
    )
    return {int(row.day): int(row.clicks) for row in found}


def _build_day_expression(session: ReadSession) -> ColumnElement[Any]:
    """Return the day of an event as days since 1970."""
    if session.dialect == "sqlite":
        return cast(func.strftime("%s", ClickEvent.at), BigInteger) // GRAIN_SECONDS[DAY]
    if session.dialect == "postgresql":
        return cast(func.floor(extract("epoch", ClickEvent.at)), BigInteger) // GRAIN_SECONDS[DAY]
    return cast(func.floor(func.unix_timestamp(ClickEvent.at)), BigInteger) // GRAIN_SECONDS[DAY]


# Accepted clicks are stored, pending or dropped; every drift is reported.


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Click counts from independent sources."""

    stored: int
    """Clicks applied from the spools, by the checkpoints."""
    pending: int
    """Clicks in the spools that are not applied yet."""
    not_kept: int
    """Clicks that were answered while the disk was full."""
    events: int
    """Rows of events, in the database and in the archive."""
    totals: int
    """Clicks of people and bots in the totals of all links."""
    link_events: int
    """Events that are clicks on links."""
    rolled_up: int
    """Clicks in the roll-ups, each once, plus those that have outlived all roll-ups."""
    unreadable: tuple[str, ...]
    """Files with bytes that could not be read as clicks."""
    days: tuple[DayDifference, ...] = ()
    """Days whose events and roll-ups differ."""
    links: int = 0
    """Number of links whose roll-ups and totals differ."""
    absent: tuple[str, ...] = ()
    """Archive files that are missing."""
    acknowledged: tuple[int, ...] = ()
    """Size in bytes of each unreadable piece whose loss an operator has acknowledged."""

    @property
    def accepted(self) -> int:
        return self.stored + self.pending + self.not_kept

    @property
    def drift(self) -> list[Phrase]:
        """Describe every difference in a sentence; empty when everything adds up."""
        return [*self._describe_sums(), *self._describe_parts()]

    def _describe_sums(self) -> Iterator[Phrase]:
        stored = _count_clicks(self.stored)
        if self.stored != self.events:
            yield Phrase(
                "The spools had {clicks}, but the database and the archive have {events}.",
                clicks=stored,
                events=_count_events(self.events),
            )
        if self.totals != self.link_events:
            yield Phrase(
                "The totals of links add up to {totals}, but their events to {clicks}.",
                totals=_count_clicks(self.totals),
                clicks=_count_clicks(self.link_events),
            )
        if self.stored != self.rolled_up:
            yield Phrase(
                "The spools had {clicks}, but the roll-ups have {rolled_up}.",
                clicks=stored,
                rolled_up=_count_clicks(self.rolled_up),
            )

    def _describe_parts(self) -> Iterator[Phrase]:
        for day in self.days:
            yield Phrase(
                "{day}: the database and the archive have {events}, but the roll-ups have"
                " {clicks}.",
                day=day.day,
                events=_count_events(day.events),
                clicks=_count_clicks(day.rolled_up),
            )
        if self.links:
            yield CountPhrase(
                "The roll-ups of {n} link don't add up to its total.",
                "The roll-ups of {n} links don't add up to their totals.",
                self.links,
            )
        for name in self.absent:
            yield Phrase("The archive file {name} is missing.", name=name)
        for path in self.unreadable:
            yield Phrase(
                "Unreadable clicks are kept in {path}. See docs/how-to/backups.md.", path=path
            )


def _count_clicks(count: int) -> CountPhrase:
    return CountPhrase("{n} click", "{n} clicks", count)


def _count_events(count: int) -> CountPhrase:
    return CountPhrase("{n} event", "{n} events", count)


async def reconcile(rt: Runtime, root: Path | None = None) -> Reconciliation:
    """Count everything. All database figures come from one snapshot."""
    root = root or rt.settings.effective_spool_dir
    async with rt.db.read() as session:
        state = await load_progress(session)
        places = {row.spool_id: row for row in await session.scalars(select(SpoolCheckpoint))}
        totals = await session.scalar(
            select(func.coalesce(func.sum(LinkTotals.total_clicks + LinkTotals.bot_clicks), 0))
        )
        old = await summarize_archive(session)
        counted: dict[str, Any] = {
            "events": await _query_events(session, None) + old.events,
            "link_events": await _query_events(session, LINK_CLICK) + old.link_events,
            "totals": int(totals or 0),
            "rolled_up": await count_rolled_up(session, state),
            "days": await find_day_differences(session, state),
            "links": 0 if state.outlived else await count_differing_links(session, state),
        }
    waiting = 0
    for spool in list_spools(root):
        row = places.get(spool.id)
        waiting += count_pending(
            spool, SpoolPosition(row.segment, row.place) if row else SpoolPosition()
        ).clicks
    return Reconciliation(
        stored=sum(row.stored for row in places.values()),
        pending=waiting,
        not_kept=count_dropped(root),
        absent=tuple(
            name for name in old.names if not (rt.settings.effective_archive_dir / name).is_file()
        ),
        unreadable=tuple(str(path.name) for path in list_quarantined(root)),
        acknowledged=tuple(path.stat().st_size for path in list_acknowledged(root)),
        **counted,
    )


async def _query_events(session: ReadSession, kind: int | None) -> int:
    wanted = select(func.count()).select_from(ClickEvent)
    return (
        await session.scalar(wanted if kind is None else wanted.where(ClickEvent.kind == kind)) or 0
    )
