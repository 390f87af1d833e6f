"""Figures as they grow: however many people watch, one question a second goes to the database."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import select

from refract.clicks.stats.errors import TooManyStreams
from refract.core.db.bulk import iter_batches
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals

POLL_INTERVAL: Final = 1.0
TICK_INTERVAL: Final = 0.5
HEARTBEAT_INTERVAL: Final = 15.0
MAX_STREAM_SECONDS: Final = 60.0
"""A stream ends after this and is asked for anew, so that whoever lost the right to look does not look on."""
MAX_STREAMS: Final = 200


@dataclass(frozen=True, slots=True)
class LiveTotals:
    """All clicks of a link so far."""

    clicks: int = 0
    bots: int = 0
    last_clicked_at: datetime | None = None


class LiveTotalsWatcher:
    """What is watched in this process, and how it stood a moment ago."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._watched: Counter[int] = Counter()
        self._latest: dict[int, LiveTotals] = {}
        self._polled_at = float("-inf")
        self._lock = asyncio.Lock()
        self.query_count = 0

    @property
    def stream_count(self) -> int:
        return self._watched.total()

    def check_capacity(self) -> None:
        """Whether there is room for one more."""
        if self.stream_count >= MAX_STREAMS:
            raise TooManyStreams

    @contextmanager
    def watch(self, link_id: int) -> Iterator[None]:
        """Keep an eye on a link for as long as the block runs."""
        self.check_capacity()
        self._watched[link_id] += 1
        try:
            yield
        finally:
            self._watched[link_id] -= 1
            if not self._watched[link_id]:
                del self._watched[link_id]
                self._latest.pop(link_id, None)

    async def get_totals(self, link_id: int) -> LiveTotals:
        """How a watched link stands, by a look that is at most a second old. Whoever finds it older looks for everybody."""
        async with self._lock:
            if (
                link_id not in self._latest
                or self._rt.clock.monotonic() - self._polled_at >= POLL_INTERVAL
            ):
                await self._poll()
        return self._latest.get(link_id, LiveTotals())

    async def _poll(self) -> None:
        found: dict[int, LiveTotals] = {}
        async with self._rt.db.read() as session:
            for some in iter_batches(sorted(self._watched)):
                rows = await session.scalars(select(LinkTotals).where(LinkTotals.link_id.in_(some)))
                found |= {
                    row.link_id: LiveTotals(row.total_clicks, row.bot_clicks, row.last_clicked_at)
                    for row in rows
                }
                self.query_count += 1
        self._latest = {link_id: found.get(link_id, LiveTotals()) for link_id in self._watched}
        self._polled_at = self._rt.clock.monotonic()


async def stream_totals(
    rt: Runtime, link_id: int, should_stop: Callable[[], bool]
) -> AsyncIterator[LiveTotals | None]:
    """How a link stands: at once, then whenever that changes; None now and then, to show that somebody is there.

    Ends when its time is up, or when the process is about to stop. A database that is away is waited for.
    """
    live, clock = rt.singleton(LiveTotalsWatcher), rt.clock
    with live.watch(link_id):
        begun = spoken = clock.monotonic()
        known: LiveTotals | None = None
        while not should_stop() and clock.monotonic() - begun < MAX_STREAM_SECONDS:
            try:
                now = await live.get_totals(link_id)
            except Unavailable:
                now = known or LiveTotals()
            if known is None or now != known:
                known, spoken = now, clock.monotonic()
                yield now
            elif clock.monotonic() - spoken >= HEARTBEAT_INTERVAL:
                spoken = clock.monotonic()
                yield None
            await clock.sleep(TICK_INTERVAL)
