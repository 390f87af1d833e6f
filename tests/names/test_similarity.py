"""Similar names: what the three parts guarantee, without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.names import similarity

WORDS = st.text(alphabet="abc-", min_size=1, max_size=12)


def _reference(one: str, other: str) -> int:
    above = list(range(len(other) + 1))
    for row, left in enumerate(one, start=1):
        line = [row]
        for column, right in enumerate(other, start=1):
            line.append(min(above[column] + 1, line[-1] + 1, above[column - 1] + (left != right)))
        above = line
    return above[-1]


@given(WORDS, WORDS)
def test_distance_counts_edits_up_to_two(one: str, other: str) -> None:
    edits = _reference(one, other)
    assert similarity.edit_distance(one, other) == (edits if edits <= 2 else None)


@given(WORDS, WORDS)
def test_a_name_within_two_edits_shares_a_part_with_what_was_typed(name: str, typed: str) -> None:
    shared = any(
        part in wanted
        for part, wanted in zip(
            similarity.split_key(name), similarity.generate_parts(typed), strict=True
        )
    )
    assert shared or similarity.edit_distance(name, typed) is None


@given(
    WORDS,
    st.lists(
        st.tuples(st.sampled_from("idr"), st.integers(0, 12), st.sampled_from("abc-")), max_size=2
    ),
)
def test_two_slips_of_the_finger_leave_a_part_whole(
    name: str, slips: list[tuple[str, int, str]]
) -> None:
    typed = name
    for kind, place, character in slips:
        at = min(place, len(typed))
        rest = typed[at:] if kind == "i" else typed[at + 1 :]
        typed = typed[:at] + ("" if kind == "d" else character) + rest
    if typed:
        assert any(
            part in wanted
            for part, wanted in zip(
                similarity.split_key(name), similarity.generate_parts(typed), strict=True
            )
        )


@pytest.mark.parametrize("key", ["a", "ab", "abc", "a" * 50])
def test_parts_fit_their_columns(key: str) -> None:
    assert all(len(part) <= 24 for part in similarity.split_key(key))


def test_the_number_of_pieces_is_bounded() -> None:
    assert (
        sum(
            len(wanted)
            for wanted in similarity.generate_parts(
                "abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmn"
            )
        )
        <= 75
    )
