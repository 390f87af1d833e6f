"""Who knows the names when the table does not: what is known to be missing, a cache that processes share, the database.

A name that many ask for at once is read once. What is read notes when the reading began, so that nothing forgotten meanwhile is kept.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from refract.core.errors import StoreUnavailable, Unavailable
from refract.core.ids import decode
from refract.limits.buckets import MemoryBuckets
from refract.names.grammar import name_key
from refract.redirect.lookup import DatabaseLookup
from refract.redirect.resolve import Found, Visitor
from refract.redirect.table import Negatives

ASK_SECONDS = 2.0
"""How long the database may take before it counts as away."""

AWAY_SECONDS = 0.5
"""Once it was away, nobody waits for it again before this has passed."""

HELPED = 50
HELPED_PER_SECOND = 10

LINGER_TURNS = 5
"""An answer needs a few turns of the event loop to reach the table; who asks meanwhile is given it too."""


class SharedTier(Protocol):
    """A cache between this process and the database that other processes fill too. It never holds a restricted link."""

    async def get(self, text: str, *, whatever: bool = False) -> Found | None:
        """What is known of a text; None when the database must be asked, also because the cache does not answer in time.

        `whatever` asks for what is there, old or not, since the database cannot be asked.
        """

    async def put(self, text: str, found: Found) -> None:
        """Keep what the database said, if it is for everybody."""


def facts(text: str) -> tuple[bytes, ...]:
    """What must be known for a text to be missing: no such name in any spelling, and no link with exactly this code."""
    named = no_name(name_key(text))
    return (named,) if decode(text) is None else (named, no_code(text))


def no_name(key: str) -> bytes:
    return b"n" + key.encode("utf-8", "surrogateescape")


def no_code(code: str) -> bytes:
    return b"c" + code.encode("utf-8", "surrogateescape")


class Tiers:
    """Looks a name or a code up, as cheaply as it can be known."""

    def __init__(self, database: DatabaseLookup, negatives: Negatives, shared: SharedTier | None = None) -> None:
        self.queries = 0
        self.known_missing = 0
        self.failed = 0
        self._database = database
        self._negatives = negatives
        self._now: Callable[[], float] = negatives.now
        self._shared = shared
        self._flights: dict[str, asyncio.Task[Found | None]] = {}
        self._away_until = float("-inf")
        self._help = MemoryBuckets(size=HELPED, per_second=HELPED_PER_SECOND)

    async def find(self, text: str) -> Found | None:
        if all(fact in self._negatives for fact in facts(text)):
            self.known_missing += 1
            return None
        flight = self._flights.get(text)
        if flight is None:
            if self._shared is None and self._now() < self._away_until:
                raise StoreUnavailable
            flight = self._flights[text] = asyncio.create_task(self._read(text), name="redirect-read")
            flight.add_done_callback(partial(self._landed, text))
        return await asyncio.shield(flight)  # whoever gives up leaves the others their answer

    def forget_flights(self) -> None:
        """Something changed: who asks from now on must not be given what was read before."""
        self._flights.clear()

    async def share(self, text: str) -> None:
        """Read a name or a code again, for everybody's next question."""
        if self._shared is None:
            return
        began = self._now()
        with contextlib.suppress(Unavailable):
            found = await self._ask_database(text, began)
            if found is not None:
                await self._shared.put(text, found)

    async def may_open(self, found: Found, visitor: Visitor) -> bool:
        return await self._database.may_open(found, visitor)

    async def suggest(self, text: str, visitor: Visitor | None) -> list[str]:
        """Looking for what was meant costs far more than the answer itself: a flood of strangers is not helped to spell."""
        if visitor is None and self._help.take("strangers", self._now()) < 0:
            return []
        try:
            return await self._database.suggest(text, visitor)
        except Unavailable:
            return []

    def _landed(self, text: str, flight: asyncio.Task[Found | None]) -> None:
        well = not flight.cancelled() and flight.exception() is None
        if not well:
            self.failed += not flight.cancelled()
        self._linger(text, flight, LINGER_TURNS if well and flight.result() is not None else 0)

    def _linger(self, text: str, flight: asyncio.Task[Found | None], turns: int) -> None:
        if self._flights.get(text) is not flight:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._linger, text, flight, turns - 1)
        else:
            del self._flights[text]

    async def _read(self, text: str) -> Found | None:
        began = self._now()
        if self._shared is not None and (found := await self._shared.get(text)) is not None:
            return replace(found, asked_at=began)
        try:
            found = await self._ask_database(text, began)
        except StoreUnavailable:
            found = await self._shared.get(text, whatever=True) if self._shared is not None else None
            if found is None:
                raise
            return replace(found, asked_at=began)
        if found is None:
            for fact in facts(text):
                self._negatives.add(fact, began)
        elif self._shared is not None:
            await self._shared.put(text, found)
        return found

    async def _ask_database(self, text: str, began: float) -> Found | None:
        if self._now() < self._away_until:
            raise StoreUnavailable
        self.queries += 1
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await self._database.find(text, began)
        except (StoreUnavailable, TimeoutError) as error:
            self._away_until = self._now() + AWAY_SECONDS
            raise StoreUnavailable from error
