"""Updates of open roll-ups by batches of clicks.

Clicks are added to the quarter hour in which they happened, however late they come. A job moves the
quarter hours of past hours into the roll-ups of all grains, see `refract.clicks.rollups.folding`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.rollups.groups import GroupIndex
from refract.clicks.rollups.rows import RollupRow, decode_row
from refract.clicks.rollups.store import load_open_rollups, save_open_rollups
from refract.clicks.rollups.writers import WriterClaim
from refract.core.db.session import ReadSession, WriteSession

MAX_CACHED_ROWS = 4_096
"""Rows of 1.4 kB that are kept, whether they were needed again or not."""
MAX_KEPT_ROWS = 16_384
"""Rows of the last run that are kept beyond that: the next one needs most of them."""
_ROWS_PER_TURN: Final = 128

EncodedRow = tuple[Any, ...]
"""A slot and the values of its row."""


class RollupUpdater:
    """Updates open roll-ups, at the same time as those of other processes.

    It caches the rows it wrote for as long as no other process changes them.
    """

    def __init__(self) -> None:
        self._rows: dict[RollupSlot, RollupRow] = {}
        self._claim = WriterClaim()
        self._prepared: list[EncodedRow] | None = None
        self._groups = GroupIndex()

    def reset(self) -> None:
        """Drop the cache, after a transaction that failed or whose outcome is unknown."""
        self._rows.clear()
        self._prepared = None
        self._claim = WriterClaim()

    async def prepare_clicks(
        self, session: ReadSession, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> None:
        """Do the work of `add_clicks` before its transaction, which then only saves the rows.

        If others change the rows until then, `add_clicks` does it again.
        """
        if self._claim.number is not None:
            self._prepared = await self._merge_deltas(session, self._claim.number, tallies)

    async def add_clicks(
        self, session: WriteSession, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> None:
        """Add deltas of clicks, also to groups of links.

        Call it late in a transaction, since it holds a lock until then.
        """
        writer = await self._claim.lock(session)
        rows, self._prepared = self._prepared, None
        if not self._claim.is_current(writer) or (
            rows and not await self._groups.is_current(session)
        ):
            self._rows.clear()
            rows = None
        if rows is None:
            rows = await self._merge_deltas(session, writer.number, tallies)
        await save_open_rollups(session, [(writer.number, *row) for row in rows])
        await self._claim.save(session, writer, min(start for _, _, start in tallies))

    async def _merge_deltas(
        self, session: ReadSession, writer: int, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> list[EncodedRow]:
        """Add deltas to the cached rows; return the rows to save, in the order of their keys."""
        tallies = await self._groups.add_groups(session, tallies)
        slots = sorted(tallies)
        await self._load_rows(session, writer, slots)
        rows = []
        for number, slot in enumerate(slots, 1):
            row, delta = self._rows[slot], tallies[slot]
            row.add_clicks(delta)
            row.add_visitors(delta)
            rows.append((*slot, *row.encode(slot[1], pack=False)))
            if number % _ROWS_PER_TURN == 0:
                await asyncio.sleep(0)  # let requests be answered
        if len(self._rows) > MAX_CACHED_ROWS:
            kept = slots if len(slots) <= MAX_KEPT_ROWS else []
            self._rows = {slot: self._rows[slot] for slot in kept}
        return rows

    async def _load_rows(
        self, session: ReadSession, writer: int, slots: Iterable[RollupSlot]
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
