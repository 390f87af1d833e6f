"""Who must forget: news of changed links and names, from this process at once and from the others by the feed in the database.

Numbers in the feed are given before commits, so a lower one may show up after a higher: gaps are looked for again until nobody can
still be about to commit. While the feed cannot be read nothing kept is trusted.
"""

import asyncio
import contextlib
import json
from collections.abc import Iterable, Sequence

import structlog

from refract.core.direct import Direct, Row
from refract.core.errors import Unavailable
from refract.core.ids import encode
from refract.core.listen import listen
from refract.core.runtime import Runtime
from refract.links import feed
from refract.names.grammar import name_key
from refract.redirect.shared import SharedLinks
from refract.redirect.table import Negatives, Table
from refract.redirect.tiers import Tiers, no_code, no_name

POLL_SECONDS = 0.2
LISTENING_POLL_SECONDS = 0.5
"""Where PostgreSQL wakes us, this only finds out whether it still answers."""

BREATH_SECONDS = 0.02
ANSWER_SECONDS = 1.0
LOST_SECONDS = 1.0
TRUST_SECONDS = 4.0
"""What is kept ready counts for so long after the feed was last looked at; longer only a process is silent that was asleep itself."""

LOOK_BACK_SECONDS = 30.0
MOST_ROWS = 10_000
MOST_GAPS = 500

_NEWEST = "SELECT COALESCE(MAX(number), 0) FROM link_feed"
_SINCE = "SELECT number, target_id, version, names FROM link_feed WHERE number >= ?"
_ORDER = f" ORDER BY number LIMIT {MOST_ROWS + 1}"
_LATELY = f"SELECT target_id, version FROM link_feed ORDER BY number DESC LIMIT {MOST_ROWS + 1}"  # noqa: S608 - a number of ours
News = tuple[int, int, Iterable[str]]
"""Target, version, names."""


class Bus:
    """Keeps what one process has ready in step with the database."""

    def __init__(
        self, rt: Runtime, reader: Direct, table: Table, negatives: Negatives, tiers: Tiers, shared: SharedLinks | None = None
    ) -> None:
        self.forgotten = 0
        self.lost = False
        self._rt = rt
        self._reader = reader
        self._table = table
        self._negatives = negatives
        self._tiers = tiers
        self._shared = shared
        self._position: int | None = None
        self._gaps: dict[int, float] = {}
        self._heard = self._marked = rt.clock.monotonic()
        self._wake = asyncio.Event()
        self._log = structlog.get_logger("refract.bus")

    async def run(self, ready: asyncio.Event) -> None:
        """Until cancelled. `ready` is set once the feed was looked at for the first time, whether or not it could be read."""
        listening = self._rt.db.dialect == "postgresql"
        ear = asyncio.create_task(listen(self._rt.db, feed.TOPIC, self._wake.set), name="redirect-listen") if listening else None
        try:
            while True:
                well = await self.look()
                ready.set()
                await asyncio.sleep(BREATH_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LISTENING_POLL_SECONDS if listening and well else POLL_SECONDS):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            if ear is not None:
                ear.cancel()
                await asyncio.gather(ear, return_exceptions=True)

    def told(self, changes: Sequence[feed.Change]) -> None:
        """News of this process, the moment it is committed."""
        self._forget((change.target_id, change.version, change.names) for change in changes)

    async def look(self) -> bool:
        """Read what is new in the feed; False when it cannot be read."""
        now, began = self._rt.clock.monotonic, self._rt.clock.now_ns()  # a process may fall asleep between question and answer
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await (self._begin() if self._position is None else self._follow(self._position))
        except (Unavailable, TimeoutError) as error:
            if self._position is None or now() - self._heard >= LOST_SECONDS:
                self._lose(str(error))
            return False
        self._heard = now()
        self._trust(began)
        if self._shared is not None:
            self._shared.deaf = False
        if self.lost:
            self.lost = False
            self._log.info("changes_heard_again")
        return True

    async def _begin(self) -> None:
        """From here on nothing is missed; what was read before may be old."""
        (newest,) = (await self._reader.rows(_NEWEST))[0]
        await self._catch_up()
        self._position = int(newest)
        self._gaps.clear()
        self._doubt()

    async def _catch_up(self) -> None:
        """What others have put into the shared cache may be older than a change that was made before we began to listen."""
        if self._shared is None:
            return
        rows = await self._reader.rows(_LATELY)
        if len(rows) > MOST_ROWS:
            self._shared.missed()
        for target_id, version in rows:
            self._shared.heard(target_id, version)

    async def _follow(self, position: int) -> None:
        gaps = f" OR number IN ({', '.join(map(str, self._gaps))})" if self._gaps else ""
        rows = await self._reader.rows(_SINCE + gaps + _ORDER, position)
        numbers = {int(row[0]) for row in rows}
        if len(rows) > MOST_ROWS or (position and position not in numbers):
            # Too much to go through, or the newest row we knew is gone: it is always kept, so we were away for longer than the feed is.
            self._log.warning("changes_missed", position=position)
            self._forget([(feed.EVERYTHING, 0, ())])
            await self._begin()
            return
        self._forget((row[1], row[2], _names(row)) for row in rows if row[0] > position or row[0] in self._gaps)
        self._note_gaps(position, numbers)

    def _note_gaps(self, position: int, numbers: set[int]) -> None:
        now = self._rt.clock.monotonic()
        newest = max(numbers, default=position)
        self._gaps = {gap: since for gap, since in self._gaps.items() if gap not in numbers and now - since < LOOK_BACK_SECONDS}
        if newest - position > len(numbers) + MOST_GAPS:
            self._gaps |= dict.fromkeys(range(newest - MOST_GAPS, newest), now)
        else:
            self._gaps |= {number: now for number in range(position + 1, newest) if number not in numbers}
        self._position = newest

    def _forget(self, changes: Iterable[News]) -> None:
        heard = False
        for target_id, version, names in changes:
            heard = True
            self.forgotten += 1
            if self._shared is not None:
                self._shared.heard(target_id, version)
            if target_id == feed.EVERYTHING:
                self._table.forget_all()
                self._negatives.forget_all()
                continue
            self._table.forget(target_id)
            self._negatives.forget(no_code(encode(target_id)))
            for key in map(name_key, names):
                self._table.forget_key(key)
                self._negatives.forget(no_name(key))
        if heard:
            self._tiers.forget_flights()

    def _lose(self, reason: str) -> None:
        """Ask again for everything that is hit, now and once a second until the feed is back."""
        if not self.lost:
            self.lost = True
            if self._shared is not None:
                self._shared.deaf = True
            self._log.warning("changes_not_heard", reason=reason)
            self._doubt()
        elif self._rt.clock.monotonic() - self._marked >= LOST_SECONDS:
            self._doubt()

    def _trust(self, since_ns: int) -> None:
        self._table.trusted_until_ns = since_ns + int(TRUST_SECONDS * 1e9)

    def _doubt(self) -> None:
        self._marked = self._rt.clock.monotonic()
        self._table.mark_stale()
        self._trust(self._rt.clock.now_ns())  # what is taken in from now on
        self._negatives.forget_all()
        self._tiers.forget_flights()


def _names(row: Row) -> list[str]:
    names = row[3]
    found: list[str] = json.loads(names) if isinstance(names, str | bytes) else names
    return found
