"""Compaction and retention of roll-ups.

Hours that are over are added to coarser periods, and expired roll-ups are dropped. Both work in
batches under the lock of the state, so that concurrent writers know exactly what is done.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import Table, delete, func, select

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.models import ClickRollup
from refract.clicks.rollups.breakdowns import add_counts, decode_counts
from refract.clicks.rollups.finalization import finalize_days
from refract.clicks.rollups.granularity import (
    DAY,
    GRAIN_SECONDS,
    HOUR,
    MONTH,
    QUARTER,
    SIX_HOURS,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.sketches import VisitorSketch
from refract.clicks.rollups.state import RollupProgress, lock_progress, save_progress
from refract.clicks.rollups.updater import RollupUpdater
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.slices import run_in_slices, write_in_slices

CLOSE_GRACE_SECONDS: Final = 120
"""Seconds that an hour stays open after its end: nearly all clicks have arrived by then."""
BATCH_SIZE: Final = 100
"""Targets of a busy hour that are closed in one transaction."""
WINDOW_ROWS: Final = 500
"""Quarter hours in one transaction, of as many whole hours as they fill."""
_HOUR_SECONDS: Final = GRAIN_SECONDS[HOUR]
_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]


async def close_hours(rt: Runtime) -> int:
    """Close every hour that is over and finalize the days; return the number of batches."""
    updater = RollupUpdater()  # days and months stay decoded from one batch to the next

    async def close_batch(session: WriteSession) -> bool:
        until = start_of(HOUR, to_seconds(rt.clock.now()) - CLOSE_GRACE_SECONDS)
        state = await lock_progress(session)
        after = await _close_batch(session, state, until, updater)
        if after != state:
            await save_progress(session, after)
        return after != state

    return await write_in_slices(rt, close_batch) + await finalize_days(rt)


async def _close_batch(
    session: WriteSession, state: RollupProgress, until: int, updater: RollupUpdater
) -> RollupProgress:
    """Close whole hours, or a batch of targets of a busy hour; return the same state if none."""
    if state.closed_until >= until:
        return state
    if state.closed_target < 0:
        after = await _close_whole_hours(session, state, until, updater)
        if after != state:
            return after
    return await _close_targets(session, state, updater)


async def _close_whole_hours(
    session: WriteSession, state: RollupProgress, until: int, updater: RollupUpdater
) -> RollupProgress:
    """Close the next hours that have few rows; hours without clicks cost nothing.

    Returns the same state if the next hour has too many rows.
    """
    waiting = select(_ROLLUPS).where(
        _ROLLUPS.c.grain == QUARTER,
        _ROLLUPS.c.start >= to_datetime(state.closed_until),
        _ROLLUPS.c.start < to_datetime(until),
    )
    rows = (await session.execute(waiting.order_by(_ROLLUPS.c.start).limit(WINDOW_ROWS))).all()
    end = until
    if len(rows) == WINDOW_ROWS:  # perhaps not all rows of the last hour
        end = start_of(HOUR, to_seconds(rows[-1].start))
        rows = [row for row in rows if to_seconds(row.start) < end]
    if rows:
        state = await updater.close_hours(session, state, _sum_quarters(rows))
    return replace(state, closed_until=end)


async def _close_targets(
    session: WriteSession, state: RollupProgress, updater: RollupUpdater
) -> RollupProgress:
    """Close a batch of targets of the current hour."""
    hour = state.closed_until
    within = (
        _ROLLUPS.c.grain == QUARTER,
        _ROLLUPS.c.start >= to_datetime(hour),
        _ROLLUPS.c.start < to_datetime(hour + _HOUR_SECONDS),
    )
    pending = (
        select(_ROLLUPS.c.target_id)
        .where(*within, _ROLLUPS.c.target_id > state.closed_target)
        .distinct()
    )
    targets = (
        await session.scalars(pending.order_by(_ROLLUPS.c.target_id).limit(BATCH_SIZE))
    ).all()
    if targets:
        rows = await session.execute(
            select(_ROLLUPS).where(*within, _ROLLUPS.c.target_id.in_(targets))
        )
        state = await updater.close_hours(session, state, _sum_quarters(rows.all()))
    if len(targets) < BATCH_SIZE:
        return replace(state, closed_until=hour + _HOUR_SECONDS, closed_target=-1)
    return replace(state, closed_target=targets[-1])


def _sum_quarters(rows: Iterable[Any]) -> dict[RollupSlot, RollupDelta]:
    """Return the sums of each target's quarter hours, by hour."""
    found: dict[RollupSlot, RollupDelta] = {}
    for row in rows:
        hour = start_of(HOUR, to_seconds(row.start))
        tally = found.setdefault((row.target_id, row.kind, hour), RollupDelta())
        tally.people += row.people
        tally.bots += row.bots
        tally.private += row.private
        add_counts(tally.parts, decode_counts(row.parts))
        if row.visitors:
            tally.sketch = tally.sketch or VisitorSketch()
            tally.sketch.merge(VisitorSketch.from_bytes(row.visitors))
    return found


async def drop_expired_rollups(rt: Runtime) -> int:
    """Advance the horizons, then delete the rows before them; return their number.

    Quarter hours are dropped only if they are in days, and days only if they are in months.
    """
    async with rt.db.write() as session:
        state = await lock_progress(session)
        after = _advance_horizons(rt, state)
        if after != state:
            await save_progress(session, after)
    dropped = 0
    for grain in (QUARTER, HOUR, SIX_HOURS, DAY, MONTH):
        dropped += await run_in_slices(rt, partial(_drop_batch, rt, grain))
    return dropped


def _advance_horizons(rt: Runtime, state: RollupProgress) -> RollupProgress:
    now, kept = rt.clock.now(), rt.settings
    quarters = min(to_seconds(now - timedelta(days=kept.stats_quarter_days)), state.closed_until)
    quarters = max(state.quarters_from, start_of(DAY, max(quarters, 0)))
    days = min(to_seconds(now - timedelta(days=kept.stats_day_days)), quarters)
    days = max(state.days_from, start_of(MONTH, max(days, 0)))
    months = min(to_seconds(now - timedelta(days=kept.stats_month_days)), days)
    months = max(state.months_from, start_of(MONTH, max(months, 0)))
    return replace(state, quarters_from=quarters, days_from=days, months_from=months)


async def _drop_batch(rt: Runtime, grain: int) -> int:
    """Delete a batch of the oldest rows.

    Clicks dropped from the months are in no roll-up any more, and are counted as `outlived`.
    """
    async with rt.db.write() as session:
        state = await lock_progress(session)
        old = _ROLLUPS.c.grain == grain, _ROLLUPS.c.start < to_datetime(state.get_kept_from(grain))
        oldest = select(
            _ROLLUPS.c.start, _ROLLUPS.c.target_id, _ROLLUPS.c.people + _ROLLUPS.c.bots
        ).where(*old)
        rows = list(
            (
                await session.execute(
                    oldest.order_by(_ROLLUPS.c.start, _ROLLUPS.c.target_id).limit(BATCH_SIZE * 5)
                )
            ).all()
        )
        if not rows:
            return 0
        first = rows[0].start
        same = [row for row in rows if row.start == first]
        if len(same) == len(rows):  # perhaps not all kinds of the last target
            same = [row for row in rows if row.target_id < rows[-1].target_id] or rows
        targets = sorted({row.target_id for row in same})
        gone = (
            _ROLLUPS.c.grain == grain,
            _ROLLUPS.c.start == first,
            _ROLLUPS.c.target_id.in_(targets),
        )
        if grain == MONTH:
            clicks = await session.scalar(
                select(func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)).where(*gone)
            )
            await save_progress(session, replace(state, outlived=state.outlived + int(clicks or 0)))
        await session.execute(delete(_ROLLUPS).where(*gone))
        return len(same)
