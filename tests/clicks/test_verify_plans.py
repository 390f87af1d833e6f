"""`verify` holds no table in memory: SQLite sorts nothing that grows with the clicks."""

from datetime import timedelta
from typing import Any

from sqlalchemy import event

from refract.clicks.models import OpenRollup
from refract.clicks.rollups.granularity import DAY, start_of, to_datetime, to_seconds
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.verify import count_differing_links, find_day_differences, reconcile
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals
from tests.client import on_sqlite


@on_sqlite
async def test_clicks_are_compared_without_sorting_them(rt: Runtime) -> None:
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    event.listen(rt.db.read_engine.sync_engine, "before_cursor_execute", note)
    await reconcile(rt)
    event.remove(rt.db.read_engine.sync_engine, "before_cursor_execute", note)
    sorting = []
    async with rt.db.read_engine.connect() as connection:
        for statement, parameters in asked:
            if "click_events" in statement or "click_rollups" in statement:
                explain = f"EXPLAIN QUERY PLAN {statement}"
                plan = await connection.exec_driver_sql(explain, parameters)
                sorting += [statement for row in plan if "TEMP B-TREE" in row.detail]
    assert sorting == []


async def test_days_and_links_are_compared_one_by_one(rt: Runtime) -> None:
    """Clicks on three days, one of them missing from events; one link's totals are wrong."""
    day = start_of(DAY, to_seconds(rt.clock.now()))
    starts = [day + 900, day + 1800, day - 2 * 86_400]
    async with rt.db.write() as session:
        session.add_all(_rollup(7, to_datetime(start)) for start in starts)
        session.add_all(_rollup(9, to_datetime(start)) for start in starts[:1])
        session.add(LinkTotals(link_id=7, total_clicks=3, bot_clicks=0))
        session.add(LinkTotals(link_id=8, total_clicks=1, bot_clicks=0))
        session.add(LinkTotals(link_id=10, total_clicks=0, bot_clicks=0))
    async with rt.db.read() as session:
        differences = await find_day_differences(session, RollupProgress())
        links = await count_differing_links(session)
    now = to_datetime(day)
    assert [tuple(difference) for difference in differences] == [
        (f"{now - timedelta(days=2):%Y-%m-%d}", 0, 1),
        (f"{now:%Y-%m-%d}", 0, 3),
    ]
    assert links == 2  # no roll-ups of link 8, no totals of link 9


def _rollup(link_id: int, start: Any) -> OpenRollup:
    return OpenRollup(
        target_id=link_id,
        kind=LINK_CLICK,
        writer=1,
        start=start,
        people=1,
        bots=0,
        private=0,
        uniques=1,
    )
