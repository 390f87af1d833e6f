"""Words as they are searched for: pure functions, known answers."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.words import LONGEST_TOKEN, WORD, number_token, sought, spellings, token, tokens, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The quick  brown-fox", ["the", "quick", "brown", "fox"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("snake_case it's 100%", ["snake", "case", "it", "s", "100"]),
        ("日本語", ["日本", "本語", "語"]),
        ("iPhone手机 x", ["iphone", "手机", "机", "x"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("한국어", ["한국", "국어", "어"]),
        ("%_'\"()*:&|!<->", []),
        ("", []),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert list(words(text)) == [unicodedata.normalize("NFC", word) for word in expected]


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert list(words("Cafe\u0301")) == list(words("CAF\u00c9")) == ["café"]


def test_accents_may_be_left_out_when_searching() -> None:
    assert spellings("café") == ("café", "cafe")
    assert spellings("ﬁn") == ("ﬁn", "fin")
    assert spellings("plain") == ("plain",)


def test_of_a_run_without_spaces_every_pair_is_sought() -> None:
    assert sought("日本語") == ["日本", "本語"]
    assert sought("語") == ["語"]
    assert sought('"foo" foo -bar') == ["foo", "bar"]


@given(st.text(), st.text())
def test_a_beginning_of_a_word_is_a_beginning_of_its_token_and_nothing_else_is(start: str, rest: str) -> None:
    whole, part = token(WORD, start + rest), token(WORD, start)
    assert whole.startswith(part)
    assert whole.isascii()
    assert whole.isalnum()
    assert 2 <= len(whole) <= LONGEST_TOKEN
    if not (start + rest).startswith(rest) and len(token(WORD, rest)) < LONGEST_TOKEN:
        assert not whole.startswith(token(WORD, rest))


@given(st.text())
def test_every_word_of_a_text_is_found_by_searching_for_the_text(text: str) -> None:
    known = tokens(WORD, [text], 10_000)
    for word in sought(text):
        assert any(one.startswith(token(WORD, word)) for one in known)


def test_numbers_are_never_the_beginning_of_another() -> None:
    spelled = [number_token("u0", number) for number in [*range(1, 3_000), 35**5, 2**63 - 1]]
    assert len(set(spelled)) == len(spelled)
    assert not any(one != other and other.startswith(one) for one in spelled[:200] for other in spelled)


def test_what_is_too_much_is_left_out() -> None:
    assert len(tokens(WORD, [" ".join(f"w{number}" for number in range(500))], 100)) == 100
