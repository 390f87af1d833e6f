"""Days that are over get their edges, and their most frequent values, a slice of targets at a time.

They are worked out beside the clicks that come meanwhile, without the lock of the state. Clicks that came late make a day's edges say
nothing, since it has more clicks than they were made of, and move the state back to that day.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Table, bindparam, func, or_, select, update

from refract.analytics import edges, tops
from refract.analytics.cover import State
from refract.analytics.grains import DAY, QUARTER, SECONDS, moment_of, second_of, start_of
from refract.analytics.models import ClickRollup
from refract.analytics.parts import decode
from refract.analytics.state import hold, move, state_of
from refract.core.db import ReadSession, WriteSession
from refract.core.runtime import Runtime

SLICE: Final = 25
BREATH_SECONDS: Final = 0.01
_DAY: Final = SECONDS[DAY]
_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_C: Final = _ROLLUPS.c
_NOTE: Final = (
    update(_ROLLUPS)
    .where(_C.target_id == bindparam("target"), _C.kind == bindparam("its_kind"), _C.grain == DAY, _C.start == bindparam("day"))
    .values(settled_clicks=bindparam("clicks"), edges=bindparam("its_edges"), tops=bindparam("its_tops"))
)


async def settle_days(rt: Runtime) -> int:
    """Settle every day that is over; the answer is the number of slices it took."""
    done = 0
    while True:
        async with rt.db.read() as looking:
            seen = await state_of(looking)
            day, targets = await _next_targets(looking, seen)
            quarters = await _quarters(looking, day, targets) if targets else []
            parts = await _parts(looking, day, targets) if targets else {}
        if day >= _end(seen):
            if day > seen.settled_until:
                await _go_on(rt, seen, day, -1, [])
            return done
        notes = await asyncio.to_thread(_notes, day, quarters, parts)
        if len(targets) < SLICE:
            await _go_on(rt, seen, day + _DAY, -1, notes)
        else:
            await _go_on(rt, seen, day, targets[-1], notes)
        done += 1
        await rt.clock.sleep(BREATH_SECONDS)


def _end(state: State) -> int:
    return start_of(DAY, state.closed_until)


async def _next_targets(session: ReadSession, state: State) -> tuple[int, list[int]]:
    """The day in question, and those of its targets whose turn it is."""
    day = state.settled_until
    if state.settled_target < 0:
        begin = max(day, state.quarters_from)
        first = await session.scalar(select(func.min(_C.start)).where(_C.grain == DAY, _C.start >= moment_of(begin)))
        day = max(begin, _end(state) if first is None else min(_end(state), second_of(first)))
    if day >= _end(state):
        return day, []
    changed = or_(_C.settled_clicks.is_(None), _C.settled_clicks != _C.people + _C.bots)
    some = select(_C.target_id).where(_C.grain == DAY, _C.start == moment_of(day), _C.target_id > state.settled_target, changed)
    return day, list((await session.scalars(some.distinct().order_by(_C.target_id).limit(SLICE))).all())


async def _quarters(session: ReadSession, day: int, targets: list[int]) -> list[Any]:
    columns = _C.target_id, _C.kind, _C.start, _C.people, _C.bots, _C.visitors
    within = _C.grain == QUARTER, _C.start >= moment_of(day), _C.start < moment_of(day + _DAY)
    return list((await session.execute(select(*columns).where(_C.target_id.in_(targets), *within))).all())


async def _parts(session: ReadSession, day: int, targets: list[int]) -> dict[tuple[int, int], bytes | None]:
    these = _C.target_id.in_(targets), _C.grain == DAY, _C.start == moment_of(day)
    return {(row.target_id, row.kind): row.parts for row in await session.execute(select(_C.target_id, _C.kind, _C.parts).where(*these))}


def _notes(day: int, rows: Iterable[Any], parts: Mapping[tuple[int, int], bytes | None]) -> list[dict[str, Any]]:
    by_target: dict[tuple[int, int], list[edges.Quarter]] = defaultdict(list)
    for row in rows:
        number = (second_of(row.start) - day) // SECONDS[QUARTER]
        by_target[row.target_id, row.kind].append(edges.Quarter(number, row.people, row.bots, row.visitors))
    return [
        {
            "target": target, "its_kind": kind, "day": moment_of(day), "its_edges": edges.encode(quarters),
            "its_tops": tops.encode(decode(parts.get((target, kind)))),
            "clicks": sum(quarter.people + quarter.bots for quarter in quarters),
        }
        for (target, kind), quarters in sorted(by_target.items())
    ]  # fmt: skip


async def _go_on(rt: Runtime, seen: State, day: int, target: int, notes: list[dict[str, Any]]) -> None:
    """Write down what was found; who came late meanwhile has moved the state back, and there it stays."""
    async with rt.db.write() as session:
        state = await hold(session)
        await _write(session, notes)
        if (state.settled_until, state.settled_target) == (seen.settled_until, seen.settled_target):
            await move(session, replace(state, settled_until=day, settled_target=target))


async def _write(session: WriteSession, notes: list[dict[str, Any]]) -> None:
    if notes:
        await (await session.connection()).execute(_NOTE, notes)
