"""News of changed links over Redis: quicker than the feed in the database, and never instead of it.

Whoever commits a change tells the shared cache, then every process that listens, and then puts the new state into the cache. A message that
is lost costs nothing but time: the feed brings it too.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence

import structlog

from refract.core.ids import encode
from refract.core.redis import Redis, RedisAway
from refract.core.runtime import Runtime
from refract.links import feed
from refract.redirect.shared import SharedLinks

CHANNEL = "refract:changes"
MOST_WAITING = 1000
MOST_WRITTEN = 1000
"""Of one commit so many links are put into the cache at once; the others come when somebody asks for them."""

PAUSE_SECONDS = 1.0
Write = Callable[[str], Awaitable[None]]


class News:
    """Tells of what this process commits, and hears of what others do."""

    def __init__(self, rt: Runtime, redis: Redis, shared: SharedLinks) -> None:
        self._redis = redis
        self._shared = shared
        self._signals = rt.signals
        self._me = secrets.token_hex(8)
        self._waiting: list[feed.Change] = []
        self._wake = asyncio.Event()
        self._log = structlog.get_logger("refract.news")

    async def tell(self, write_through: Write | None = None) -> None:
        """Tell of every commit of this process until cancelled. `write_through` reads a name or a code again and shares what it finds."""
        with self._signals.following(feed.TOPIC, self._note):
            while True:
                await self._wake.wait()
                self._wake.clear()
                changes, self._waiting = self._waiting, []
                try:
                    await self._announce(changes)
                    if write_through is not None:
                        await _write(changes[:MOST_WRITTEN], write_through)
                except RedisAway:
                    continue  # the feed in the database tells everybody, and what each has heard counts more than what the cache says

    async def hear(self, told: Callable[[Sequence[feed.Change]], None]) -> None:
        """Hand on what others tell until cancelled."""
        while True:
            with contextlib.suppress(RedisAway):
                async with contextlib.aclosing(self._redis.messages(CHANNEL, lambda: None)) as messages:
                    async for message in messages:
                        if changes := self._read(message):
                            told(changes)
            await asyncio.sleep(PAUSE_SECONDS)

    def _note(self, changes: Sequence[feed.Change]) -> None:
        if len(self._waiting) > MOST_WAITING * 10:
            self._waiting.clear()  # Redis is slower than we change; the feed is enough
        self._waiting += changes
        self._wake.set()

    async def _announce(self, changes: Sequence[feed.Change]) -> None:
        await self._shared.forget([(change.target_id, change.version) for change in changes])
        for begin in range(0, len(changes), MOST_WAITING):
            some = [[change.target_id, change.version, list(change.names)] for change in changes[begin : begin + MOST_WAITING]]
            await self._redis.ask("PUBLISH", CHANNEL, json.dumps([self._me, some], separators=(",", ":")))

    def _read(self, message: bytes) -> list[feed.Change]:
        try:
            sender, changes = json.loads(message)
            if sender == self._me:
                return []
            return [feed.Change(int(target), int(version), tuple(map(str, names))) for target, version, names in changes]
        except (ValueError, TypeError):
            self._log.warning("news_not_understood")
            return []


async def _write(changes: Sequence[feed.Change], write: Write) -> None:
    for change in changes:
        if change.target_id != feed.EVERYTHING:
            for text in (*change.names, encode(change.target_id)):
                await write(text)
