"""The past of the demo: events in the order of their time, on a clock that they move."""

import heapq
import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Final, NamedTuple

from refract.core.clock import ManualClock

DemoEvent = Callable[[], Awaitable[None]]
_OPENS, _CLOSES = 8, 17
_SATURDAY = 5
_RECENT: Final = timedelta(hours=3)
_DAY: Final = timedelta(days=1)


class DailyTraffic(NamedTuple):
    """Clicks per day of a target between two times."""

    begin: datetime
    end: datetime
    daily: float
    growth: float = 2.0
    """Traffic at the end, in multiples of that at the beginning."""


class Timeline:
    """Events between two times. An event may add later ones while it runs."""

    def __init__(self, clock: ManualClock, end: datetime) -> None:
        self.clock = clock
        self.start = clock.now()
        self.end = end
        self._chance = random.Random(len("refract"))  # noqa: S311 - nothing here is secret
        self._events: list[tuple[datetime, int, DemoEvent]] = []
        self._numbers = count()

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def add(self, share: float, event: DemoEvent) -> None:
        """Add an event after a share of the whole time, moved into working hours."""
        self.add_at(self._find_working_time(self.start + self.length * share), event)

    def add_recent(self, before_end: timedelta, event: DemoEvent) -> None:
        """Add an event shortly before the end, exactly then."""
        self.add_at(self.end - before_end, event)

    def add_at(self, moment: datetime, event: DemoEvent) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), event))

    async def run(self) -> None:
        """Run all events; the clock is at the end afterwards."""
        while self._events:
            moment, _, event = heapq.heappop(self._events)
            self._move_to(moment)
            await event()
        self._move_to(self.end)

    def _move_to(self, moment: datetime) -> None:
        # Ids are made of time, so the clock never moves back.
        self.clock.advance(max(0.0, (moment - self.clock.now()).total_seconds()))

    def _find_working_time(self, moment: datetime) -> datetime:
        """Return a time near by, on a weekday and by day, but neither before nor after all else."""
        moment = moment.replace(
            hour=self._chance.randrange(_OPENS, _CLOSES),
            minute=self._chance.randrange(60),
            second=self._chance.randrange(60),
        )
        while moment.weekday() >= _SATURDAY or moment > self.end - _RECENT:
            moment -= _DAY
        while moment.weekday() >= _SATURDAY or moment < self.start:
            moment += _DAY
        return moment
