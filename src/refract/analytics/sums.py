"""The roll-ups added up, each click once, to be held against events and totals."""

from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Table, and_, cast, extract, func, or_, select

from refract.analytics.archive_models import ArchiveFile
from refract.analytics.cover import State
from refract.analytics.frames import LINK_CLICK
from refract.analytics.grains import DAY, HOUR, MONTH, QUARTER, SECONDS, moment_of
from refract.analytics.models import ClickEvent, ClickRollup
from refract.core.clock import EPOCH
from refract.core.db import ReadSession
from refract.links.models import LinkTotals

_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_START = cast(_ROLLUPS.c.start, BigInteger)


class DayFigures(NamedTuple):
    """A UTC day as its events tell it, and as its roll-ups do."""

    day: str
    events: int
    rolled_up: int


def once(state: State) -> ColumnElement[bool]:
    """The rows that hold every click once: the months, and the quarters of hours that are not closed yet."""
    hour = moment_of(state.closed_until)
    after = moment_of(state.closed_until + SECONDS[HOUR])
    still_open = or_(_ROLLUPS.c.start >= after, and_(_ROLLUPS.c.start >= hour, _ROLLUPS.c.target_id > state.closed_target))
    return or_(_ROLLUPS.c.grain == MONTH, and_(_ROLLUPS.c.grain == QUARTER, still_open))


async def rolled_up(session: ReadSession, state: State) -> int:
    clicks = await session.scalar(select(func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)).where(once(state)))
    return int(clicks or 0) + state.outlived


async def days_that_differ(session: ReadSession, state: State) -> tuple[DayFigures, ...]:
    """Compared where both are kept: events by their day, and quarter hours."""
    first = moment_of(state.quarters_from)
    events = await _by_day(session, _day_of(session), func.count(), ClickEvent.at >= first)
    for file in await session.scalars(select(ArchiveFile).where(ArchiveFile.day >= first.date())):
        number = (file.day - EPOCH.date()).days
        events[number] = events.get(number, 0) + file.events
    summed = func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)
    kept = await _by_day(session, _START // SECONDS[DAY], summed, _ROLLUPS.c.grain == QUARTER, _ROLLUPS.c.start >= first)
    differ = sorted(day for day in events.keys() | kept.keys() if events.get(day, 0) != kept.get(day, 0))
    return tuple(DayFigures(f"{moment_of(day * SECONDS[DAY]):%Y-%m-%d}", events.get(day, 0), kept.get(day, 0)) for day in differ)


async def links_that_differ(session: ReadSession, state: State) -> int:
    """How many links have other clicks in their roll-ups than in their totals. Only while no roll-up has been dropped for good."""
    sums = (
        select(_ROLLUPS.c.target_id, func.sum(_ROLLUPS.c.people).label("people"), func.sum(_ROLLUPS.c.bots).label("bots"))
        .where(once(state), _ROLLUPS.c.kind == LINK_CLICK)
        .group_by(_ROLLUPS.c.target_id)
        .subquery()
    )
    same = and_(sums.c.people == LinkTotals.total_clicks, sums.c.bots == LinkTotals.bot_clicks)
    matching = select(func.count()).select_from(sums).join(LinkTotals, and_(LinkTotals.link_id == sums.c.target_id, same))
    agreeing = await session.scalar(matching) or 0
    clicked = LinkTotals.total_clicks + LinkTotals.bot_clicks > 0
    counted = await session.scalar(select(func.count()).select_from(LinkTotals).where(clicked)) or 0
    return max(counted, await session.scalar(select(func.count()).select_from(sums)) or 0) - agreeing


async def _by_day(session: ReadSession, day: ColumnElement[Any], number: ColumnElement[Any], *where: ColumnElement[bool]) -> dict[int, int]:
    which = day.label("day")
    found = await session.execute(select(which, number.label("clicks")).where(*where).group_by(which))
    return {int(row.day): int(row.clicks) for row in found}


def _day_of(session: ReadSession) -> ColumnElement[Any]:
    """The number of an event's day since 1970."""
    if session.dialect == "sqlite":
        return cast(func.strftime("%s", ClickEvent.at), BigInteger) // SECONDS[DAY]
    if session.dialect == "postgresql":
        return cast(func.floor(extract("epoch", ClickEvent.at)), BigInteger) // SECONDS[DAY]
    return cast(func.floor(func.unix_timestamp(ClickEvent.at)), BigInteger) // SECONDS[DAY]
