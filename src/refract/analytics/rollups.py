"""Roll-ups: what a batch adds up to is added to what is there.

Clicks go to the quarter hour they happened in. Hours that are over are *closed*: added to coarser stretches too, by a job.
What comes late for a closed hour is added to all of them at once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from refract.analytics.cover import State
from refract.analytics.grains import COARSE, DAY, MONTH, QUARTER, start_of
from refract.analytics.parts import Parts, add, decode, encode, limited
from refract.analytics.sketches import Sketch
from refract.analytics.store import RollupKey, load_rollups, save_rollups
from refract.analytics.tally import Slot, Tally
from refract.core.db import WriteSession

MOST_REMEMBERED: Final = 8192
_SLICE: Final = 128


class Bucket:
    """One row of roll-ups, unpacked."""

    __slots__ = ("bots", "parts", "people", "private", "sketch", "uniques")

    def __init__(self, people: int = 0, bots: int = 0, private: int = 0, uniques: int = 0) -> None:
        self.people = people
        self.bots = bots
        self.private = private
        self.uniques = uniques
        self.sketch: Sketch | None = None
        self.parts: Parts = {}


class Ledger:
    """The roll-ups, for who holds the lock on their state. It remembers what it wrote for as long as nobody else writes."""

    def __init__(self) -> None:
        self._known: dict[RollupKey, Bucket] = {}
        self._turn = -1

    def forget(self) -> None:
        """For when a transaction failed, or nobody knows whether it did."""
        self._known.clear()
        self._turn = -1

    async def add(self, session: WriteSession, state: State, tallies: Mapping[Slot, Tally]) -> State:
        """Add tallies of clicks; the answer is the state to be noted."""
        planned = {slot: _grains_of(state, slot) for slot in tallies}
        outlived = sum(tallies[slot].people + tallies[slot].bots for slot, grains in planned.items() if not grains)
        await self._apply(session, state, tallies, planned)
        self._turn = state.turn + 1
        state = replace(state, turn=self._turn, outlived=state.outlived + outlived)
        late = [start_of(DAY, slot[2]) for slot, grains in planned.items() if len(grains) > 1]
        return _unsettled(state, min(late)) if late else state

    async def close(self, session: WriteSession, state: State, tallies: Mapping[Slot, Tally]) -> State:
        """Add what whole hours hold to the coarser stretches."""
        planned = {slot: _kept(state, slot, COARSE) for slot in tallies}
        await self._apply(session, state, tallies, planned)
        self._turn = state.turn + 1
        return replace(state, turn=self._turn)

    async def _apply(
        self, session: WriteSession, state: State, tallies: Mapping[Slot, Tally], planned: Mapping[Slot, list[RollupKey]]
    ) -> None:
        if state.turn != self._turn or len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        touched = sorted({key for keys in planned.values() for key in keys})
        await self._load(session, touched)
        for number, (slot, keys) in enumerate(planned.items()):
            self._merge(tallies[slot], keys)
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)  # others answer requests meanwhile
        rows = []
        for number, key in enumerate(touched):
            rows.append(self._row(key))
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
        if rows:
            await save_rollups(session, rows)

    async def _load(self, session: WriteSession, keys: Iterable[RollupKey]) -> None:
        missing: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for key in keys:
            if key not in self._known:
                target, *stretch = key
                missing[tuple(stretch)].append(target)  # type: ignore[index]
                self._known[key] = Bucket()
        for (kind, grain, start), targets in missing.items():
            for target, *figures in await load_rollups(session, kind, grain, start, targets):
                self._known[target, kind, grain, start] = _bucket(*figures)

    def _merge(self, tally: Tally, keys: Iterable[RollupKey]) -> None:
        more_in_day = 0
        for key in keys:  # the day before its month
            bucket = self._known[key]
            bucket.people += tally.people
            bucket.bots += tally.bots
            bucket.private += tally.private
            add(bucket.parts, tally.parts)
            bucket.parts = limited(bucket.parts)
            if key[2] == MONTH:
                bucket.uniques += more_in_day
            elif tally.visitors or tally.sketch is not None:
                before = bucket.uniques
                _meet(bucket, tally)
                more_in_day = bucket.uniques - before if key[2] == DAY else more_in_day

    def _row(self, key: RollupKey) -> tuple[Any, ...]:
        bucket = self._known[key]
        visitors = bucket.sketch.write() if bucket.sketch is not None else None
        packed = encode(bucket.parts, pack=key[2] != QUARTER)
        return (*key, bucket.people, bucket.bots, bucket.private, bucket.uniques, visitors, packed)


def _bucket(people: int, bots: int, private: int, uniques: int, visitors: bytes | None, parts: bytes | None) -> Bucket:
    bucket = Bucket(people, bots, private, uniques)
    bucket.sketch = Sketch.read(visitors) if visitors else None
    bucket.parts = decode(parts)
    return bucket


def _meet(bucket: Bucket, tally: Tally) -> None:
    if bucket.sketch is None:
        bucket.sketch = Sketch()
    if tally.sketch is not None:
        bucket.sketch.meet(tally.sketch)
    for visitor in tally.visitors:
        bucket.sketch.update(visitor)
    bucket.uniques = bucket.sketch.size()


def _unsettled(state: State, day: int) -> State:
    """Somebody came late to this day: it is to be looked at again."""
    if day < state.quarters_from or day > state.settled_until:
        return state
    return replace(state, settled_until=day, settled_target=-1)


def _grains_of(state: State, slot: Slot) -> list[RollupKey]:
    """Where clicks of this slot belong; nowhere when every roll-up of that time is gone."""
    target, kind, quarter = slot
    if quarter >= state.closed_for(target):  # nearly always; an open hour is never too old
        return [(target, kind, QUARTER, quarter)]
    return _kept(state, slot, (QUARTER, *COARSE))


def _kept(state: State, slot: Slot, grains: Iterable[int]) -> list[RollupKey]:
    target, kind, quarter = slot
    starts = ((grain, start_of(grain, quarter)) for grain in grains)
    return [(target, kind, grain, start) for grain, start in starts if start >= state.kept_from(grain)]
