"""Live totals: one database query a second, however many clients watch."""

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
"""A stream ends after this time and is requested again, so that access is checked again."""
MAX_STREAMS: Final = 200


@dataclass(frozen=True, slots=True)
class LiveTotals:
    """All clicks of a link so far."""

    clicks: int = 0
    bots: int = 0
    last_clicked_at: datetime | None = None


class LiveTotalsWatcher:
    """The links watched in this process and their last known totals."""

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
        """Raise TooManyStreams if there is no capacity for one more."""
        if self.stream_count >= MAX_STREAMS:
            raise TooManyStreams

    @contextmanager
    def watch(self, link_id: int) -> Iterator[None]:
        """Watch a link while the block runs."""
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
        """Return the totals of a watched link, at most a second old.

        The first caller that finds them older loads them for all.
        """
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
            for link_ids in iter_batches(sorted(self._watched)):
                rows = await session.scalars(
                    select(LinkTotals).where(LinkTotals.link_id.in_(link_ids))
                )
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
    """Yield the totals of a link: immediately, then on every change; None as a heartbeat.

    Ends after `MAX_STREAM_SECONDS`, or when `should_stop` returns True. While the database is
    unavailable, the last known totals stand.
    """
    live, clock = rt.singleton(LiveTotalsWatcher), rt.clock
    with live.watch(link_id):
        started_at = sent_at = clock.monotonic()
        known: LiveTotals | None = None
        while not should_stop() and clock.monotonic() - started_at < MAX_STREAM_SECONDS:
            try:
                now = await live.get_totals(link_id)
            except Unavailable:
                now = known or LiveTotals()
            if known is None or now != known:
                known, sent_at = now, clock.monotonic()
                yield now
            elif clock.monotonic() - sent_at >= HEARTBEAT_INTERVAL:
                sent_at = clock.monotonic()
                yield None
            await clock.sleep(TICK_INTERVAL)
