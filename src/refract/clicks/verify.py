"""Reconciliation of clicks: roll-ups against events and totals."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, case, delete, func, select
from sqlalchemy.orm import InstrumentedAttribute

from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.service import summarize_archive
from refract.clicks.models import (
    ClickEvent,
    ClickPack,
    ClickRollup,
    OpenRollup,
    SpoolCheckpoint,
    Verification,
)
from refract.clicks.rollups.granularity import (
    DAY,
    MONTH,
    QUARTER,
    end_of,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.groups import MEMBERS, list_complete_groups
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.rollups.rows import MIN_GROUP_KIND
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
from refract.core.db.session import ReadSession, WriteSession
from refract.core.phrases import CountPhrase, Phrase
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals

_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_OPEN: Table = OpenRollup.__table__  # type: ignore[assignment]
_PACKS: Table = ClickPack.__table__  # type: ignore[assignment]
_SLICE_SIZE = 5_000
"""Links that are compared at a time, which bounds memory."""


class DayDifference(NamedTuple):
    """A UTC day on which events and roll-ups hold different numbers of clicks."""

    day: str
    events: int
    rolled_up: int


async def count_rolled_up(session: ReadSession, state: RollupProgress) -> int:
    """Count every click once: in months, packs or open roll-ups, or in none any more."""
    months = select(_sum_clicks(_ROLLUPS)).where(_ROLLUPS.c.grain == MONTH)
    sums = (
        months.where(_ROLLUPS.c.kind < MIN_GROUP_KIND),
        select(_sum_clicks(_PACKS)),
        select(_sum_clicks(_OPEN)).where(_OPEN.c.kind < MIN_GROUP_KIND),
    )
    return sum([int(await session.scalar(query) or 0) for query in sums], state.outlived)


def _sum_clicks(table: Table) -> ColumnElement[int]:
    return func.sum(table.c.people + table.c.bots)


async def find_day_differences(
    session: ReadSession, state: RollupProgress
) -> tuple[DayDifference, ...]:
    """Return the days on which events and quarter hours differ, where both are kept."""
    first = to_datetime(state.quarters_from)
    archived = {
        to_seconds(datetime.combine(file.day, time(), UTC)): file.events
        for file in await session.scalars(
            select(ArchiveFile).where(ArchiveFile.day >= first.date())
        )
    }
    events = await _count_by_day(session, ClickEvent.at, func.count(), first)
    for day, count in archived.items():
        events[day] = events.get(day, 0) + count
    quarters = _ROLLUPS.c.grain == QUARTER, _ROLLUPS.c.kind < MIN_GROUP_KIND
    clicks = _sum_clicks(_ROLLUPS)
    kept = await _count_by_day(session, _ROLLUPS.c.start, clicks, first, *quarters)
    for found in (await _count_open_by_day(session), await _count_packed_by_day(session, first)):
        for day, count in found.items():
            if day >= state.quarters_from:
                kept[day] = kept.get(day, 0) + count
    differ = sorted(
        day for day in events.keys() | kept.keys() if events.get(day, 0) != kept.get(day, 0)
    )
    return tuple(
        DayDifference(f"{to_datetime(day):%Y-%m-%d}", events.get(day, 0), kept.get(day, 0))
        for day in differ
    )


async def _count_by_day(
    session: ReadSession,
    moment: ColumnElement[datetime] | InstrumentedAttribute[datetime],
    number: ColumnElement[Any],
    first: datetime,
    *where: ColumnElement[bool],
) -> dict[int, int]:
    """Return a number for each UTC day that has rows, by one query per day along an index.

    A single query that groups by day would hold all rows in memory to sort them.
    """
    found: dict[int, int] = {}
    following = select(func.min(moment)).where(*where)
    at = await session.scalar(following.where(moment >= first))
    while at is not None:
        day = start_of(DAY, to_seconds(at))
        begin, end = to_datetime(day), to_datetime(end_of(DAY, day))
        counted = select(number).where(*where, moment >= max(begin, first), moment < end)
        found[day] = int(await session.scalar(counted) or 0)
        at = await session.scalar(following.where(moment >= end))
    return found


async def _count_open_by_day(session: ReadSession) -> dict[int, int]:
    """Return the clicks in open roll-ups for each UTC day. There are few of them."""
    clicks = select(_OPEN.c.start, _sum_clicks(_OPEN)).where(_OPEN.c.kind < MIN_GROUP_KIND)
    rows = await session.execute(clicks.group_by(_OPEN.c.start))
    found: dict[int, int] = defaultdict(int)
    for start, number in rows:
        found[start_of(DAY, to_seconds(start))] += int(number)
    return found


async def _count_packed_by_day(session: ReadSession, first: datetime) -> dict[int, int]:
    """Return the clicks in packs for each UTC day, by slices of a month's targets."""
    found: dict[int, int] = defaultdict(int)
    month = start_of(MONTH, to_seconds(first))
    while (start := await _find_pack_month(session, month)) is not None:
        month, after = to_seconds(start), -1
        while True:
            query = select(_PACKS.c.target_id, _PACKS.c.data).where(_PACKS.c.start == start)
            query = query.where(_PACKS.c.target_id > after).order_by(_PACKS.c.target_id)
            rows = (await session.execute(query.limit(_SLICE_SIZE))).all()
            whole = [row for row in rows if row.target_id < rows[-1].target_id]
            rows = rows if len(rows) < _SLICE_SIZE else whole  # perhaps not all kinds of the last
            for row in rows:
                for at, delta in iter_entries(month, row.data):
                    found[start_of(DAY, at)] += delta.people + delta.bots
            if not rows:
                break
            after = rows[-1].target_id
        month = end_of(MONTH, month)
    return found


async def _find_pack_month(session: ReadSession, month: int) -> datetime | None:
    following = select(func.min(_PACKS.c.start)).where(_PACKS.c.start >= to_datetime(month))
    found: datetime | None = await session.scalar(following)
    return found


async def count_differing_links(session: ReadSession) -> int:
    """Count the links whose roll-ups and totals differ, in slices of links by id.

    Valid only while no roll-up has been dropped permanently.
    """
    differing, after = 0, -1
    while True:
        link_ids = select(LinkTotals.link_id).where(LinkTotals.link_id > after)
        last = await session.scalar(
            link_ids.order_by(LinkTotals.link_id).offset(_SLICE_SIZE - 1).limit(1)
        )
        totals = await _load_totals(session, after, last)
        sums = await _sum_rollups(session, after, last)
        differing += sum(
            totals.get(link_id) != sums.get(link_id) for link_id in totals.keys() | sums.keys()
        )
        if last is None:
            return differing
        after = last


async def _load_totals(
    session: ReadSession, after: int, last: int | None
) -> dict[int, tuple[int, int]]:
    """Return clicks of people and of bots by link, without links that have neither."""
    columns = (LinkTotals.link_id, LinkTotals.total_clicks, LinkTotals.bot_clicks)
    query = select(*columns).where(LinkTotals.link_id > after)
    query = query.where(LinkTotals.total_clicks + LinkTotals.bot_clicks > 0)
    rows = await session.execute(query if last is None else query.where(columns[0] <= last))
    return {link_id: (people, bots) for link_id, people, bots in rows}


async def _sum_rollups(
    session: ReadSession, after: int, last: int | None
) -> dict[int, tuple[int, int]]:
    """Return the same by the roll-ups."""
    # A sum has no index: otherwise SQLite would read all months for every slice.
    months = select(_ROLLUPS.c.target_id, _ROLLUPS.c.people, _ROLLUPS.c.bots).where(
        _ROLLUPS.c.kind == LINK_CLICK, _ROLLUPS.c.grain + 0 == MONTH
    )
    still_open = select(_OPEN.c.target_id, _OPEN.c.people, _OPEN.c.bots).where(
        _OPEN.c.kind == LINK_CLICK
    )
    packed = select(_PACKS.c.target_id, _PACKS.c.people, _PACKS.c.bots).where(
        _PACKS.c.kind == LINK_CLICK
    )
    found: dict[int, tuple[int, int]] = {}
    for query in (months, packed, still_open):
        rows = query.subquery()
        target = rows.c.target_id
        totals = select(target, func.sum(rows.c.people), func.sum(rows.c.bots))
        totals = totals.where(target > after).group_by(target)
        for link_id, people, bots in await session.execute(
            totals if last is None else totals.where(target <= last)
        ):
            before = found.get(link_id, (0, 0))
            found[link_id] = before[0] + int(people), before[1] + int(bots)
    return found


async def count_differing_groups(session: ReadSession) -> int:
    """Count the groups whose roll-ups differ from those of their links, group by group."""
    differing = 0
    for group in await list_complete_groups(session):
        group_id, link_id = MEMBERS[group.kind]
        own, links = [0, 0], [0, 0]
        for table in (_ROLLUPS, _PACKS, _OPEN):
            sums = select(func.sum(table.c.people), func.sum(table.c.bots))
            if table is _ROLLUPS:
                sums = sums.where(table.c.grain + 0 == MONTH)  # as above
            of_group = sums.where(table.c.target_id == group.id, table.c.kind == group.kind)
            of_links = sums.join(link_id.class_, link_id == table.c.target_id).where(
                group_id == group.id, table.c.kind == LINK_CLICK
            )
            for query, into in ((of_group, own), (of_links, links)):
                for place, number in enumerate((await session.execute(query)).one()):
                    into[place] += int(number or 0)
        differing += own != links
    return differing


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
    groups: int = 0
    """Number of users whose roll-ups and those of their links differ."""
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
        if self.groups:
            yield CountPhrase(
                "The roll-ups of {n} user don't add up to those of their links.",
                "The roll-ups of {n} users don't add up to those of their links.",
                self.groups,
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


@dataclass(frozen=True, slots=True)
class ClickIntake:
    """Clicks that were received, by the spools and their checkpoints."""

    stored: int
    pending: int
    not_kept: int

    @property
    def accepted(self) -> int:
        return self.stored + self.pending + self.not_kept


async def count_intake(rt: Runtime) -> ClickIntake:
    """Count received clicks. The cost depends on the clicks that are pending, not on all."""
    async with rt.db.read() as session:
        places = await _load_checkpoints(session)
    root = rt.settings.effective_spool_dir
    return ClickIntake(
        sum(row.stored for row in places.values()),
        _count_pending(root, places),
        count_dropped(root),
    )


async def _load_checkpoints(session: ReadSession) -> dict[int, SpoolCheckpoint]:
    return {row.spool_id: row for row in await session.scalars(select(SpoolCheckpoint))}


def _count_pending(root: Path, places: Mapping[int, SpoolCheckpoint]) -> int:
    waiting = 0
    for spool in list_spools(root):
        row = places.get(spool.id)
        waiting += count_pending(
            spool, SpoolPosition(row.segment, row.place) if row else SpoolPosition()
        ).clicks
    return waiting


async def reconcile(rt: Runtime, root: Path | None = None) -> Reconciliation:
    """Count everything. All database figures come from one snapshot.

    The time grows with the number of clicks, the memory does not: pages show the result of a job.
    """
    root = root or rt.settings.effective_spool_dir
    async with rt.db.read() as session:
        state = await load_progress(session)
        places = await _load_checkpoints(session)
        totals = await session.scalar(
            select(func.coalesce(func.sum(LinkTotals.total_clicks + LinkTotals.bot_clicks), 0))
        )
        old = await summarize_archive(session)
        events, link_events = await _query_events(session)
        counted: dict[str, Any] = {
            "events": events + old.events,
            "link_events": link_events + old.link_events,
            "totals": int(totals or 0),
            "rolled_up": await count_rolled_up(session, state),
            "days": await find_day_differences(session, state),
            "links": 0 if state.outlived else await count_differing_links(session),
            "groups": await count_differing_groups(session),
        }
    return Reconciliation(
        stored=sum(row.stored for row in places.values()),
        pending=_count_pending(root, places),
        not_kept=count_dropped(root),
        absent=tuple(
            name for name in old.names if not (rt.settings.effective_archive_dir / name).is_file()
        ),
        unreadable=tuple(str(path.name) for path in list_quarantined(root)),
        acknowledged=tuple(path.stat().st_size for path in list_acknowledged(root)),
        **counted,
    )


async def _query_events(session: ReadSession) -> tuple[int, int]:
    """Return the number of all events, and of those that are clicks on links, in one pass."""
    of_links = func.sum(case((ClickEvent.kind == LINK_CLICK, 1), else_=0))
    row = (await session.execute(select(func.count(), of_links).select_from(ClickEvent))).one()
    return int(row[0]), int(row[1] or 0)


# The last verification, for pages.


async def store_verification(session: WriteSession, found: Reconciliation, at: datetime) -> None:
    """Keep the result in place of the one before."""
    await session.execute(delete(Verification))
    session.add(Verification(id=session.ids.next_id(), at=at, figures=asdict(found)))


async def load_verification(session: ReadSession) -> tuple[Reconciliation, datetime] | None:
    """Return the last verification and its time, or None if there was none yet."""
    row = await session.scalar(select(Verification).order_by(Verification.id.desc()).limit(1))
    if row is None:
        return None
    figures: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row.figures.items()
    }
    figures["days"] = tuple(DayDifference(*day) for day in figures["days"])
    return Reconciliation(**figures), row.at
