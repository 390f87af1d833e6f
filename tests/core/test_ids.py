"""Snowflakes never repeat, and a code stands for exactly one number."""

import multiprocessing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.clock import EPOCH, ManualClock, SystemClock
from refract.core.ids import (
    ALPHABET,
    MAX_ID,
    ClockMovedBackwards,
    SnowflakeGenerator,
    WorkerIdLost,
    decode_base62,
    draw_link_id,
    encode_base62,
    get_creation_time,
    get_link_time,
    get_min_id,
    get_min_link_id,
)

START = datetime(2026, 6, 1, tzinfo=UTC)


def _many(worker: int) -> list[int]:
    ids = SnowflakeGenerator(worker, SystemClock())
    made: list[int] = []
    while len(made) < 250_000:
        made += ids.next_ids(2_500)
    return made


def test_a_million_ids_from_four_processes_without_a_repeat() -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        batches = pool.map(_many, range(4))

    assert all(batch == sorted(batch) for batch in batches)
    assert len({one for batch in batches for one in batch}) == 1_000_000


def test_the_parts_of_an_id() -> None:
    made = SnowflakeGenerator(5, ManualClock(START)).next_id()

    assert made >> 22 == (START - datetime(2024, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert (made >> 12) & 1023 == 5
    assert made & 4095 == 0
    assert get_creation_time(made) == START
    assert get_min_id(START) <= made < get_min_id(START + timedelta(milliseconds=1))


def test_a_full_millisecond_waits_for_the_next() -> None:
    clock = ManualClock(START)
    ids = SnowflakeGenerator(1, clock, wait=clock.advance)

    made = ids.next_ids(5_000)

    assert len(set(made)) == 5_000
    assert made == sorted(made)
    assert get_creation_time(made[-1]) > START


def test_a_clock_that_steps_back_a_little_is_waited_for() -> None:
    clock = ManualClock(START)
    ids = SnowflakeGenerator(1, clock, wait=clock.advance)
    before = ids.next_id()
    clock.advance(-0.005)

    assert ids.next_id() > before


@pytest.mark.parametrize("step", [-1.0, -3600.0])
def test_a_clock_that_steps_back_far_is_refused_until_it_has_caught_up(step: float) -> None:
    clock = ManualClock(START)
    ids = SnowflakeGenerator(1, clock, wait=clock.advance)
    before = ids.next_id()
    clock.advance(step)
    with pytest.raises(ClockMovedBackwards):
        ids.next_id()
    clock.advance(-step + 0.001)

    assert ids.next_id() > before


def test_nothing_is_issued_below_what_an_earlier_holder_may_have_used() -> None:
    clock = ManualClock(START)
    floor = get_min_id(START + timedelta(milliseconds=3)) >> 22
    ids = SnowflakeGenerator(1, clock, floor_ms=floor, wait=clock.advance)

    assert ids.next_id() >> 22 > floor


def test_without_the_lease_nothing_is_issued() -> None:
    with pytest.raises(WorkerIdLost):
        SnowflakeGenerator(1, ManualClock(START), can_issue=lambda: False).next_id()


@pytest.mark.parametrize(
    ("number", "code"),
    [(0, "0"), (61, "Z"), (62, "10"), (123456789012345678, "97qS0b7N2m"), (MAX_ID, "aZl8N0y58M7")],
)
def test_base62_vectors(number: int, code: str) -> None:
    assert encode_base62(number) == code
    assert decode_base62(code) == number


def test_the_example_in_the_seed_document_is_another_number() -> None:
    assert decode_base62("dBvJIX9uyO") == 184172476255371918


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        "01",
        "097qS0b7N2m",
        "aZl8N0y58M8",
        "ZZZZZZZZZZZ",
        "100000000000",
        "97qS0b7N2-",
        "97qS0b7N2\u0660",
        "é",
        " 1",
        "1 ",
    ],
)
def test_what_is_not_a_code(text: str) -> None:
    assert decode_base62(text) is None


@given(st.integers(0, MAX_ID))
def test_every_number_has_one_code(number: int) -> None:
    assert decode_base62(encode_base62(number)) == number


@given(st.text(ALPHABET, min_size=1, max_size=12))
def test_every_code_that_is_read_is_written_the_same(text: str) -> None:
    number = decode_base62(text)
    assert number is None or encode_base62(number) == text


_MOMENTS = st.integers(0, 2**31).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(_MOMENTS, _MOMENTS)
def test_ids_of_older_links_are_in_the_order_of_their_creation(
    one: datetime, other: datetime
) -> None:
    first, second = sorted((one, other))

    assert get_min_link_id(first) <= get_min_link_id(second)
    assert first - get_link_time(get_min_link_id(first)) < timedelta(minutes=1)
    assert get_link_time(draw_link_id(first)) <= first


def test_codes_of_the_oldest_links_are_as_long_as_those_of_new_ones() -> None:
    for moment in (EPOCH - timedelta(days=1), EPOCH, START):
        assert len(encode_base62(draw_link_id(moment))) in (10, 11)


def test_links_since_the_beginning_of_ids_are_found_as_before() -> None:
    assert get_min_link_id(START) == get_min_id(START)
    assert get_link_time(get_min_id(START)) == START
