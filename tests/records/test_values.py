"""Times and texts as other systems write them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from refract.records.errors import BadRecord
from refract.records.values import check_text, clip_text, guess_moment, parse_moment, to_plain_text

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00+01:00",
        " 2026-01-01 00:00:00 ",
        "2026-01-01",
        "2026-01-01T00:00:00.000",
    ],
)
def test_moments_in_words(value: str) -> None:
    assert parse_moment(value, "x") == guess_moment(value) == NEW_YEAR


@pytest.mark.parametrize(
    "value", [1767225600, "1767225600", 1767225600.0, 1767225600000, "1767225600000000"]
)
def test_moments_in_seconds_and_parts_of_them(value: Any) -> None:
    assert guess_moment(value) == NEW_YEAR


@pytest.mark.parametrize("value", [None, "", "  ", "0000-00-00 00:00:00"])
def test_no_moment(value: Any) -> None:
    assert parse_moment(value, "x") is None
    assert guess_moment(value) is None


@pytest.mark.parametrize("value", ["tomorrow", "2026-13-01", "0001-01-01T00:00:00+23:59", "9" * 40])
def test_what_is_no_moment_is_refused_or_left_out(value: str) -> None:
    with pytest.raises(BadRecord, match=r"expiry: .* is not a time such as"):
        parse_moment(value, "expiry")
    assert guess_moment(value) is None


@pytest.mark.parametrize("value", ["1969-12-31", 0])
def test_a_guess_before_1970_is_none(value: Any) -> None:
    assert guess_moment(value) is None


@pytest.mark.parametrize("value", [True, {}, [], {"a": 1}])
def test_text_is_no_structure(value: Any) -> None:
    for read in (to_plain_text, guess_moment):
        with pytest.raises(BadRecord, match="Expected text, found"):
            read(value)


def test_text_is_cut_and_the_cut_is_noted() -> None:
    remarks: list[str] = []

    assert clip_text("title", "abc", 3, remarks) == "abc"
    assert clip_text("title", "abcd", 3, remarks) == "abc"
    assert remarks == ["title shortened to 3 characters"]


@pytest.mark.parametrize("value", ["a\0b", {"a": {"b\0": 1}}, [["\0"]]])
def test_u_0000_is_refused_wherever_it_stands(value: Any) -> None:
    with pytest.raises(BadRecord, match=r"U\+0000"):
        check_text(value)


@pytest.mark.parametrize("value", ["a\udcff", {"\ud800": 1}, [{"a": "\uffff"}]])
def test_bytes_that_were_no_text_are_refused(value: Any) -> None:
    with pytest.raises(BadRecord, match="Not valid text"):
        check_text(value)
