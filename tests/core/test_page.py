"""Cursors belong to one question, and any tampering is noticed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.page import MAX_CURSOR, Cursors, InvalidCursor, Value
from refract.core.secrets import Secret

CURSORS = Cursors(Secret(b"k" * 40))
POSITION: list[Value] = [datetime(2026, 6, 1, 12, 0, 0, 123456, tzinfo=UTC), 42, "ü", None, 1.5]


def test_a_cursor_brings_back_what_was_put_in() -> None:
    cursor = CURSORS.make(["links", "created"], POSITION)

    assert CURSORS.read(["links", "created"], cursor) == POSITION
    assert len(cursor) <= MAX_CURSOR


@pytest.mark.parametrize("question", [["links", "updated"], ["links"], "links", None])
def test_a_cursor_of_another_question_is_refused(question: object) -> None:
    with pytest.raises(InvalidCursor):
        CURSORS.read(question, CURSORS.make(["links", "created"], POSITION))


def test_a_cursor_of_another_installation_is_refused() -> None:
    with pytest.raises(InvalidCursor):
        Cursors(Secret(b"x" * 40)).read("q", CURSORS.make("q", POSITION))


@given(st.integers(0, 200), st.characters(codec="ascii"))
def test_any_change_is_noticed(index: int, character: str) -> None:
    cursor = CURSORS.make("q", [1, "two"])
    index %= len(cursor)
    changed = cursor[:index] + character + cursor[index + 1 :]
    if changed != cursor:
        with pytest.raises(InvalidCursor):
            CURSORS.read("q", changed)


@given(st.text(max_size=600))
def test_any_text_at_all_is_refused_and_never_crashes(text: str) -> None:
    with pytest.raises(InvalidCursor):
        CURSORS.read("q", text)
