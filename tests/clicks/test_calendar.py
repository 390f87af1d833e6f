"""Hours, days, weeks and months of any zone, made of quarter hours."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.clicks.rollups.granularity import to_seconds
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.stats.calendar import (
    Granularity,
    SeriesBucket,
    TimeRange,
    build_buckets,
    parse_range,
)
from refract.clicks.stats.errors import InvalidRange, TooManyPoints
from refract.identity.errors import UnknownTimeZone
from refract.identity.time_zones import parse_zone

NOW = datetime(2026, 6, 1, 12, 7, tzinfo=UTC)
ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu",
    "Australia/Lord_Howe", "America/St_Johns", "Africa/Cairo", "Asia/Beirut", "America/Havana",
    "Pacific/Apia", "Pacific/Chatham", "America/Santiago",
]  # fmt: skip


def at(text: str) -> int:
    return to_seconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


def cut(
    begin: str, end: str, zone: str, granularity: str, state: RollupProgress | None = None
) -> list[SeriesBucket]:
    return build_buckets(
        TimeRange(at(begin), at(end), ZoneInfo(zone)),
        Granularity(granularity),
        state or RollupProgress(),
    )


def starts(found: list[SeriesBucket]) -> list[str]:
    return [datetime.fromtimestamp(bucket.begin, UTC).isoformat()[:16] for bucket in found]


@given(
    zone=st.sampled_from(ZONES),
    granularity=st.sampled_from(list(Granularity)),
    begin=st.integers(at("2024-01-01") // 900, at("2026-12-31") // 900),
    length=st.integers(1, 96 * 60),
    fine_from=st.integers(at("2024-01-01") // 86400, at("2026-12-31") // 86400) | st.just(0),
)
def test_buckets_fill_the_time_and_each_is_one_local_stretch(
    zone: str, granularity: Granularity, begin: int, length: int, fine_from: int
) -> None:
    state = RollupProgress(quarters_from=fine_from * 86400)
    asked = TimeRange(begin * 900, (begin + length) * 900, ZoneInfo(zone))
    found = build_buckets(asked, granularity, state)

    assert all(one.end == other.begin for one, other in pairwise(found))
    assert all(bucket.begin < bucket.end for bucket in found)
    assert found[0].begin <= asked.begin < found[0].end
    assert found[-1].begin < asked.end <= found[-1].end
    if asked.begin >= state.quarters_from:
        assert (found[0].begin, found[-1].end) == (asked.begin, asked.end)
    for bucket in found:
        assert bucket.begin % (86400 if bucket.coarse else 900) == 0
        if not bucket.coarse:
            assert (
                len(
                    {
                        _word(second, asked.zone, granularity)
                        for second in range(bucket.begin, bucket.end, 900)
                    }
                )
                == 1
            )
    fine = [bucket for bucket in found if not bucket.coarse]
    if granularity != Granularity.HOUR:  # an hour that the clocks repeat is two
        words = [_word(bucket.begin, asked.zone, granularity) for bucket in fine]
        assert len(words) == len(set(words))


def _word(second: int, zone: ZoneInfo, granularity: Granularity) -> object:
    local = datetime.fromtimestamp(second, zone)
    return {
        Granularity.HOUR: (local.date(), local.hour),
        Granularity.DAY: local.date(),
        Granularity.WEEK: local.isocalendar()[:2],
        Granularity.MONTH: (local.year, local.month),
    }[granularity]


def test_days_of_23_and_25_hours() -> None:
    spring = cut("2026-03-28T23:00", "2026-03-30T22:00", "Europe/Berlin", "day")
    assert [(bucket.end - bucket.begin) // 3600 for bucket in spring] == [23, 24]
    autumn = cut("2026-10-24T22:00", "2026-10-25T23:00", "Europe/Berlin", "day")
    assert [(bucket.end - bucket.begin) // 3600 for bucket in autumn] == [25]
    assert len(cut("2026-10-24T22:00", "2026-10-25T23:00", "Europe/Berlin", "hour")) == 25


def test_hours_of_half_hour_zones_begin_at_half_past() -> None:
    assert starts(cut("2026-05-01T00:00", "2026-05-01T02:30", "Asia/Kolkata", "hour")) == [
        "2026-05-01T00:00", "2026-05-01T00:30", "2026-05-01T01:30",
    ]  # fmt: skip


def test_clocks_that_move_by_half_an_hour() -> None:
    """Lord Howe: on 5 April 2026 at 02:00 it is 01:30 again."""
    found = cut("2026-04-04T14:00", "2026-04-04T16:30", "Australia/Lord_Howe", "hour")
    assert [(bucket.end - bucket.begin) // 60 for bucket in found] == [60, 30, 60]


def test_a_day_whose_midnight_is_skipped_begins_when_it_begins() -> None:
    """Cairo: on 24 April 2026 the clocks go from 00:00 to 01:00."""
    assert starts(cut("2026-04-22T22:00", "2026-04-24T21:00", "Africa/Cairo", "day")) == [
        "2026-04-22T22:00",
        "2026-04-23T22:00",
    ]


def test_weeks_begin_on_monday_and_months_on_the_first() -> None:
    assert starts(cut("2026-05-01T00:00", "2026-05-18T00:00", "UTC", "week")) == [
        "2026-05-01T00:00",
        "2026-05-04T00:00",
        "2026-05-11T00:00",
    ]
    assert starts(cut("2026-04-15T00:00", "2026-06-01T00:00", "UTC", "month")) == [
        "2026-04-15T00:00",
        "2026-05-01T00:00",
    ]


def test_before_the_oldest_quarters_there_are_utc_days_marked_so() -> None:
    state = RollupProgress(quarters_from=at("2026-05-02T00:00"))
    found = cut("2026-04-29T19:00", "2026-05-04T22:00", "Asia/Kolkata", "day", state)
    assert starts(found)[:3] == ["2026-04-29T00:00", "2026-04-30T00:00", "2026-05-01T00:00"]
    assert starts(found)[3:] == [
        "2026-05-02T00:00",
        "2026-05-02T18:30",
        "2026-05-03T18:30",
        "2026-05-04T18:30",
    ]
    assert [bucket.coarse for bucket in found] == [True] * 3 + [False] * 4
    assert [
        bucket.coarse
        for bucket in cut("2026-04-30T10:00", "2026-05-02T02:00", "UTC", "hour", state)
    ] == [True, True, False, False]


def test_before_the_horizon_nothing_is_known() -> None:
    state = RollupProgress(
        quarters_from=at("2026-05-02T00:00"),
        days_from=at("2025-06-10T00:00"),
        months_from=at("2024-06-01T00:00"),
    )
    days = cut("2025-06-08T00:00", "2025-06-12T00:00", "UTC", "day", state)
    assert [bucket.no_data for bucket in days] == [True, True, False, False]
    weeks = cut("2025-06-02T00:00", "2025-06-16T00:00", "UTC", "week", state)
    assert [(one, bucket.no_data) for one, bucket in zip(starts(weeks), weeks, strict=True)] == [
        ("2025-06-02T00:00", True), ("2025-06-09T00:00", True), ("2025-06-10T00:00", False),
    ]  # fmt: skip
    months = cut("2024-04-20T00:00", "2024-08-03T00:00", "UTC", "month", state)
    assert starts(months) == [
        "2024-04-01T00:00",
        "2024-05-01T00:00",
        "2024-06-01T00:00",
        "2024-07-01T00:00",
        "2024-08-01T00:00",
    ]
    assert [bucket.no_data for bucket in months] == [True, True, False, False, False]
    assert months[-1].end == at("2024-09-01T00:00")


def test_nothing_said_means_thirty_days_that_end_now() -> None:
    asked = parse_range(None, None, ZoneInfo("Europe/Berlin"), NOW)
    assert (asked.begin, asked.end) == (at("2026-05-02T22:00"), at("2026-06-01T12:15"))
    assert len(build_buckets(asked, Granularity.DAY, RollupProgress())) == 30


def test_dates_mean_their_first_moment_in_the_zone_and_moments_are_rounded_outwards() -> None:
    asked = parse_range(date(2026, 5, 1), date(2026, 5, 2), ZoneInfo("Asia/Kolkata"), NOW)
    assert (asked.begin, asked.end) == (at("2026-04-30T18:30"), at("2026-05-01T18:30"))
    asked = parse_range(
        NOW + timedelta(microseconds=1),
        NOW + timedelta(minutes=8, microseconds=1),
        ZoneInfo("UTC"),
        NOW,
    )
    assert (asked.begin, asked.end) == (at("2026-06-01T12:00"), at("2026-06-01T12:30"))
    assert asked.previous == TimeRange(
        at("2026-06-01T11:30"), at("2026-06-01T12:00"), ZoneInfo("UTC")
    )


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (NOW, NOW),
        (NOW, NOW - timedelta(days=1)),
        (date.max, None),
        (date.min, NOW),
        (NOW, date.max),
        (NOW + timedelta(1), None),
    ],
)
def test_no_time_between(begin: datetime, end: datetime | None) -> None:
    with pytest.raises(InvalidRange):
        parse_range(begin, end, ZoneInfo("Asia/Tokyo"), NOW)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "../etc/passwd",
        "/etc/passwd",
        "Europe",
        "right/UTC",
        "localtime",
        "a" * 300,
        "Zoë",
        "\x00",
    ],
)
def test_names_that_are_no_zone(name: str) -> None:
    with pytest.raises(UnknownTimeZone):
        parse_zone(name)


def test_a_series_does_not_grow_without_bounds() -> None:
    with pytest.raises(TooManyPoints):
        cut("1970-06-01T00:00", "2026-01-01T00:00", "UTC", "day")
    with pytest.raises(TooManyPoints):
        cut("2026-01-01T00:00", "8999-01-01T00:00", "UTC", "month")
