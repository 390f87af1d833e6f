"""Parsed searches, and their queries for each database."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.core.settings.model import Dialect
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
    match = TokenMatch(1, ["w0a", "w0b"], ["w0c"], ["w0d", "w0e"], ["t0a", "t0b"])
    assert (
        match.to_query("sqlite")
        == "(u01z AND w0a* AND w0b* AND (w0d* OR w0e*)) NOT (w0c* OR (t0a* AND t0b*))"
    )
    assert (
        match.to_query("postgresql")
        == "u01z & w0a:* & w0b:* & (w0d:* | w0e:*) & !(t0a:* & t0b:*) & !w0c:*"
    )
    assert match.to_query("mysql") == "+u01z +w0a* +w0b* +(w0d* w0e*) -w0c*"
    assert match.exception == TokenMatch(1, ["t0a", "t0b"])
