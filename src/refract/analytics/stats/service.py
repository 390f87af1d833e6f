"""Statistics: of one link, of all that somebody has. Sessions come from the caller, answers are plain values.

Whoever asks has been let in already: `demand_stats` is the door. Each function but that wants a session that has not been used yet, so
that all it reads is of one moment.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final, TypeVar

from refract.analytics.cover import State
from refract.analytics.frames import LINK_CLICK
from refract.analytics.grains import moment_of, second_of
from refract.analytics.parts import DIMENSIONS
from refract.analytics.state import state_of
from refract.analytics.stats import figures
from refract.analytics.stats.calendar import Bucket, Granularity, Range, buckets, range_of, zone_of
from refract.analytics.stats.raw import campaign_part
from refract.analytics.stats.results import Breakdown, Dashboard, Previous, Stats
from refract.analytics.stats.rows import Group, Reading, Row, of_owner, of_target
from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.identity.access import Right
from refract.links.access import Who
from refract.links.models import Link
from refract.links.queries import view_link

MOST_LINKS: Final = 50
_MUCH: Final = 300
"""Roll-ups beyond which they are counted in a thread, so that others are answered meanwhile."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to know. Dates stand for their first moment in the zone; left out: the last 30 days."""

    begin: datetime | date | None = None
    end: datetime | date | None = None
    granularity: Granularity = Granularity.DAY
    tz: str = "UTC"
    compare: bool = False

    def span(self, now: datetime) -> Range:
        return range_of(self.begin, self.end, zone_of(self.tz), now)


async def demand_stats(session: ReadSession, who: Who, link_id: int) -> Link:
    """The link, for those who may see its figures; for everybody else it is not there."""
    link, _ = await view_link(session, who, link_id, Right.STATS)
    return link


async def link_stats(session: ReadSession, link_id: int, asked: Question, now: datetime, *, kind: int = LINK_CLICK) -> Stats:
    """Totals and a series of one link (or, by `kind`, of a list's page or an entry). Two queries."""
    state = await state_of(session)
    plan = _Plan(state, of_target(state, link_id, kind), asked, now)
    await plan.reading.read(session)
    return await _counted(plan, plan.stats)


async def link_breakdown(
    session: ReadSession, link_id: int, dimension: str, asked: Question, now: datetime, *, limit: int | None = None, kind: int = LINK_CLICK
) -> Breakdown:
    """Clicks of one link by the values of a dimension. Two queries."""
    state = await state_of(session)
    plan = _Plan(state, of_target(state, link_id, kind), asked, now, series=False, parts=True)
    await plan.reading.read(session, visitors=False)
    return await _counted(plan, lambda: plan.breakdown(dimension, limit))


async def campaign_parts(
    rt: Runtime, link_id: int, dimension: str, begin: datetime, end: datetime, *, limit: int | None = None
) -> Breakdown:
    """Clicks of one link by a part of their campaigns (`CAMPAIGN_PARTS`), counted click by click: roll-ups do not know them."""
    values, people = await campaign_part(rt, link_id, dimension, begin, end)
    return figures.ranked(dimension, values, people, second_of(begin), second_of(end), limit)


async def dashboard(session: ReadSession, link_id: int, asked: Question, now: datetime, *, kind: int = LINK_CLICK) -> Dashboard:
    """Totals, series and every breakdown of one link. Two queries; up to four if it was clicked late, or by a whole world alike."""
    state = await state_of(session)
    plan = _Plan(state, of_target(state, link_id, kind), asked, now, parts=True)
    await plan.reading.read(session, tops=True)
    found, breakdowns = await _counted(plan, lambda: (plan.stats(), plan.first_of_all()))
    if breakdowns is None:
        await plan.read_in_full(session)
        breakdowns = await _counted(plan, plan.breakdowns)
    return Dashboard(found, breakdowns)


async def overview(session: ReadSession, user_id: int, asked: Question, now: datetime, *, links: int = MOST_LINKS) -> Stats:
    """Totals and a series over all links that somebody owns or co-owns, and the most clicked of them. Two queries."""
    state = await state_of(session)
    plan = _Plan(state, of_owner(state, user_id), asked, now)
    await plan.reading.read(session)
    return await _counted(plan, lambda: replace(plan.stats(), links=figures.by_link(plan.whole, links)))


async def overview_breakdown(
    session: ReadSession, user_id: int, dimension: str, asked: Question, now: datetime, *, limit: int | None = None, links: int = MOST_LINKS
) -> Breakdown:
    """Clicks on all links that somebody owns or co-owns by the values of a dimension. Two queries."""
    state = await state_of(session)
    plan = _Plan(state, of_owner(state, user_id), asked, now, series=False, parts=True)
    await plan.reading.read(session, visitors=False)
    return await _counted(plan, lambda: replace(plan.breakdown(dimension, limit), links=figures.by_link(plan.whole, links)))


class _Plan:
    """Which spans a question needs, and the answer once they have been read."""

    def __init__(
        self, state: State, groups: Sequence[Group], asked: Question, now: datetime, *, series: bool = True, parts: bool = False
    ) -> None:
        self._asked = asked
        self._parts = parts
        span = asked.span(now)
        self._zone = span.zone
        self._groups, self._now = groups, second_of(now)
        self.reading = Reading(state, groups, self._now)
        self._buckets: list[Bucket] = buckets(span, asked.granularity, state) if series else []
        if series:
            known = [bucket for bucket in self._buckets if not bucket.blank]
            self._begin, self._end = self._buckets[0].begin, self._buckets[-1].end
            self._known = (known[0].begin, known[-1].end) if known else (self._end, self._end)
        else:
            self._begin, self._end = self._known = span.begin, span.end
        self._before = Range(self._begin, self._end, span.zone).before if asked.compare else None
        self.reading.want(*self._known, parts=parts)
        for bucket in self._buckets:
            if not bucket.blank:
                self.reading.want(bucket.begin, bucket.end)
        if self._before is not None:
            self.reading.want(self._before.begin, self._before.end)

    @property
    def size(self) -> int:
        return self.reading.size

    @property
    def whole(self) -> Sequence[Row]:
        """The rows of the whole time."""
        return self.reading.within(*self._known, parts=self._parts)

    def stats(self) -> Stats:
        series = [figures.point(bucket, [] if bucket.blank else self.reading.within(bucket.begin, bucket.end)) for bucket in self._buckets]
        previous = None
        if self._before is not None:
            before = figures.counts(self.reading.within(self._before.begin, self._before.end))
            previous = Previous(before.clicks, before.uniques, before.bots, moment_of(self._before.begin), moment_of(self._before.end))
        totals = figures.counts(self.whole)
        begin, end = moment_of(self._begin), moment_of(self._end)
        return Stats(begin, end, self._asked.granularity, self._zone.key, totals, previous, series)

    def breakdown(self, dimension: str, limit: int | None) -> Breakdown:
        return figures.breakdown(dimension, self.whole, self._begin, self._end, limit)

    def first_of_all(self) -> dict[str, Breakdown] | None:
        return figures.first_of_all(self.whole, self._begin, self._end)

    async def read_in_full(self, session: ReadSession) -> None:
        """The breakdowns with every value, instead of all that was read."""
        self.reading = Reading(self.reading.state, [group.unread() for group in self._groups], self._now)
        self.reading.want(*self._known, parts=True)
        await self.reading.read(session, visitors=False)

    def breakdowns(self) -> dict[str, Breakdown]:
        return figures.all_breakdowns(DIMENSIONS, self.whole, self._begin, self._end)


async def _counted(plan: _Plan, answer: Callable[[], Answer]) -> Answer:
    return await asyncio.to_thread(answer) if plan.size > _MUCH else answer()
