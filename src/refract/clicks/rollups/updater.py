"""Updates of open roll-ups by batches of clicks.

Clicks are added to the quarter hour in which they happened, however late they come. A job moves the
quarter hours of past hours into the roll-ups of all grains, see `refract.clicks.rollups.folding`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.rollups.rows import RollupRow, decode_row
from refract.clicks.rollups.store import load_open_rollups, save_open_rollups
from refract.clicks.rollups.writers import WriterClaim
from refract.core.db.session import WriteSession

MAX_CACHED_ROWS: Final = 8192
_ROWS_PER_TURN: Final = 128


class RollupUpdater:
    """Updates open roll-ups, at the same time as those of other processes.

    It caches the rows it wrote for as long as no other process changes them.
    """

    def __init__(self) -> None:
        self._rows: dict[RollupSlot, RollupRow] = {}
        self._claim = WriterClaim()

    def reset(self) -> None:
        """Drop the cache, after a transaction that failed or whose outcome is unknown."""
        self._rows.clear()
        self._claim = WriterClaim()

    async def add_clicks(
        self, session: WriteSession, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> None:
        """Add deltas of clicks. Call it late in a transaction, since it holds a lock until then."""
        writer = await self._claim.lock(session)
        if not self._claim.is_current(writer) or len(self._rows) > MAX_CACHED_ROWS:
            self._rows.clear()
        slots = sorted(tallies)
        await self._load_rows(session, writer.number, slots)
        stored = []
        for number, slot in enumerate(slots, 1):
            row, delta = self._rows[slot], tallies[slot]
            row.add_clicks(delta)
            row.add_visitors(delta)
            stored.append((writer.number, *slot, *row.encode(pack=False)))
            if number % _ROWS_PER_TURN == 0:
                await asyncio.sleep(0)  # let requests be answered
        await save_open_rollups(session, stored)
        await self._claim.save(session, writer, min(start for _, _, start in slots))

    async def _load_rows(
        self, session: WriteSession, writer: int, slots: Iterable[RollupSlot]
    ) -> None:
        missing: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for slot in slots:
            if slot not in self._rows:
                target, kind, start = slot
                missing[kind].append((start, target))
                self._rows[slot] = RollupRow()
        for kind, wanted in missing.items():
            for start, target, *figures in await load_open_rollups(session, writer, kind, wanted):
                self._rows[target, kind, start] = decode_row(*figures)
