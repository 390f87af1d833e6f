"""Hours are closed in few transactions, and every click stays in every grain exactly once."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text

from refract.clicks.models import ClickRollup, OpenRollup
from refract.clicks.rollups import compaction
from refract.clicks.rollups.granularity import COARSE_GRAINS, QUARTER, start_of, to_seconds
from refract.clicks.rollups.state import load_progress
from refract.clicks.rollups.store import load_open_rollups
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.db.session import WriteSession, count_statements
from refract.core.runtime import Runtime
from tests.clicks.counting import click, stored

MORNING = datetime(2026, 6, 20, 0, 10, tzinfo=UTC)
HOURS = 22


async def _close(rt: Runtime) -> list[str]:
    """Close the hours that are over; return the statements, apart from drivers' own."""
    statements: list[str] = []
    stop = count_statements(rt.db.engine, statements.append)
    await compaction.close_hours(rt)
    stop()
    return statements


@pytest.fixture
async def late_evening(rt: Runtime, clock: ManualClock) -> ManualClock:
    """Many hours of one day, each with one click of each of some links."""
    clock.advance((MORNING + timedelta(hours=23) - clock.now()).total_seconds())
    await stored(
        rt,
        [
            click(target, MORNING + timedelta(hours=hour), host=f"203.0.113.{target}")
            for hour in range(HOURS)
            for target in range(1, 4 + hour % 3)
        ],
    )
    return clock


async def test_hours_with_few_clicks_are_closed_in_one_transaction(
    rt: Runtime, late_evening: ManualClock
) -> None:
    statements = await _close(rt)

    saved = [text for text in statements if text.startswith("UPDATE rollup_state")]
    # The end of the hours, their rows, and the days that are finalized.
    assert len(saved) == 3
    assert len(statements) < HOURS


async def test_hours_without_clicks_cost_nothing(rt: Runtime, clock: ManualClock) -> None:
    await stored(rt, [click(1, clock.now())])
    clock.advance(2 * 86_400)
    await compaction.close_hours(rt)
    costs = []
    for days in (1, 300):
        clock.advance(days * 86_400)
        costs.append(len(await _close(rt)))

    assert costs[0] == costs[1]
    async with rt.db.read() as session:
        closed = (await load_progress(session)).closed_until
    assert to_seconds(clock.now()) - closed < 2 * 3600


@pytest.mark.usefixtures("no_packs")
@pytest.mark.parametrize("batch", [500, 7, 1])
async def test_every_grain_has_every_click_once_however_hours_are_divided(
    rt: Runtime,
    late_evening: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    monkeypatch.setattr(compaction, "BATCH_SIZE", batch)

    await compaction.close_hours(rt)

    async with rt.db.read() as session:
        rows = (await session.scalars(select(ClickRollup))).all()
    found: dict[int, Counter[tuple[int, int]]] = {grain: Counter() for grain in COARSE_GRAINS}
    expected: dict[int, Counter[tuple[int, int]]] = {grain: Counter() for grain in COARSE_GRAINS}
    for row in rows:
        if row.grain == QUARTER:
            for grain in COARSE_GRAINS:
                key = row.target_id, start_of(grain, to_seconds(row.start))
                expected[grain][key] += row.people
        else:
            found[row.grain][row.target_id, to_seconds(row.start)] += row.people
    assert found == expected
    assert (await reconcile(rt)).drift == []


async def test_roll_ups_of_many_quarter_hours_are_loaded_in_few_statements(
    rt: Runtime, clock: ManualClock
) -> None:
    frames = [
        click(target, MORNING + timedelta(minutes=15 * quarter))
        for quarter in range(80)
        for target in (quarter, quarter + 1)
    ]
    clock.advance((MORNING + timedelta(hours=23) - clock.now()).total_seconds())
    await stored(rt, frames)
    statements: list[str] = []
    stop = count_statements(rt.db.engine, statements.append)
    await stored(rt, frames)
    stop()

    assert len(statements) < 30
    async with rt.db.read() as session:
        rows = (await session.scalars(select(OpenRollup))).all()
    assert len({(row.target_id, row.start) for row in rows}) == len(frames)
    assert sum(row.people for row in rows) == 2 * len(frames)
    assert {row.uniques for row in rows} == {1}
    assert (await reconcile(rt)).drift == []


async def _count_rows_read(session: WriteSession) -> int:
    """Return how many rows of an index were read one after the other; only MariaDB tells."""
    if session.dialect != "mysql":
        return 0
    status = await session.execute(text("SHOW SESSION STATUS LIKE 'Handler_read_next'"))
    return int(status.one()[1])


async def test_roll_ups_are_looked_up_by_their_keys(rt: Runtime, late_evening: ManualClock) -> None:
    quarters = [to_seconds(MORNING + timedelta(hours=hour)) // 900 * 900 for hour in range(HOURS)]
    keys = [(quarter, target) for quarter in quarters[::4] for target in (1, 3, 99)]
    async with rt.db.write() as session:
        before = await _count_rows_read(session)
        found = await load_open_rollups(session, 1, LINK_CLICK, keys)
        read = await _count_rows_read(session) - before

    assert {row[:2] for row in found} == {key for key in keys if key[1] != 99}
    assert read <= len(keys)  # of 79 rows
