"""Folding: adding open quarter hours to packs, or to the roll-ups of all grains.

A UTC day of a target is in the pack of its month while that has room. From then on it has rows of
all grains.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.rollups.granularity import (
    COARSE_GRAINS,
    DAY,
    HOUR,
    MONTH,
    QUARTER,
    start_of,
)
from refract.clicks.rollups.pack_updates import PackUpdate
from refract.clicks.rollups.rows import MIN_GROUP_KIND, RollupRow, add_delta, decode_row
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.rollups.store import RollupKey, load_rollups, save_rollups
from refract.core.db.session import WriteSession

MAX_CACHED_ROWS: Final = 8192
_ROWS_PER_TURN: Final = 128
_CACHED_GRAINS: Final = (DAY, MONTH)


class RollupFolder:
    """Adds quarter hours to roll-ups, for the holder of the lock on their state.

    Days and months stay decoded for as long as no other process writes.
    """

    def __init__(self) -> None:
        self._rows: dict[RollupKey, RollupRow] = {}
        self._turn = -1

    async def add_quarters(
        self,
        session: WriteSession,
        state: RollupProgress,
        quarters: Mapping[RollupSlot, RollupDelta],
    ) -> RollupProgress:
        """Add quarter hours where their days are; return the progress to be saved."""
        if state.turn != self._turn or len(self._rows) > MAX_CACHED_ROWS:
            self._rows.clear()
        quarters = await self._pack_quarters(session, state, quarters)
        hours = _sum_by_hour(quarters)
        planned = [
            (delta, _list_kept_keys(state, slot, (QUARTER,))) for slot, delta in quarters.items()
        ]
        planned += [
            (delta, _list_kept_keys(state, slot, COARSE_GRAINS)) for slot, delta in hours.items()
        ]
        await self._apply_deltas(session, planned)
        self._turn = state.turn + 1
        outlived = sum(
            delta.people + delta.bots
            for slot, delta in hours.items()
            if start_of(MONTH, slot[2]) < state.months_from and slot[1] < MIN_GROUP_KIND
        )
        state = replace(state, turn=self._turn, outlived=state.outlived + outlived)
        return _reopen_day(state, {start_of(DAY, slot[2]) for slot in hours})

    async def _pack_quarters(
        self,
        session: WriteSession,
        state: RollupProgress,
        quarters: Mapping[RollupSlot, RollupDelta],
    ) -> dict[RollupSlot, RollupDelta]:
        """Add quarter hours to packs; return those of days that have rows, or get them now.

        Groups have many clicks, and no packs.
        """
        days: dict[RollupSlot, dict[int, RollupDelta]] = defaultdict(dict)
        left: dict[RollupSlot, RollupDelta] = {}
        for (target, kind, start), delta in quarters.items():
            if kind >= MIN_GROUP_KIND or start_of(MONTH, start) < state.days_from:
                left[target, kind, start] = delta
            else:
                days[target, kind, start_of(DAY, start)][start] = delta
        rows = [(target, kind, DAY, day) for target, kind, day in days]
        await self._load_rows(session, rows)
        packs = PackUpdate()
        await packs.load(session, days)
        for (target, kind, day), deltas in days.items():
            row = self._rows[target, kind, DAY, day]
            has_rows = row.people + row.bots > 0
            if not has_rows and packs.append(target, kind, day, deltas):
                continue
            removed = {} if has_rows else packs.remove(target, kind, day)
            for start in deltas.keys() | removed.keys():
                into = left[target, kind, start] = RollupDelta()
                for source in (deltas, removed):
                    if start in source:
                        add_delta(into, source[start])
        await packs.save(session)
        return left

    async def _apply_deltas(
        self, session: WriteSession, planned: list[tuple[RollupDelta, list[RollupKey]]]
    ) -> None:
        touched = sorted({key for _, keys in planned for key in keys})
        await self._load_rows(session, touched)
        for number, (delta, keys) in enumerate(planned, 1):
            self._merge_delta(delta, keys)
            if number % _ROWS_PER_TURN == 0:
                await asyncio.sleep(0)  # let requests be answered
        rows = []
        for number, key in enumerate(touched, 1):
            rows.append((*key, *self._rows[key].encode(key[1], pack=key[2] != QUARTER)))
            if number % _ROWS_PER_TURN == 0:
                await asyncio.sleep(0)
        if rows:
            await save_rollups(session, rows)
        for key in touched:
            if key[2] not in _CACHED_GRAINS:
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
                self._rows[target, kind, grain, start] = decode_row(*figures)

    def _merge_delta(self, delta: RollupDelta, keys: Iterable[RollupKey]) -> None:
        more_in_day = 0
        for key in keys:  # the day comes before its month
            row = self._rows[key]
            row.add_clicks(delta)
            if key[2] == MONTH:
                row.uniques += more_in_day + delta.uniques
            else:
                more = row.add_visitors(delta)
                more_in_day = more if key[2] == DAY else more_in_day


def _sum_by_hour(quarters: Mapping[RollupSlot, RollupDelta]) -> dict[RollupSlot, RollupDelta]:
    hours: dict[RollupSlot, RollupDelta] = defaultdict(RollupDelta)
    for (target, kind, start), delta in quarters.items():
        add_delta(hours[target, kind, start_of(HOUR, start)], delta)
    return hours


def _reopen_day(state: RollupProgress, days: Iterable[int]) -> RollupProgress:
    """Finalize again from the first of these days that was finalized, after late clicks."""
    late = [day for day in days if state.quarters_from <= day <= state.settled_until]
    return replace(state, settled_until=min(late), settled_target=-1) if late else state


def _list_kept_keys(
    state: RollupProgress, slot: RollupSlot, grains: Iterable[int]
) -> list[RollupKey]:
    target, kind, start = slot
    starts = ((grain, start_of(grain, start)) for grain in grains)
    return [
        (target, kind, grain, start)
        for grain, start in starts
        if start >= state.get_kept_from(grain)
    ]
