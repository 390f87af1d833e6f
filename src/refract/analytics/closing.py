"""What happens to roll-ups as time goes by: hours that are over go into coarser stretches, and what has had its time is dropped.

Both move in slices under the lock of the state, so that whoever counts clicks meanwhile knows exactly what is done.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Table, delete, func, select

from refract.analytics.cover import State
from refract.analytics.grains import DAY, HOUR, MONTH, QUARTER, SECONDS, SIX_HOURS, moment_of, second_of, start_of
from refract.analytics.models import ClickRollup
from refract.analytics.parts import add, decode
from refract.analytics.rollups import Ledger
from refract.analytics.settling import settle_days
from refract.analytics.sketches import Sketch
from refract.analytics.state import hold, move
from refract.analytics.tally import Slot, Tally
from refract.core.db import WriteSession
from refract.core.runtime import Runtime

GRACE: Final = 120
"""Seconds that an hour stays open after its end: nearly all clicks are there by then."""
SLICE: Final = 100
BREATH_SECONDS: Final = 0.01
_HOUR: Final = SECONDS[HOUR]
_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]


async def close_hours(rt: Runtime) -> int:
    """Close every hour that is over, and settle the days that are; the answer is the number of slices it took."""
    done = 0
    while True:
        until = start_of(HOUR, second_of(rt.clock.now()) - GRACE)
        async with rt.db.write() as session:
            state = await hold(session)
            after = await _close_some(session, state, until)
            if after == state:
                break
            await move(session, after)
        done += 1
        await rt.clock.sleep(BREATH_SECONDS)
    return done + await settle_days(rt)


async def _close_some(session: WriteSession, state: State, until: int) -> State:
    """One slice of targets of the hour in question; the same state when there is nothing to do."""
    if state.closed_target < 0:
        state = await _skip_empty(session, state, until)
    if state.closed_until >= until:
        return state
    hour = state.closed_until
    within = _ROLLUPS.c.grain == QUARTER, _ROLLUPS.c.start >= moment_of(hour), _ROLLUPS.c.start < moment_of(hour + _HOUR)
    some = select(_ROLLUPS.c.target_id).where(*within, _ROLLUPS.c.target_id > state.closed_target).distinct()
    targets = (await session.scalars(some.order_by(_ROLLUPS.c.target_id).limit(SLICE))).all()
    if targets:
        rows = await session.execute(select(_ROLLUPS).where(*within, _ROLLUPS.c.target_id.in_(targets)))
        state = await Ledger().close(session, state, _tallies(rows.all(), hour))
    if len(targets) < SLICE:
        return replace(state, closed_until=hour + _HOUR, closed_target=-1)
    return replace(state, closed_target=targets[-1])


async def _skip_empty(session: WriteSession, state: State, until: int) -> State:
    """Go on to the next hour in which anything happened."""
    later = select(func.min(_ROLLUPS.c.start)).where(_ROLLUPS.c.grain == QUARTER, _ROLLUPS.c.start >= moment_of(state.closed_until))
    first = await session.scalar(later)
    onward = until if first is None else min(until, start_of(HOUR, second_of(first)))
    return replace(state, closed_until=max(state.closed_until, onward))


def _tallies(rows: Iterable[Any], hour: int) -> dict[Slot, Tally]:
    """What each target's quarters of this hour add up to."""
    found: dict[Slot, Tally] = {}
    for row in rows:
        tally = found.setdefault((row.target_id, row.kind, hour), Tally())
        tally.people += row.people
        tally.bots += row.bots
        tally.private += row.private
        add(tally.parts, decode(row.parts))
        if row.visitors:
            tally.sketch = tally.sketch or Sketch()
            tally.sketch.meet(Sketch.read(row.visitors))
    return found


async def drop_old(rt: Runtime) -> int:
    """Move the horizons, then delete what lies behind them; the answer is the number of rows.

    Nothing is dropped from quarters that is not in days, nor from days that is not in months.
    """
    async with rt.db.write() as session:
        state = await hold(session)
        after = _horizons(rt, state)
        if after != state:
            await move(session, after)
    dropped = 0
    for grain in (QUARTER, HOUR, SIX_HOURS, DAY, MONTH):
        while number := await _drop_some(rt, grain):
            dropped += number
            await rt.clock.sleep(BREATH_SECONDS)
    return dropped


def _horizons(rt: Runtime, state: State) -> State:
    now, kept = rt.clock.now(), rt.settings
    quarters = min(second_of(now - timedelta(days=kept.stats_quarter_days)), state.closed_until)
    quarters = max(state.quarters_from, start_of(DAY, max(quarters, 0)))
    days = min(second_of(now - timedelta(days=kept.stats_day_days)), quarters)
    days = max(state.days_from, start_of(MONTH, max(days, 0)))
    months = min(second_of(now - timedelta(days=kept.stats_month_days)), days)
    months = max(state.months_from, start_of(MONTH, max(months, 0)))
    return replace(state, quarters_from=quarters, days_from=days, months_from=months)


async def _drop_some(rt: Runtime, grain: int) -> int:
    """Delete a slice of the oldest rows. What leaves the months is in no roll-up any more, and is noted as such."""
    async with rt.db.write() as session:
        state = await hold(session)
        old = _ROLLUPS.c.grain == grain, _ROLLUPS.c.start < moment_of(state.kept_from(grain))
        oldest = select(_ROLLUPS.c.start, _ROLLUPS.c.target_id, _ROLLUPS.c.people + _ROLLUPS.c.bots).where(*old)
        rows = list((await session.execute(oldest.order_by(_ROLLUPS.c.start, _ROLLUPS.c.target_id).limit(SLICE * 5))).all())
        if not rows:
            return 0
        first = rows[0].start
        same = [row for row in rows if row.start == first]
        if len(same) == len(rows):  # perhaps not all kinds of the last target
            same = [row for row in rows if row.target_id < rows[-1].target_id] or rows
        targets = sorted({row.target_id for row in same})
        gone = _ROLLUPS.c.grain == grain, _ROLLUPS.c.start == first, _ROLLUPS.c.target_id.in_(targets)
        if grain == MONTH:
            clicks = await session.scalar(select(func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)).where(*gone))
            await move(session, replace(state, outlived=state.outlived + int(clicks or 0)))
        await session.execute(delete(_ROLLUPS).where(*gone))
        return len(same)
