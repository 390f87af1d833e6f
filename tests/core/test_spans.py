"""Words of a search in a text: where they are, and the part around them."""

import pytest

from refract.core.words import find_spans, make_snippet, query_terms


@pytest.mark.parametrize(
    ("text", "typed", "marked"),
    [
        ("The quick brown fox", "BRO fox", "The quick [bro]wn [fox]"),
        ("Café Society", "cafe", "[Café] Society"),
        ("Cafe\u0301 crème", "café", "[Cafe\u0301] crème"),
        ("Straßenbahn", "strasse", "[Straßenbahn]"),
        ("日本語の本", "日本", "[日本]語の本"),
        ("日本語の本", "日本語", "[日本語]の本"),
        ("postgres as a queue", "gres", "post[gres] as a queue"),
        ("aaaa", "aa", "[aaaa]"),
        ("a.b <b>", "b", "a.[b] <[b]>"),
        ("nothing", "", "nothing"),
        ("", "x", ""),
    ],
)
def test_words_are_found_however_they_are_written(text: str, typed: str, marked: str) -> None:
    parts, last = [], 0
    for start, end in find_spans(text, query_terms(typed)):
        parts += [text[last:start], "[", text[start:end], "]"]
        last = end
    assert "".join([*parts, text[last:]]) == marked


def test_a_snippet_has_the_word_and_whole_words_around_it() -> None:
    text = "word " * 50 + "needle " + "more " * 50
    found = make_snippet(text, ["needle"])
    assert found.startswith("…word word")
    assert found.endswith("more…")
    assert "needle" in found
    assert len(found) <= 145


def test_a_snippet_of_a_short_text_is_all_of_it() -> None:
    assert make_snippet("a  needle\nhere", ["needle"]) == "a needle here"
    assert make_snippet("nothing", ["needle"]) == ""


def test_a_snippet_of_one_long_word_is_cut() -> None:
    found = make_snippet("x" * 1000 + "needle" + "x" * 1000, ["needle"])
    assert "needle" in found
    assert len(found) < 200
