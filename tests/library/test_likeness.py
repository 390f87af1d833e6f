"""Texts are similar by the words they share, and rare words count for more."""

import pytest

from refract.library.likeness import WordSpace

BREWING = {"coffee": 1.0, "grinder": 2.0}
TEXTS = [
    {"coffee": 1.0, "water": 1.0},
    {"coffee": 1.0, "grinder": 1.0},
    {"coffee": 1.0, "bread": 3.0},
    {"tea": 1.0},
]


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    space = WordSpace(TEXTS)
    common, rare, _, _ = [
        space.build_vector(BREWING).compute_cosine(space.build_vector(text)) for text in TEXTS
    ]

    assert 0 < common < rare < 1


def test_likeness_is_between_nothing_and_all() -> None:
    space = WordSpace(TEXTS)
    mine = space.build_vector(BREWING)

    assert mine.compute_cosine(mine) == pytest.approx(1)
    assert mine.compute_cosine(
        space.build_vector({word: 7 * weight for word, weight in BREWING.items()})
    ) == pytest.approx(1)
    assert mine.compute_cosine(space.build_vector(TEXTS[3])) == 0
    assert mine.compute_cosine(space.build_vector({})) == 0
    assert space.build_vector(TEXTS[1]).compute_cosine(mine) == mine.compute_cosine(
        space.build_vector(TEXTS[1])
    )


def test_words_that_only_one_text_has_set_it_apart() -> None:
    space = WordSpace(TEXTS)
    plain, longer = (
        space.build_vector({"grinder": 1.0}),
        space.build_vector({"grinder": 1.0, "unheard": 1.0}),
    )

    assert longer.compute_cosine(space.build_vector(TEXTS[1])) < plain.compute_cosine(
        space.build_vector(TEXTS[1])
    )


def test_no_texts_are_no_reason_to_fail() -> None:
    space = WordSpace([])

    assert space.build_vector({"a": 1.0}).compute_cosine(
        space.build_vector({"a": 1.0})
    ) == pytest.approx(1)
