"""Finalization of days that are over: their cumulatives and top values, in batches of targets.

They are computed while clicks arrive, without the lock of the state. Late clicks invalidate a day's
values, since the day then has more clicks than they were computed from, and move the state back to
that day.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, bindparam, func, or_, select, update

from refract.clicks.models import ClickRollup
from refract.clicks.rollups import day_cumulatives, top_values
from refract.clicks.rollups.granularity import (
    DAY,
    GRAIN_SECONDS,
    QUARTER,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.state import RollupProgress, load_progress, lock_progress, save_progress
from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.jobs.slices import run_in_slices

BATCH_SIZE: Final = 25
"""Targets in a batch, however many clicks they have."""
MAX_BATCH_SIZE: Final = 400
"""Targets in a batch while they have few clicks together."""
MAX_BATCH_CLICKS: Final = 2_000
_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_COLUMNS: Final = _ROLLUPS.c
_UPDATE_DAY: Final = (
    update(_ROLLUPS)
    .where(
        _COLUMNS.target_id == bindparam("target"),
        _COLUMNS.kind == bindparam("its_kind"),
        _COLUMNS.grain == DAY,
        _COLUMNS.start == bindparam("day"),
    )
    .values(
        settled_clicks=bindparam("clicks"), edges=bindparam("its_edges"), tops=bindparam("its_tops")
    )
)


async def finalize_days(rt: Runtime) -> int:
    """Finalize every day that is over; return the number of batches."""
    return await run_in_slices(rt, partial(_finalize_batch, rt))


async def _finalize_batch(rt: Runtime) -> bool:
    """Finalize a batch of targets of the day in question; return False when no day is left."""
    async with rt.db.read() as session:
        progress = await load_progress(session)
        day, targets, is_whole = await _find_next_targets(session, progress)
        quarters = await _load_quarters(session, day, targets) if targets else []
        parts = await _load_breakdowns(session, day, targets) if targets else {}
    if day >= _get_end(progress):
        if day > progress.settled_until:
            await _save_batch(rt, progress, day, -1, [])
        return False
    updates = await asyncio.to_thread(_build_updates, day, quarters, parts)
    if is_whole:
        await _save_batch(rt, progress, day + _DAY_SECONDS, -1, updates)
    else:
        await _save_batch(rt, progress, day, targets[-1], updates)
    return True


async def finalize_target(rt: Runtime, target: int, kind: int) -> None:
    """Finalize the days of one target, of those days that all other targets have finalized."""
    async with rt.db.read() as session:
        progress = await load_progress(session)
        query = select(_COLUMNS.start).where(
            _COLUMNS.target_id == target,
            _COLUMNS.kind == kind,
            _COLUMNS.grain == DAY,
            _COLUMNS.start >= to_datetime(progress.quarters_from),
            _COLUMNS.start < to_datetime(progress.settled_until),
            _is_changed(),
        )
        days = [to_seconds(start) for start in await session.scalars(query)]
    for day in days:
        async with rt.db.read() as session:
            quarters = await _load_quarters(session, day, [target])
            parts = await _load_breakdowns(session, day, [target])
        updates = await asyncio.to_thread(_build_updates, day, quarters, parts)
        async with rt.db.write() as session:
            await lock_progress(session)
            await _write_updates(session, updates)


def _is_changed() -> ColumnElement[bool]:
    """Select days that have got clicks since they were finalized."""
    clicks = _COLUMNS.people + _COLUMNS.bots
    return or_(_COLUMNS.settled_clicks.is_(None), _COLUMNS.settled_clicks != clicks)


def _get_end(state: RollupProgress) -> int:
    return start_of(DAY, state.closed_until)


async def _find_next_targets(
    session: ReadSession, state: RollupProgress
) -> tuple[int, list[int], bool]:
    """Return the current day, the next batch of its targets, and whether these are the last."""
    day = state.settled_until
    if state.settled_target < 0:
        begin = max(day, state.quarters_from)
        first = await session.scalar(
            select(func.min(_COLUMNS.start)).where(
                _COLUMNS.grain == DAY, _COLUMNS.start >= to_datetime(begin)
            )
        )
        day = max(
            begin, _get_end(state) if first is None else min(_get_end(state), to_seconds(first))
        )
    if day >= _get_end(state):
        return day, [], True
    clicks = _COLUMNS.people + _COLUMNS.bots
    pending = (
        select(_COLUMNS.target_id, func.sum(clicks).label("clicks"))
        .where(
            _COLUMNS.grain == DAY,
            _COLUMNS.start == to_datetime(day),
            _COLUMNS.target_id > state.settled_target,
            _is_changed(),
        )
        .group_by(_COLUMNS.target_id)
        .order_by(_COLUMNS.target_id)
        .limit(MAX_BATCH_SIZE)
    )
    found = (await session.execute(pending)).all()
    targets = _choose_targets(found)
    return day, targets, len(targets) == len(found) < MAX_BATCH_SIZE


def _choose_targets(found: Sequence[Any]) -> list[int]:
    """Return the first targets, which fit into a batch."""
    total = 0
    for number, row in enumerate(found):
        total += int(row.clicks)
        if number >= BATCH_SIZE and total > MAX_BATCH_CLICKS:
            return [row.target_id for row in found[:number]]
    return [row.target_id for row in found]


async def _load_quarters(session: ReadSession, day: int, targets: list[int]) -> list[Any]:
    columns = (
        _COLUMNS.target_id,
        _COLUMNS.kind,
        _COLUMNS.start,
        _COLUMNS.people,
        _COLUMNS.bots,
        _COLUMNS.visitors,
    )
    within = (
        _COLUMNS.grain == QUARTER,
        _COLUMNS.start >= to_datetime(day),
        _COLUMNS.start < to_datetime(day + _DAY_SECONDS),
    )
    return list(
        (
            await session.execute(select(*columns).where(_COLUMNS.target_id.in_(targets), *within))
        ).all()
    )


async def _load_breakdowns(
    session: ReadSession, day: int, targets: list[int]
) -> dict[tuple[int, int], bytes | None]:
    these = (
        _COLUMNS.target_id.in_(targets),
        _COLUMNS.grain == DAY,
        _COLUMNS.start == to_datetime(day),
    )
    return {
        (row.target_id, row.kind): row.parts
        for row in await session.execute(
            select(_COLUMNS.target_id, _COLUMNS.kind, _COLUMNS.parts).where(*these)
        )
    }


def _build_updates(
    day: int, rows: Iterable[Any], parts: Mapping[tuple[int, int], bytes | None]
) -> list[dict[str, Any]]:
    by_target: dict[tuple[int, int], list[day_cumulatives.QuarterHour]] = defaultdict(list)
    for row in rows:
        number = (to_seconds(row.start) - day) // GRAIN_SECONDS[QUARTER]
        by_target[row.target_id, row.kind].append(
            day_cumulatives.QuarterHour(number, row.people, row.bots, row.visitors)
        )
    return [
        {
            "target": target, "its_kind": kind, "day": to_datetime(day),
            "its_edges": day_cumulatives.encode_day(quarters),
            "its_tops": top_values.encode_top_values(parts.get((target, kind))),
            "clicks": sum(quarter.people + quarter.bots for quarter in quarters),
        }
        for (target, kind), quarters in sorted(by_target.items())
    ]  # fmt: skip


async def _save_batch(
    rt: Runtime, progress: RollupProgress, day: int, target: int, updates: list[dict[str, Any]]
) -> None:
    """Save a batch; advance the state unless late clicks have moved it back meanwhile."""
    async with rt.db.write() as session:
        state = await lock_progress(session)
        await _write_updates(session, updates)
        if (state.settled_until, state.settled_target) == (
            progress.settled_until,
            progress.settled_target,
        ):
            await save_progress(session, replace(state, settled_until=day, settled_target=target))


async def _write_updates(session: WriteSession, updates: list[dict[str, Any]]) -> None:
    if updates:
        await (await session.connection()).execute(_UPDATE_DAY, updates)
