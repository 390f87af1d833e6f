"""Finalized days have cumulatives from both ends that equal their clicks, also after late ones."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from refract.clicks import stats
from refract.clicks.models import ClickRollup
from refract.clicks.rollups import compaction, day_cumulatives, finalization
from refract.clicks.rollups.day_cumulatives import QUARTERS_PER_DAY, DayPart, QuarterHour
from refract.clicks.rollups.granularity import DAY, to_seconds
from refract.clicks.rollups.sketches import HASH_BYTES, VisitorSketch
from refract.clicks.rollups.state import load_progress, lock_progress, save_progress
from refract.clicks.stats import StatsQuery
from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.clicks.counting import between, click, count, events_of, moment, stored

pytestmark = pytest.mark.usefixtures("no_packs")
Counted = dict[int, tuple[int, int, set[int]]]
NOW = datetime(2026, 6, 20, 12, 30, tzinfo=UTC)
HERE = "Asia/Kolkata"


def _stored(visitors: set[int]) -> bytes | None:
    sketch = VisitorSketch()
    sketch.update(visitor.to_bytes(HASH_BYTES, "big") for visitor in visitors)
    return sketch.to_bytes() if visitors else None


def _encoded(day: Counted) -> bytes:
    return day_cumulatives.encode_day(
        QuarterHour(number, people, bots, _stored(who))
        for number, (people, bots, who) in day.items()
    )


def _by_hand(day: Counted, begin: int, end: int) -> DayPart:
    some = [quarter for number, quarter in day.items() if begin <= number < end]
    everybody = set().union(*(who for _, _, who in some))
    return DayPart(
        sum(people for people, _, _ in some), sum(bots for _, bots, _ in some), len(everybody)
    )


QUARTER = st.tuples(
    st.integers(0, 10_000), st.integers(0, 10_000), st.sets(st.integers(0, 40), max_size=8)
)


@given(
    day=st.dictionaries(st.integers(0, QUARTERS_PER_DAY - 1), QUARTER, max_size=12),
    at=st.integers(0, QUARTERS_PER_DAY),
)
def test_either_end_of_a_day_is_what_its_quarters_add_up_to(day: Counted, at: int) -> None:
    data = _encoded(day)

    assert day_cumulatives.read_before(data, at) == _by_hand(day, 0, at)
    assert day_cumulatives.read_after(data, at) == _by_hand(day, at, QUARTERS_PER_DAY)


def test_ends_of_a_day_with_many_visitors_are_counted_closely_and_below_a_thousand_exactly() -> (
    None
):
    chance = random.Random(3)
    day = {
        number: (900, 3, {chance.randrange(12_000) for _ in range(900 if number % 3 else 20)})
        for number in range(QUARTERS_PER_DAY)
    }
    data = _encoded(day)
    for at in range(QUARTERS_PER_DAY + 1):
        for found, exact in (
            (day_cumulatives.read_before(data, at).uniques, _by_hand(day, 0, at).uniques),
            (
                day_cumulatives.read_after(data, at).uniques,
                _by_hand(day, at, QUARTERS_PER_DAY).uniques,
            ),
        ):
            assert (
                found == exact if exact < 1_000 else abs(found - exact) < 0.03 * exact
            )  # the standard error is 0.8 %


@pytest.fixture
async def link(rt: Runtime, clock: ManualClock, ada: User) -> int:
    async with rt.db.write() as session:
        link = (await make.link(session, rt, ada)).id
    clock.advance((NOW - clock.now()).total_seconds())
    chance = random.Random(8)
    times = [to_seconds(NOW) - chance.randrange(9 * 86_400) for _ in range(150)]
    await stored(
        rt, [click(link, datetime.fromtimestamp(at, UTC), host=f"203.0.{at % 9}.1") for at in times]
    )
    await compaction.close_hours(rt)
    return link


async def _asked(rt: Runtime, link: int) -> tuple[list[Any], int]:
    """Return the series of two weeks in India, and its number of queries."""
    questions: list[str] = []
    stop = count_statements(rt.db.read_engine, questions.append)
    async with rt.db.read() as session:
        found = await stats.get_link_stats(
            session,
            link,
            StatsQuery(moment("2026-06-06T18:30:00Z"), NOW, tz=HERE, compare=True),
            NOW,
        )
    stop()
    return found.series, len(
        [one for one in questions if one.lstrip().upper().startswith("SELECT")]
    )


async def _agrees(rt: Runtime, link: int, series: list[Any]) -> None:
    events = await events_of(rt, link)
    ends = [point.at for point in series[1:]] + [NOW.replace(minute=45)]
    wanted = [
        count(between(events, point.at, end)) for point, end in zip(series, ends, strict=True)
    ]
    assert [(point.clicks, point.uniques, point.bots) for point in series] == [
        tuple(one) for one in wanted
    ]
    assert sum(one.clicks for one in wanted) == len(events)


async def test_clicks_that_come_late_are_seen_before_their_day_is_settled_again(
    rt: Runtime, link: int
) -> None:
    series, questions = await _asked(rt, link)
    await _agrees(rt, link, series)
    assert questions == 2

    for host in ("203.0.1.1", "192.0.2.1"):  # a visitor of that day, and a new one
        await stored(rt, [click(link, moment("2026-06-14T19:10:00Z"), host=host)])
        await _agrees(rt, link, (await _asked(rt, link))[0])
    await compaction.fold_hours(rt)
    await _agrees(rt, link, (await _asked(rt, link))[0])
    async with rt.db.read() as session:
        assert (await load_progress(session)).settled_until == to_seconds(
            moment("2026-06-14T00:00:00Z")
        )

    await compaction.close_hours(rt)

    series, questions = await _asked(rt, link)
    await _agrees(rt, link, series)
    assert questions == 2


async def test_edges_of_fewer_clicks_than_there_are_say_nothing(rt: Runtime, link: int) -> None:
    """Late clicks were added, and the state was not moved back to their day."""
    async with rt.db.read() as session:
        before = await load_progress(session)
    await stored(rt, [click(link, moment("2026-06-14T19:10:00Z"), host="192.0.2.1")])
    await compaction.fold_hours(rt)
    async with rt.db.write() as session:
        now = await lock_progress(session)
        await save_progress(
            session,
            replace(now, settled_until=before.settled_until, settled_target=before.settled_target),
        )

    series, questions = await _asked(rt, link)

    await _agrees(rt, link, series)
    assert questions == 3


async def test_targets_with_few_clicks_are_finalized_together(
    rt: Runtime, link: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finalization, "BATCH_SIZE", 2)
    monkeypatch.setattr(finalization, "MAX_BATCH_SIZE", 60)
    monkeypatch.setattr(finalization, "MAX_BATCH_CLICKS", 20)
    await stored(rt, [click(target, moment("2026-06-15T01:00:00Z")) for target in range(1, 51)])

    await compaction.fold_hours(rt)

    # Twenty targets in a batch, of fifty; the four days after it need one each.
    assert await finalization.finalize_days(rt) <= 3 + 4

    async with rt.db.read() as session:
        state = await load_progress(session)
        days = (await session.scalars(select(ClickRollup).where(ClickRollup.grain == DAY))).all()
    assert state.settled_until == to_seconds(NOW.replace(hour=0, minute=0))
    assert all(
        row.settled_clicks == row.people + row.bots
        for row in days
        if to_seconds(row.start) < state.settled_until
    )


async def test_all_days_that_are_over_are_settled_in_slices(
    rt: Runtime, link: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finalization, "BATCH_SIZE", 2)
    monkeypatch.setattr(finalization, "MAX_BATCH_CLICKS", 0)
    await stored(rt, [click(target, moment("2026-06-15T01:00:00Z")) for target in range(1, 6)])
    await compaction.fold_hours(rt)

    assert await finalization.finalize_days(rt) >= 3

    async with rt.db.read() as session:
        state = await load_progress(session)
        days = (await session.scalars(select(ClickRollup).where(ClickRollup.grain == DAY))).all()
    assert state.settled_until == to_seconds(NOW.replace(hour=0, minute=0))
    for row in days:
        over = to_seconds(row.start) < state.settled_until
        assert (row.settled_clicks, row.edges is not None) == (
            (row.people + row.bots, True) if over else (None, False)
        )
    assert await finalization.finalize_days(rt) == 0
