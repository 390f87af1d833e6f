"""Top values of days with very many values are exact, or reported as uncertain."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refract.clicks import stats
from refract.clicks.rollups import breakdowns as rollups_breakdowns
from refract.clicks.rollups import compaction, top_values
from refract.clicks.rollups.breakdowns import BreakdownCounts
from refract.clicks.spool.format import LINK_CLICK, encode_frame
from refract.clicks.stats import StatsQuery
from refract.clicks.stats.aggregation import rank_values
from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.clicks.counting import FIREFOX, stored

NOW = datetime(2026, 6, 20, 12, 30, tzinfo=UTC)
LETTER = rollups_breakdowns.get_dimension_letter("cities")
SHOWN = 10


def _day(seed: int, steepness: float, values: int, clicks: int) -> BreakdownCounts:
    """Return a day of some steepness: at 0 all cities are equally frequent."""
    chance = random.Random(seed)
    found: BreakdownCounts = {}
    for _ in range(clicks):
        key = rollups_breakdowns.build_breakdown_key(
            "cities", f"city {int(values * chance.random() ** (1 + steepness))}"
        )
        found[key] = found.get(key, 0) + 1
    return found


def _first(summed: BreakdownCounts) -> list[tuple[str, int]]:
    breakdown = rank_values(
        "cities", rollups_breakdowns.group_by_dimension(summed)["cities"], 0, 0, 0, SHOWN
    )
    assert sum(item.clicks for item in breakdown.items) + breakdown.other == breakdown.total
    return [(item.value, item.clicks) for item in breakdown.items]


def _compared(days: Sequence[BreakdownCounts], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Check that top values, where they are certain, equal those of all values."""
    monkeypatch.setattr(top_values, "MIN_VALUES", 60)
    monkeypatch.setattr(top_values, "MAX_TOP_VALUES", 40)
    whole, exact = (
        top_values.sum_breakdowns(
            top_values.encode_top_values(data) or data
            for data in [rollups_breakdowns.encode_counts(day, pack=True) for day in days]
        ),
        top_values.sum_breakdowns(map(rollups_breakdowns.encode_counts, days)),
    )
    assert sum(whole.counts.values()) == sum(exact.counts.values())
    if whole.is_certain(LETTER, SHOWN):
        assert _first(whole.counts) == _first(exact.counts)
        return True
    return False


DAY = st.tuples(
    st.integers(0, 1 << 20),
    st.sampled_from([0, 0.5, 1, 2, 4]),
    st.sampled_from([20, 80, 400]),
    st.sampled_from([5, 300, 3000]),
)


@given(days=st.lists(DAY, min_size=1, max_size=5))
@example(days=[(1, 2, 400, 3000), (1, 2, 400, 3000)])
def test_what_is_certain_is_right(days: list[tuple[int, float, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _compared([_day(*day) for day in days], patch)


def test_steep_days_are_certain_and_flat_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compared([_day(seed, 2, 400, 20_000) for seed in range(8)], monkeypatch)
    assert not _compared([_day(seed, 0, 400, 20_000) for seed in range(8)], monkeypatch)


def test_a_value_that_was_left_out_of_one_day_is_not_shown_with_too_few_clicks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = {
        rollups_breakdowns.build_breakdown_key("cities", f"city {number:03}"): (
            10_000 // (number + 1)
        )
        for number in range(100)
    }
    often, seldom = (
        rollups_breakdowns.build_breakdown_key("cities", "city 000"),
        {**usual, rollups_breakdowns.build_breakdown_key("cities", "city 000"): 3},
    )
    assert _compared([usual, usual], monkeypatch)
    top = top_values.encode_top_values(rollups_breakdowns.encode_counts(usual))
    assert often in top_values.sum_breakdowns([top]).counts
    assert not _compared([usual, usual, usual, seldom], monkeypatch)


@pytest.mark.usefixtures("no_packs")
async def test_a_dashboard_with_many_values_shows_what_the_breakdowns_say(
    rt: Runtime, clock: ManualClock, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_values, "MIN_VALUES", 30)
    monkeypatch.setattr(top_values, "MAX_TOP_VALUES", 25)
    async with rt.db.write() as session:
        steep, flat = [(await make.link(session, rt, ada)).id for _ in range(2)]
    clock.advance((NOW - clock.now()).total_seconds())
    chance, frames = random.Random(4), []
    for day in range(1, 4):
        at = int((NOW - timedelta(days=day)).timestamp() * 1e9)
        for link, sites in (
            (steep, [int(60 * chance.random() ** 3) for _ in range(900)]),
            (flat, list(range(60))),
        ):
            texts = (b"https://site%02d.example/" % site for site in sites)
            frames += [
                encode_frame(LINK_CLICK, link, at, 0, b"\xc6\x33\x64", FIREFOX.encode(), text, b"")
                for text in texts
            ]
    await stored(rt, frames)
    await compaction.close_hours(rt)

    questions: dict[int, list[str]] = {steep: [], flat: []}
    for link, asked in questions.items():
        stop = count_statements(rt.db.read_engine, asked.append)
        async with rt.db.read() as session:
            shown = await stats.get_dashboard(session, link, StatsQuery(), NOW)
        stop()
        async with rt.db.read() as session:
            assert shown.breakdowns["referrers"] == await stats.get_link_breakdown(
                session, link, "referrers", StatsQuery(), NOW
            )
    assert [
        len([one for one in asked if one.lstrip().startswith("SELECT")])
        for asked in questions.values()
    ] == [2, 3]
