"""Parsing of omnibox input."""

import pytest

from refract.home.omnibox_parser import find_commands, parse_go_path, parse_input


@pytest.mark.parametrize(
    ("typed", "kind", "text"),
    [
        ("https://example.com/a?b=c#d", "shorten", "https://example.com/a?b=c#d"),
        (" example.com/page ", "shorten", "https://example.com/page"),
        ("http://localhost:8000/x", "shorten", "http://localhost:8000/x"),
        ("ftp://example.com", "shorten", "ftp://example.com"),  # the form says why it cannot be
        ("/roadmap", "open", "roadmap"),
        ("/jira/PROJ-1", "open", "jira/PROJ-1"),
        ("//evil.test", "open", "evil.test"),  # security review, Low: it led to another site
        ("///evil.test/x", "open", "evil.test/x"),
        ("//", "search", "//"),
        ("/a b", "search", "/a b"),
        ("/", "search", "/"),
        ("#planning", "tag", "planning"),
        ("# engineering tools", "tag", "engineering tools"),
        ("#", "search", "#"),
        ("roadmap", "search", "roadmap"),
        ("road map", "search", "road map"),
        ("what is 1.5", "search", "what is 1.5"),
        ("", "nothing", ""),
        ("   ", "nothing", ""),
    ],
)
def test_what_was_typed(typed: str, kind: str, text: str) -> None:
    meaning = parse_input(typed)
    assert (meaning.kind, meaning.text) == (kind, text)


def test_commands_are_called_by_the_beginnings_of_their_words_where_their_part_is_there() -> None:
    assert [str(one.label) for one in find_commands("set", ["settings"])] == ["Settings"]
    assert [str(one.label) for one in find_commands("jobs admin", ["admin"])] == ["Admin: jobs"]
    assert find_commands("jobs", ["links"]) == []
    assert find_commands("", ["links"]) == []


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("roadmap", "roadmap"),
        ("go/roadmap", "roadmap"),
        ("/jira/PROJ-1", "jira/PROJ-1"),
        ("jira PROJ-1", "jira/PROJ-1"),
        ("  ", ""),
    ],
)
def test_the_path_behind_a_keyword(typed: str, path: str) -> None:
    assert parse_go_path(typed) == path


@pytest.mark.parametrize(
    "typed",
    ["//evil.test", "/ /evil.test", "/\t/evil.test", "go// /evil.test", "/\u2003//evil.test"],
)
def test_a_keyword_never_leads_to_another_site(typed: str) -> None:
    """The finding: spaces became slashes last, so `/app/go?q=/%09/evil.test` left the site."""
    assert parse_go_path(typed) == "evil.test"
