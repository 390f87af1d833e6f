"""Words for search: pure functions, known results."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.words import (
    MAX_TOKEN,
    encode_number,
    encode_texts,
    encode_word,
    query_terms,
    spell_word,
    split_words,
)

MARK = "w0"


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
    assert list(split_words(text, tails=True)) == [
        unicodedata.normalize("NFC", word) for word in expected
    ]


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert list(split_words("Cafe\u0301")) == list(split_words("CAF\u00c9")) == ["café"]


def test_accents_may_be_left_out_when_searching() -> None:
    assert spell_word("café") == ("café", "cafe")
    assert spell_word("ﬁn") == ("ﬁn", "fin")
    assert spell_word("plain") == ("plain",)


def test_of_a_run_without_spaces_every_pair_is_sought() -> None:
    assert query_terms("日本語") == ["日本", "本語"]
    assert query_terms("語") == ["語"]
    assert query_terms('"foo" foo -bar') == ["foo", "bar"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            "Café Société, C++ & Zoë's jazz_2",
            "w0cafz006h w0cafe w0sociz006htz006h w0societe w0c w0zzoz006j w0zzoe w0s w0jazzzz w02",
        ),
        (
            "日本語の本 ไทย",
            (
                "w0z0k4lz0kdo w0z0kdoz0rdq w0z0rdqz09ke w0z09kez0kdo w0z0kdo w0z02tgz02s7"
                " w0z02s7z02si w0z02si"
            ),
        ),
        ("हिन्दी Straße ﬁn", "w0z01tlz01trz01t4z01u5z01t2z01ts w0strasse w0fin"),
        ("Ünïcode 100% x-y", "w0z0070nz006ncode w0unicode w0100 w0x w0y"),
    ],
)
def test_an_index_of_an_earlier_release_is_still_right(text: str, tokens: str) -> None:
    """Stored tokens are not rewritten on an upgrade: other tokens would not be found."""
    assert list(encode_texts(MARK, [text], 100)) == tokens.split()


@given(st.text(), st.text())
def test_a_beginning_of_a_word_is_a_beginning_of_its_token_and_nothing_else_is(
    start: str, rest: str
) -> None:
    whole, part = encode_word(MARK, start + rest), encode_word(MARK, start)
    assert whole.startswith(part)
    assert whole.isascii()
    assert whole.isalnum()
    assert 2 <= len(whole) <= MAX_TOKEN
    if not (start + rest).startswith(rest) and len(encode_word(MARK, rest)) < MAX_TOKEN:
        assert not whole.startswith(encode_word(MARK, rest))


@given(st.text())
def test_every_word_of_a_text_is_found_by_searching_for_the_text(text: str) -> None:
    known = encode_texts(MARK, [text], 10_000)
    for word in query_terms(text):
        assert any(one.startswith(encode_word(MARK, word)) for one in known)


def test_numbers_are_never_the_beginning_of_another() -> None:
    spelled = [encode_number("u0", number) for number in [*range(1, 3_000), 35**5, 2**63 - 1]]
    assert len(set(spelled)) == len(spelled)
    assert not any(
        one != other and other.startswith(one) for one in spelled[:200] for other in spelled
    )


def test_what_is_too_much_is_left_out() -> None:
    assert len(encode_texts(MARK, [" ".join(f"w{number}" for number in range(500))], 100)) == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Message Queues, C++ and C#", ["message", "queues", "c++", "and", "c#"]),
        ("node.js isn’t state-of-the-art.", ["node.js", "isn’t", "state-of-the-art"]),
        ("- .net ++ 'quoted'", ["net", "quoted"]),
        ("iPhone手机 日", ["iphone", "手机", "日"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ],
)
def test_compounds_are_one_word(text: str, expected: list[str]) -> None:
    assert list(split_words(text, compounds=True)) == [
        unicodedata.normalize("NFC", word) for word in expected
    ]


@given(st.text())
def test_compounds_change_where_words_are_joined_and_nothing_else(text: str) -> None:
    joined = [part for word in split_words(text, compounds=True) for part in split_words(word)]
    assert joined == list(split_words(text))
