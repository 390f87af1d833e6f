"""Ranges of time are covered exactly, by few rows."""

from hypothesis import given
from hypothesis import strategies as st

from refract.clicks.rollups.granularity import (
    COARSE_GRAINS,
    DAY,
    GRAIN_SECONDS,
    HOUR,
    MONTH,
    QUARTER,
    SIX_HOURS,
    end_of,
    start_of,
)
from refract.clicks.rollups.state import RollupProgress, plan_ranges, round_range

TODAY = 1_780_272_000  # 2026-06-01
H = 3600


def held(state: RollupProgress, begin: int, end: int) -> list[int]:
    """Return the quarter hours that the rows of a plan hold.

    A coarse row holds what is closed and not older than kept.
    """
    found: list[int] = []
    for stretch in plan_ranges(state, begin, end):
        at = stretch.begin
        while at < stretch.end:
            last = (
                end_of(stretch.grain, at)
                if stretch.grain == QUARTER
                else min(end_of(stretch.grain, at), state.closed_until)
            )
            found += range(at, last, GRAIN_SECONDS[QUARTER])
            at = end_of(stretch.grain, at)
    return found


@given(begin=st.integers(-400, 400), length=st.integers(1, 800), closed=st.integers(-100, 100))
def test_every_quarter_of_closed_hours_is_held_once(begin: int, length: int, closed: int) -> None:
    first, until = TODAY + begin * 900, TODAY + closed * H
    last = first + length * 900

    found = held(RollupProgress(closed_until=until), first, last)

    assert found == list(range(first, min(last, until), 900))


@given(begin=st.integers(0, 96 * 20), length=st.integers(1, 96 * 20))
def test_what_is_older_is_rounded_outwards_to_days_and_months(begin: int, length: int) -> None:
    horizon = TODAY + 10 * GRAIN_SECONDS[DAY]
    state = RollupProgress(
        closed_until=TODAY + 100 * GRAIN_SECONDS[DAY], quarters_from=horizon, days_from=TODAY
    )
    first, last = TODAY + begin * 900, TODAY + (begin + length) * 900

    found = held(state, first, last)

    assert found == sorted(set(found))
    assert found[0] == (start_of(DAY, first) if first < horizon else first)
    assert found[-1] + 900 == (
        start_of(DAY, last - 1) + GRAIN_SECONDS[DAY] if last <= horizon else last
    )
    assert round_range(state, first, last) == (found[0], found[-1] + 900)


def test_a_day_of_another_time_zone_needs_few_rows() -> None:
    begin = TODAY - 2 * H
    stretches = plan_ranges(RollupProgress(closed_until=TODAY + 100 * H), begin, begin + 24 * H)

    rows = sum(
        (stretch.end - stretch.begin) // GRAIN_SECONDS[stretch.grain] for stretch in stretches
    )
    assert [stretch.grain for stretch in stretches] == [HOUR, SIX_HOURS, HOUR]
    assert rows == 9


def test_the_day_that_is_still_growing_is_read_as_far_as_it_is_closed() -> None:
    now = TODAY + 9 * H
    assert [
        stretch.grain
        for stretch in plan_ranges(RollupProgress(closed_until=now), TODAY - 24 * H, now + H)
    ] == [DAY]


def test_before_the_months_there_is_nothing() -> None:
    month = start_of(MONTH, TODAY)
    state = RollupProgress(
        closed_until=TODAY, quarters_from=month, days_from=month, months_from=month
    )
    assert plan_ranges(state, 0, month) == []


def test_stretches_begin_and_end_where_clocks_do() -> None:
    for grain in (QUARTER, *COARSE_GRAINS):
        for at in (TODAY, TODAY + 12_345, TODAY + 40 * GRAIN_SECONDS[DAY]):
            begin = start_of(grain, at)
            assert begin <= at < end_of(grain, begin)
            assert start_of(grain, end_of(grain, begin)) == end_of(grain, begin)
