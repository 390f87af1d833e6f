"""Compaction and retention of roll-ups.

Open roll-ups of hours that are over are folded into those of all grains, and expired ones are
dropped. Both work in batches under the lock of the state, which ingesters do not need.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, and_, delete, func, or_, select

from refract.clicks.models import ClickRollup, OpenRollup
from refract.clicks.rollups.finalization import finalize_days
from refract.clicks.rollups.folding import RollupFolder
from refract.clicks.rollups.granularity import (
    DAY,
    HOUR,
    MONTH,
    QUARTER,
    SIX_HOURS,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.groups import restart_builds
from refract.clicks.rollups.pack_updates import expire_packs
from refract.clicks.rollups.rows import MIN_GROUP_KIND, decode_delta
from refract.clicks.rollups.state import RollupProgress, lock_progress, save_progress
from refract.clicks.rollups.writers import list_writers, lock_writer, save_writer
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.slices import run_in_slices

CLOSE_GRACE_SECONDS: Final = 120
"""Seconds that an hour stays open after its end: nearly all clicks have arrived by then."""
BATCH_SIZE: Final = 500
"""Rows in one transaction."""
MAX_LISTED_TARGETS: Final = 20_000
"""Targets with open rows that are listed at once."""
_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_OPEN: Table = OpenRollup.__table__  # type: ignore[assignment]


async def close_hours(rt: Runtime) -> int:
    """Fold the rows of hours that are over, finalize days; return the number of batches."""
    return await fold_hours(rt) + await finalize_days(rt)


async def fold_hours(rt: Runtime) -> int:
    """Fold the open rows of every hour that is over; return the number of batches.

    Hours without clicks cost nothing.
    """
    until, numbers = await _close_until_now(rt)
    folder = RollupFolder()  # days and months stay decoded from one batch to the next
    batches = 0
    for number in numbers:
        sweep = WriterSweep(folder, number, until)
        batches += await run_in_slices(rt, partial(sweep.fold_next, rt))
    return batches


async def _close_until_now(rt: Runtime) -> tuple[int, list[int]]:
    """Save that hours which are over may be folded; return their end and the writers with rows."""
    until = start_of(HOUR, to_seconds(rt.clock.now()) - CLOSE_GRACE_SECONDS)
    async with rt.db.write() as session:
        state = await lock_progress(session)
        if state.closed_until < until:
            await save_progress(session, replace(state, closed_until=until))
        until = max(until, state.closed_until)
        return until, await list_writers(session, until)


class WriterSweep:
    """Folds the rows of one writer, target by target."""

    def __init__(self, folder: RollupFolder, number: int, until: int) -> None:
        self._folder = folder
        self._number = number
        self._until = until
        self._targets: deque[tuple[int, int]] = deque()  # and their numbers of rows
        self._is_done = False

    async def fold_next(self, rt: Runtime) -> bool:
        """Fold a batch of rows; return False if there is none."""
        if self._is_done:
            return False
        async with rt.db.write() as session:
            state = await lock_progress(session)
            writer = await lock_writer(session, self._number)
            if not self._targets:
                await self._list_targets(session)
            rows = await self._load_batch(session)
            if rows:
                quarters = {
                    (row.target_id, row.kind, to_seconds(row.start)): decode_delta(row)
                    for row in rows
                }
                state = await self._folder.add_quarters(session, state, quarters)
                await save_progress(session, state)
                await self._delete_batch(session, rows)
            is_last = not self._targets and not await self._has_more(session)
            await save_writer(session, writer, self._until if is_last else writer.oldest)
        self._is_done = is_last
        return bool(rows)

    async def _list_targets(self, session: WriteSession) -> None:
        """List the next targets at once: PostgreSQL may sort all rows to find them."""
        counted = select(_OPEN.c.target_id, func.count()).where(*self._condition)
        grouped = counted.group_by(_OPEN.c.target_id).order_by(_OPEN.c.target_id)
        found = await session.execute(grouped.limit(MAX_LISTED_TARGETS))
        self._targets.extend((row[0], row[1]) for row in found)

    async def _load_batch(self, session: WriteSession) -> Sequence[Any]:
        """Return the rows of the next targets, or some rows of one that has very many."""
        chosen: list[int] = []
        number = 0
        while self._targets and (not chosen or number + self._targets[0][1] <= BATCH_SIZE):
            target, rows = self._targets.popleft()
            chosen.append(target)
            number += rows
        if number > BATCH_SIZE:
            self._targets.appendleft((chosen[0], number - BATCH_SIZE))
        found = select(_OPEN).where(*self._condition, _OPEN.c.target_id.in_(chosen))
        ordered = found.order_by(_OPEN.c.target_id, _OPEN.c.kind, _OPEN.c.start)
        return (await session.execute(ordered.limit(BATCH_SIZE))).all()

    async def _delete_batch(self, session: WriteSession, rows: Sequence[Any]) -> None:
        last = rows[-1]
        targets = sorted({row.target_id for row in rows})
        chosen = and_(*self._condition, _OPEN.c.target_id.in_(targets))
        if len(rows) == BATCH_SIZE:  # perhaps not all rows of the last target
            before = and_(_OPEN.c.kind == last.kind, _OPEN.c.start <= last.start)
            whole = _OPEN.c.target_id < last.target_id
            chosen = and_(chosen, or_(whole, _OPEN.c.kind < last.kind, before))
        await session.execute(delete(_OPEN).where(chosen))

    async def _has_more(self, session: WriteSession) -> bool:
        one = select(_OPEN.c.target_id).where(*self._condition).limit(1)
        return await session.scalar(one) is not None

    @property
    def _condition(self) -> tuple[ColumnElement[bool], ...]:
        return _OPEN.c.writer == self._number, _OPEN.c.start < to_datetime(self._until)


async def drop_expired_rollups(rt: Runtime) -> int:
    """Advance the horizons, then delete the rows before them; return their number.

    Quarter hours are dropped only if they are in days, and days only if they are in months. Packs
    become months when their days are no longer kept.
    """
    async with rt.db.write() as session:
        state = await lock_progress(session)
        after = _advance_horizons(rt, state)
        if after != state:
            after = await restart_builds(session, after)
            await save_progress(session, after)
    await expire_packs(rt)
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
                    oldest.order_by(_ROLLUPS.c.start, _ROLLUPS.c.target_id).limit(BATCH_SIZE)
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
                select(func.sum(_ROLLUPS.c.people + _ROLLUPS.c.bots)).where(
                    *gone, _ROLLUPS.c.kind < MIN_GROUP_KIND
                )
            )
            await save_progress(session, replace(state, outlived=state.outlived + int(clicks or 0)))
        await session.execute(delete(_ROLLUPS).where(*gone))
        return len(same)
