"""What is typed into the search box, and how each database is asked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.core.settings import Dialect
from refract.library.search.terms import Match, Terms, in_any_field, in_title, parse


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Postgres queue", Terms(("postgres", "queue"))),
        ('"exact words" -not', Terms(("exact", "words"), ("not",))),
        ("#Databases x -#Old", Terms(("x",), (), ("databases",), ("old",))),
        ('#"machine learning"', Terms((), (), ("machine learning",))),
        ("c# a#b", Terms(("c", "a", "b"))),
        ('100% _ - # "', Terms(("100",))),
        ("日本語", Terms(("日本", "本語"))),
        ("a b c d e f g h i j", Terms(("a", "b", "c", "d", "e", "f", "g", "h"))),
        ("same same -same", Terms(("same",))),
    ],
)
def test_what_is_typed(typed: str, meant: Terms) -> None:
    assert parse(typed) == meant


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_nothing_that_is_typed_reaches_the_language_of_a_database(typed: str) -> None:
    terms = parse(typed)
    dialects: tuple[Dialect, ...] = ("sqlite", "postgresql", "mysql")
    for dialect in dialects:
        for match in (in_title(7, terms), in_any_field(7, terms)):
            bare = match.spelled(dialect)
            for word in (" AND ", " OR ", " NOT "):
                bare = bare.replace(word, " ")
            assert set(bare) <= set("abcdefghijklmnopqrstuvwxyz0123456789 *:+-&|!()"), bare


def test_how_each_database_is_asked() -> None:
    match = Match(1, ["w0a", "w0b"], ["w0c"], ["w0d", "w0e"], ["t0a", "t0b"])
    assert match.spelled("sqlite") == "(u01z AND w0a* AND w0b* AND (w0d* OR w0e*)) NOT (w0c* OR (t0a* AND t0b*))"
    assert match.spelled("postgresql") == "u01z & w0a:* & w0b:* & (w0d:* | w0e:*) & !(t0a:* & t0b:*) & !w0c:*"
    assert match.spelled("mysql") == "+u01z +w0a* +w0b* +(w0d* w0e*) -w0c*"
    assert match.exception == Match(1, ["t0a", "t0b"])
