"""Parsed searches, and their queries for each database."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.core.settings.model import Dialect
from refract.core.words import encode_word
from refract.library.search.terms import (
    SearchTerms,
    TokenMatch,
    match_any_field,
    match_title,
    parse_terms,
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Postgres queue", SearchTerms(("postgres", "queue"))),
        ('"exact words" -not', SearchTerms(("exact", "words"), ("not",))),
        ("#Databases x -#Old", SearchTerms(("x",), (), ("databases",), ("old",))),
        ('#"machine learning"', SearchTerms((), (), ("machine learning",))),
        ("c# a#b", SearchTerms(("c", "a", "b"))),
        ('100% _ - # "', SearchTerms(("100",))),
        ("日本語", SearchTerms(("日本", "本語"))),
        ("a b c d e f g h i j", SearchTerms(("a", "b", "c", "d", "e", "f", "g", "h"))),
        ("IS:Unread x", SearchTerms(("x",), states=(("unread", True),))),
        ("-is:unread is:read", SearchTerms(states=(("unread", False),))),
        (
            "is:favourite is:favorite -is:archived",
            SearchTerms(states=(("favorite", True), ("archived", False))),
        ),
        (
            '"is:unread" xis:read is:unreadable',
            SearchTerms(("is", "unread", "xis", "read", "unreadable")),
        ),
        ("same same -same", SearchTerms(("same",))),
    ],
)
def test_what_is_typed(typed: str, meant: SearchTerms) -> None:
    assert parse_terms(typed) == meant


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_nothing_that_is_typed_reaches_the_language_of_a_database(typed: str) -> None:
    terms = parse_terms(typed)
    dialects: tuple[Dialect, ...] = ("sqlite", "postgresql", "mysql")
    for dialect in dialects:
        for match in (match_title(7, terms), match_any_field(7, terms)):
            bare = match.to_query(dialect)
            for word in (" AND ", " OR ", " NOT "):
                bare = bare.replace(word, " ")
            assert set(bare) <= set("abcdefghijklmnopqrstuvwxyz0123456789 *:+-&|!()"), bare


def test_how_each_database_is_asked() -> None:
    match = TokenMatch(1, [("w0a", "p0a"), ("w0b",)], ["w0c"], [("t0a", "q0a"), ("t0b",)])
    assert (
        match.to_query("sqlite")
        == "(u01z AND (w0a* OR p0a*) AND w0b*) NOT (w0c* OR ((t0a* OR q0a*) AND t0b*))"
    )
    assert (
        match.to_query("postgresql")
        == "u01z & (w0a:* | p0a:*) & w0b:* & !((t0a:* | q0a:*) & t0b:*) & !w0c:*"
    )
    assert match.to_query("mysql") == "+u01z +(w0a* p0a*) +w0b* -w0c*"
    assert match.exception == TokenMatch(1, [("t0a", "q0a"), ("t0b",)])


def test_only_words_of_three_letters_are_looked_for_inside_others() -> None:
    assert match_title(1, parse_terms("ab abc")).every == [("t0ab",), ("t0abc", "q0abc")]
    assert match_any_field(1, parse_terms("ab abc 日本")).every == [
        ("w0ab",),
        ("w0abc", "q0abc", "p0abc"),
        (encode_word("w0", "日本"),),
    ]
