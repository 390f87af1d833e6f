"""Updates of roll-ups by batches of clicks.

Clicks are added to the quarter hour in which they happened. Hours that are over are *closed* by a
job: added to coarser periods too. Late clicks of a closed hour are added to all of them
immediately.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.rollups.breakdowns import (
    BreakdownCounts,
    add_counts,
    decode_counts,
    encode_counts,
    limit_values,
)
from refract.clicks.rollups.granularity import COARSE_GRAINS, DAY, HOUR, MONTH, QUARTER, start_of
from refract.clicks.rollups.sketches import VisitorSketch
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.rollups.store import RollupKey, load_rollups, save_rollups
from refract.core.db.session import WriteSession

MAX_CACHED_ROWS: Final = 8192
_ROWS_PER_TURN: Final = 128


class RollupRow:
    """A decoded row of roll-ups."""

    __slots__ = ("bots", "parts", "people", "private", "sketch", "uniques")

    def __init__(self, people: int = 0, bots: int = 0, private: int = 0, uniques: int = 0) -> None:
        self.people = people
        self.bots = bots
        self.private = private
        self.uniques = uniques
        self.sketch: VisitorSketch | None = None
        self.parts: BreakdownCounts = {}


class RollupUpdater:
    """Updates roll-ups, for the holder of the lock on their state.

    It caches the rows it wrote for as long as no other process writes.
    """

    def __init__(self) -> None:
        self._rows: dict[RollupKey, RollupRow] = {}
        self._turn = -1

    def reset(self) -> None:
        """Drop the cache, after a transaction that failed or whose outcome is unknown."""
        self._rows.clear()
        self._turn = -1

    async def add_clicks(
        self,
        session: WriteSession,
        state: RollupProgress,
        tallies: Mapping[RollupSlot, RollupDelta],
    ) -> RollupProgress:
        """Add deltas of clicks; return the progress to be saved."""
        planned = {slot: _plan_keys(state, slot) for slot in tallies}
        outlived = sum(
            tallies[slot].people + tallies[slot].bots
            for slot, grains in planned.items()
            if not grains
        )
        await self._apply_deltas(session, state, tallies, planned)
        self._turn = state.turn + 1
        state = replace(state, turn=self._turn, outlived=state.outlived + outlived)
        late = [start_of(DAY, slot[2]) for slot, grains in planned.items() if len(grains) > 1]
        return _reopen_day(state, min(late)) if late else state

    async def close_hours(
        self,
        session: WriteSession,
        state: RollupProgress,
        tallies: Mapping[RollupSlot, RollupDelta],
    ) -> RollupProgress:
        """Add the clicks of whole hours to the coarser periods.

        Each hour of a target is closed once, so its own row does not exist yet.
        """
        planned = {slot: _list_kept_keys(state, slot, COARSE_GRAINS) for slot in tallies}
        await self._apply_deltas(session, state, tallies, planned, new_grain=HOUR)
        self._turn = state.turn + 1
        return replace(state, turn=self._turn)

    async def _apply_deltas(
        self,
        session: WriteSession,
        state: RollupProgress,
        tallies: Mapping[RollupSlot, RollupDelta],
        planned: Mapping[RollupSlot, list[RollupKey]],
        *,
        new_grain: int | None = None,
    ) -> None:
        if state.turn != self._turn or len(self._rows) > MAX_CACHED_ROWS:
            self._rows.clear()
        touched = sorted({key for keys in planned.values() for key in keys})
        await self._load_rows(session, [key for key in touched if key[2] != new_grain])
        new = [key for key in touched if key[2] == new_grain]
        self._rows |= {key: RollupRow() for key in new}
        for number, (slot, keys) in enumerate(planned.items()):
            self._merge_delta(tallies[slot], keys)
            if number % _ROWS_PER_TURN == _ROWS_PER_TURN - 1:
                await asyncio.sleep(0)  # let requests be answered
        rows = []
        for number, key in enumerate(touched):
            rows.append(self._encode_row(key))
            if number % _ROWS_PER_TURN == _ROWS_PER_TURN - 1:
                await asyncio.sleep(0)
        if rows:
            await save_rollups(session, rows)
        for key in new:  # not needed again
            del self._rows[key]

    async def _load_rows(self, session: WriteSession, keys: Iterable[RollupKey]) -> None:
        missing: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for key in keys:
            if key not in self._rows:
                target, kind, grain, start = key
                missing[kind, grain].append((start, target))
                self._rows[key] = RollupRow()
        for (kind, grain), wanted in missing.items():
            for start, target, *figures in await load_rollups(session, kind, grain, wanted):
                self._rows[target, kind, grain, start] = _decode_row(*figures)

    def _merge_delta(self, tally: RollupDelta, keys: Iterable[RollupKey]) -> None:
        more_in_day = 0
        for key in keys:  # the day comes before its month
            bucket = self._rows[key]
            bucket.people += tally.people
            bucket.bots += tally.bots
            bucket.private += tally.private
            add_counts(bucket.parts, tally.parts)
            bucket.parts = limit_values(bucket.parts)
            if key[2] == MONTH:
                bucket.uniques += more_in_day
            elif tally.visitors or tally.sketch is not None:
                before = bucket.uniques
                _merge_visitors(bucket, tally)
                more_in_day = bucket.uniques - before if key[2] == DAY else more_in_day

    def _encode_row(self, key: RollupKey) -> tuple[Any, ...]:
        bucket = self._rows[key]
        visitors = bucket.sketch.to_bytes() if bucket.sketch is not None else None
        packed = encode_counts(bucket.parts, pack=key[2] != QUARTER)
        return (*key, bucket.people, bucket.bots, bucket.private, bucket.uniques, visitors, packed)


def _decode_row(
    people: int, bots: int, private: int, uniques: int, visitors: bytes | None, parts: bytes | None
) -> RollupRow:
    bucket = RollupRow(people, bots, private, uniques)
    bucket.sketch = VisitorSketch.from_bytes(visitors) if visitors else None
    bucket.parts = decode_counts(parts)
    return bucket


def _merge_visitors(bucket: RollupRow, tally: RollupDelta) -> None:
    if bucket.sketch is None:
        bucket.sketch = VisitorSketch()
    if tally.sketch is not None:
        bucket.sketch.merge(tally.sketch)
    bucket.sketch.update(tally.visitors)
    bucket.uniques = bucket.sketch.count()


def _reopen_day(state: RollupProgress, day: int) -> RollupProgress:
    """Finalize this day again, after a late click."""
    if day < state.quarters_from or day > state.settled_until:
        return state
    return replace(state, settled_until=day, settled_target=-1)


def _plan_keys(state: RollupProgress, slot: RollupSlot) -> list[RollupKey]:
    """Return the rows for clicks of this slot; empty if all roll-ups of that time are gone."""
    target, kind, quarter = slot
    if quarter >= state.get_closed_until(target):  # nearly always; an open hour is never too old
        return [(target, kind, QUARTER, quarter)]
    return _list_kept_keys(state, slot, (QUARTER, *COARSE_GRAINS))


def _list_kept_keys(
    state: RollupProgress, slot: RollupSlot, grains: Iterable[int]
) -> list[RollupKey]:
    target, kind, quarter = slot
    starts = ((grain, start_of(grain, quarter)) for grain in grains)
    return [
        (target, kind, grain, start)
        for grain, start in starts
        if start >= state.get_kept_from(grain)
    ]
