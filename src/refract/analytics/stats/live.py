"""Figures as they grow: however many people watch, one question a second goes to the database."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import select

from refract.analytics.stats.errors import TooManyStreams
from refract.core.errors import Unavailable
from refract.core.rows import slices
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals

LOOK_SECONDS: Final = 1.0
TICK_SECONDS: Final = 0.5
HEARTBEAT_SECONDS: Final = 15.0
LIFETIME_SECONDS: Final = 60.0
"""A stream ends after this and is asked for anew, so that whoever lost the right to look does not look on."""
MOST_STREAMS: Final = 200


@dataclass(frozen=True, slots=True)
class Totals:
    """All clicks of a link so far."""

    clicks: int = 0
    bots: int = 0
    last_clicked_at: datetime | None = None


class Live:
    """What is watched in this process, and how it stood a moment ago."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._watched: Counter[int] = Counter()
        self._seen: dict[int, Totals] = {}
        self._looked = float("-inf")
        self._lock = asyncio.Lock()
        self.questions = 0

    @property
    def streams(self) -> int:
        return self._watched.total()

    def check(self) -> None:
        """Whether there is room for one more."""
        if self.streams >= MOST_STREAMS:
            raise TooManyStreams

    @contextmanager
    def watching(self, link_id: int) -> Iterator[None]:
        """Keep an eye on a link for as long as the block runs."""
        self.check()
        self._watched[link_id] += 1
        try:
            yield
        finally:
            self._watched[link_id] -= 1
            if not self._watched[link_id]:
                del self._watched[link_id]
                self._seen.pop(link_id, None)

    async def totals(self, link_id: int) -> Totals:
        """How a watched link stands, by a look that is at most a second old. Whoever finds it older looks for everybody."""
        async with self._lock:
            if link_id not in self._seen or self._rt.clock.monotonic() - self._looked >= LOOK_SECONDS:
                await self._look()
        return self._seen.get(link_id, Totals())

    async def _look(self) -> None:
        found: dict[int, Totals] = {}
        async with self._rt.db.read() as session:
            for some in slices(sorted(self._watched)):
                rows = await session.scalars(select(LinkTotals).where(LinkTotals.link_id.in_(some)))
                found |= {row.link_id: Totals(row.total_clicks, row.bot_clicks, row.last_clicked_at) for row in rows}
                self.questions += 1
        self._seen = {link_id: found.get(link_id, Totals()) for link_id in self._watched}
        self._looked = self._rt.clock.monotonic()


async def follow(rt: Runtime, link_id: int, ending: Callable[[], bool]) -> AsyncIterator[Totals | None]:
    """How a link stands: at once, then whenever that changes; None now and then, to show that somebody is there.

    Ends when its time is up, or when the process is about to stop. A database that is away is waited for.
    """
    live, clock = rt.part(Live), rt.clock
    with live.watching(link_id):
        begun = spoken = clock.monotonic()
        known: Totals | None = None
        while not ending() and clock.monotonic() - begun < LIFETIME_SECONDS:
            try:
                now = await live.totals(link_id)
            except Unavailable:
                now = known or Totals()
            if known is None or now != known:
                known, spoken = now, clock.monotonic()
                yield now
            elif clock.monotonic() - spoken >= HEARTBEAT_SECONDS:
                spoken = clock.monotonic()
                yield None
            await clock.sleep(TICK_SECONDS)
