"""Expansion of go links, case by case, and what no request can do to it."""

import string
from urllib.parse import unquote

import pytest
from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from refract.core.urls import MAX_URL_LENGTH, BadUrl
from refract.links.golinks.expansion import (
    MAX_HREF,
    ExpansionFailure,
    expand_template,
    split_extra_path,
)
from refract.links.golinks.template import has_placeholders, parse_template


def lead(
    destination: str, extra: str = "", query: str = "", *, forward_query: bool = False
) -> str | ExpansionFailure:
    return expand_template(
        parse_template(destination), split_extra_path(extra), query, forward_query=forward_query
    )


@pytest.mark.parametrize(
    ("destination", "extra", "location"),
    [
        ("https://example.com", "", "https://example.com/"),
        ("https://example.com/?", "", "https://example.com/?"),
        ("https://example.com", "a/b", "https://example.com/a/b"),
        ("https://example.com/docs", "a/b", "https://example.com/docs/a/b"),
        ("https://example.com/docs/", "a/b/", "https://example.com/docs/a/b/"),
        ("https://example.com/docs", "/", "https://example.com/docs"),
        ("https://example.com/docs?v=2#top", "a", "https://example.com/docs/a?v=2#top"),
        ("https://example.com/docs", "a//b///c", "https://example.com/docs/a/b/c"),
        ("https://example.com/docs", "//evil.example/x", "https://example.com/docs/evil.example/x"),
        ("https://example.com/p", "@scope/pkg;v=1,2", "https://example.com/p/@scope/pkg;v=1,2"),
        ("https://example.com/p", "a%2Fb", "https://example.com/p/a%2Fb"),
        ("https://example.com/p", "a%3Fx=1%23y", "https://example.com/p/a%3Fx=1%23y"),
        ("https://example.com/p", "caf%C3%A9", "https://example.com/p/caf%C3%A9"),
        ("https://example.com/p", "%FF%FE", "https://example.com/p/%FF%FE"),
        ("https://example.com/p", "100%25", "https://example.com/p/100%25"),
        ("https://example.com/p", "%252e%252e", "https://example.com/p/%252e%252e"),
        ("https://bücher.example/p", "ü", "https://xn--bcher-kva.example/p/%C3%BC"),
        ("https://example.com:8443/p", "a", "https://example.com:8443/p/a"),
        ("https://[2001:DB8::1]:8080/p", "a", "https://[2001:db8::1]:8080/p/a"),
    ],
)
def test_extra_path_goes_behind_the_path_of_a_plain_destination(
    destination: str, extra: str, location: str
) -> None:
    assert lead(destination, extra) == location


@pytest.mark.parametrize(
    ("destination", "extra", "location"),
    [
        ("https://jira.example/browse/{1}", "PROJ-1", "https://jira.example/browse/PROJ-1"),
        ("https://jira.example/browse/{1}", "PROJ-1/", "https://jira.example/browse/PROJ-1"),
        ("https://h.example/{2}/{1}", "a/b", "https://h.example/b/a"),
        ("https://h.example/{2}", "skipped/b", "https://h.example/b"),
        ("https://h.example/{1}/{1}", "a", "https://h.example/a/a"),
        ("https://h.example/{repo}/tree/{branch=main}", "core", "https://h.example/core/tree/main"),
        (
            "https://h.example/{repo}/tree/{branch=main}",
            "core/dev",
            "https://h.example/core/tree/dev",
        ),
        ("https://h.example/{repo}/{1}", "one/two", "https://h.example/two/one"),
        ("https://h.example/{2}/{repo}", "one/two", "https://h.example/two/one"),
        ("https://h.example/{1=x}", "", "https://h.example/x"),
        ("https://h.example/{1=}", "", "https://h.example/"),
        ("https://h.example/{1=}/end", "", "https://h.example/end"),
        ("https://h.example/{b=a/b?c}", "", "https://h.example/a%2Fb%3Fc"),
        ("https://h.example/wiki/{*}", "a/b/c", "https://h.example/wiki/a/b/c"),
        ("https://h.example/wiki/{*}", "a/b/", "https://h.example/wiki/a/b/"),
        ("https://h.example/wiki/{*}", "", "https://h.example/wiki/"),
        ("https://h.example/{*}/edit", "a/b/", "https://h.example/a/b/edit"),
        ("https://h.example/{*}/edit", "", "https://h.example/edit"),
        ("https://h.example/{*}/{1}", "evil.example", "https://h.example/evil.example"),
        ("https://h.example/{*=start/here}", "", "https://h.example/start/here"),
        ("https://h.example/{1}/{*}", "a/b/c", "https://h.example/a/b/c"),
        (
            "https://h.example/search?q={*}",
            "a b&c=d/e",
            "https://h.example/search?q=a%20b%26c%3Dd/e",
        ),
        ("https://h.example/search?q={1}&lang={2=en}", "a", "https://h.example/search?q=a&lang=en"),
        ("https://h.example/search?q={1}", "a%2Fb", "https://h.example/search?q=a%2Fb"),
        ("https://h.example/#/search/{1}", "a?b#c", "https://h.example/#/search/a%3Fb%23c"),
        ("https://h.example/{1}", "a%2F%2Fevil.example", "https://h.example/a%2F%2Fevil.example"),
        ("https://h.example/{1}/{2}", "{2}/x", "https://h.example/%7B2%7D/x"),
        ("https://h.example/pre{1}post", "-", "https://h.example/pre-post"),
        ("https://h.example/zq0x0z/{1}", "a", "https://h.example/zq0x0z/a"),
        ("https://h.example/{not one}", "a", "https://h.example/%7Bnot%20one%7D/a"),
        ('https://h.example/?q={"a":1}', "", "https://h.example/?q={%22a%22:1}"),
    ],
)
def test_placeholders(destination: str, extra: str, location: str) -> None:
    assert lead(destination, extra) == location


@pytest.mark.parametrize(
    ("destination", "extra", "reason"),
    [
        ("https://h.example/{1}", "", "This link needs a value for {1}."),
        ("https://h.example/{1}/{b=x}/{c}", "a/b", "This link needs a value for {c}."),
        (
            "https://h.example/{1}",
            "a/b",
            "The path has 2 values, but this link takes 1.",
        ),
        (
            "https://h.example/{1}/{2}",
            "a/b/c",
            "The path has 3 values, but this link takes 2.",
        ),
        ("https://h.example/{1}", "..", "can't contain"),
        ("https://h.example/{1}", "%2e%2E", "can't contain"),
        ("https://h.example/{1}", "..%2F..%2Fetc", "can't contain"),
        ("https://h.example/{1}", "a%5C..%5Cb", "can't contain"),
        ("https://h.example/.{1}", ".", "can't contain"),
        ("https://h.example/{1}{2}", "./.", "can't contain"),
        ("https://h.example/{*}", "a/../b", "can't contain"),
        ("https://h.example/docs", "../admin", "can't contain"),
        ("https://h.example/docs", "%2e%2e/admin", "can't contain"),
        ("https://h.example/docs", "a%0D%0ASet-Cookie:x", "control"),
        ("https://h.example/docs", "a%00b", "control"),
        ("https://h.example/{1}", "%7f", "control"),
        ("https://h.example/docs", "x" * MAX_HREF, "The limit is"),
    ],
)
def test_what_does_not_fit_says_why(destination: str, extra: str, reason: str) -> None:
    answer = lead(destination, extra)

    assert isinstance(answer, ExpansionFailure)
    assert reason in answer.reason


def test_steps_in_a_query_are_only_text() -> None:
    assert lead("https://h.example/s?q={1}", "..") == "https://h.example/s?q=.."


@pytest.mark.parametrize(
    ("destination", "query", "location"),
    [
        ("https://h.example/p?a=1&b=2", "b=9", "https://h.example/p?a=1&b=9"),
        ("https://h.example/p?a=1&b=2&a=3", "a=x&a=y", "https://h.example/p?a=x&a=y&b=2"),
        ("https://h.example/p?%61=1", "a=2", "https://h.example/p?a=2"),
        ("https://h.example/p", "a=1&&b", "https://h.example/p?a=1&b"),
        ("https://h.example/p?a=1#f", "c=+%20", "https://h.example/p?a=1&c=+%20#f"),
        ("https://h.example/p?a=1", "", "https://h.example/p?a=1"),
        ("https://h.example/p", "q=<'\">#{x}", "https://h.example/p?q=%3C%27%22%3E%23%7Bx%7D"),
        ("https://h.example/p", "q=é\n", "https://h.example/p?q=%C3%A9%0A"),
        ("https://h.example/p?q={1=x}", "q=mine", "https://h.example/p?q=mine"),
    ],
)
def test_query_goes_along_only_when_the_link_says_so(
    destination: str, query: str, location: str
) -> None:
    assert lead(destination, "", query, forward_query=True) == location
    assert lead(destination, "", query) == lead(destination)


@pytest.mark.parametrize(
    ("destination", "reason"),
    [
        ("https://{1}/x", "only in the path or the query"),
        ("https://{1}.example.com/x", "only in the path or the query"),
        ("https://example.com:{1}/x", "only in the path or the query"),
        ("https://{user}@example.com/x", "only in the path or the query"),
        ("{1}://example.com/", "only in the path or the query"),
        ("{*}", "only in the path or the query"),
        ("https:{1}", "only in the path or the query"),
        ("https://exa{1}mple.com?x", "only in the path or the query"),
        ("https://example.com{1}", "only in the path or the query"),
        ("https://h.example/%2{1}", "follow a % sign"),
        ("https://h.example/?a=%{1}", "follow a % sign"),
        ("https://h.example/{1}/../x", "before /../"),
        ("https://h.example/{1=a}/{1=b}", "two different defaults"),
        ("https://h.example/{1=\u202e}", "invisible"),
        ("https://h.example/" + "{1}" * 21, "The limit is 20."),
        ("https://h.example/{1}" + "x" * MAX_URL_LENGTH, "The limit is"),
        ("ftp://h.example/{1}", "Only http:// and https://"),
        ("https://h.example/\n{1}", "control"),
        ("https://h.example/a\\{1}", "backslash"),
    ],
)
def test_templates_that_are_refused_say_why(destination: str, reason: str) -> None:
    with pytest.raises(BadUrl, match=reason):
        parse_template(destination)


def test_template_describes_itself() -> None:
    template = parse_template("HTTPS://Example.COM/a/{repo}/x/{branch=main}?q={*}#{3}")

    assert template.href == "https://example.com/a/{repo}/x/{branch=main}?q={*}#{3}"
    assert template.fixed_href == "https://example.com/a/"
    assert template.format_usage("gh") == "/gh/{repo}/{branch=main}/{3}/{*}"
    assert template.origin == "https://example.com"
    assert parse_template("https://example.com/find?q={1}").fixed_href == "https://example.com/find"
    assert parse_template("https://example.com/a?b#c").fixed_href == "https://example.com/a?b#c"
    assert has_placeholders("https://h/{x}")
    assert not has_placeholders("https://h/{x y}")


# -- what no input can do

HOSTS = ["example.com", "bücher.example", "127.0.0.1", "[::1]", "intranet", "a.b.example."]
GAPS = [
    "{1}",
    "{2}",
    "{3}",
    "{*}",
    "{name}",
    "{branch=main}",
    "{d=..}",
    "{e=//evil.example}",
    "{f=%2e%2e}",
    "{1}{2}",
]
LITERALS = ["", "a", "x-", ".", "..", "%2e", "%", "é", "@", ":", "\\"]
segment_texts = st.one_of(
    st.text(max_size=12),
    st.text("./\\%2eEfF5cC:@?#&={}[]\r\n\t\0 ", max_size=12),
    st.sampled_from(
        [
            "..",
            ".",
            "%2e%2e",
            "//evil.example",
            "\\evil",
            "@evil.example",
            ":80",
            "{2}",
            "{*}",
            "http://evil",
            "\udcff",
            "?",
            "#",
            "",
        ]
    ),
)
raw_paths = st.text(string.ascii_letters + string.digits + "./%-_~!$&'()*+,;=:@", max_size=30)
queries = st.one_of(st.text(max_size=30), st.text("ab=&+%?#/\\'\"<>{}\r\n ", max_size=20))


@st.composite
def destinations(draw: st.DrawFn) -> str:
    """Generate destinations with placeholders in every allowed place, and some invalid ones."""
    pieces = st.lists(st.sampled_from(GAPS + LITERALS), max_size=3).map("".join)
    path = "".join(f"/{draw(pieces)}" for _ in range(draw(st.integers(1, 4))))
    query = f"?q={draw(pieces)}" if draw(st.booleans()) else ""
    fragment = f"#{draw(pieces)}" if draw(st.booleans()) else ""
    port = draw(st.sampled_from(["", ":8080", ":443"]))
    scheme, host = draw(st.sampled_from(["http", "https"])), draw(st.sampled_from(HOSTS))
    return f"{scheme}://{host}{port}{path}{query}{fragment}"


@given(destinations(), st.lists(segment_texts, max_size=5), queries, st.booleans())
@example("https://example.com/{1}{2}", [".", "."], "", False)
@example("https://example.com/.{e=//evil.example}", [], "", False)
def test_no_request_changes_scheme_or_host_or_breaks_the_bytes(
    destination: str, segments: list[str], query: str, forward: bool
) -> None:
    try:
        template = parse_template(destination)
    except BadUrl:
        return
    answer = expand_template(template, segments, query, forward_query=forward)
    if isinstance(answer, ExpansionFailure):
        assert answer.reason.endswith(".")
        return

    url = URL(answer)
    assert url.href == answer
    assert answer.isascii()
    assert all(0x21 <= ord(character) <= 0x7E for character in answer)
    assert f"{url.protocol}//{url.host}" == template.origin
    assert not url.username
    assert not url.password
    assert len(answer) <= MAX_HREF


@given(raw_paths, queries)
def test_extra_path_stays_below_the_destination(extra: str, query: str) -> None:
    answer = lead("https://example.com/base", extra, query, forward_query=True)
    if not isinstance(answer, ExpansionFailure):
        path = URL(answer).pathname
        assert path == "/base" or path.startswith("/base/")
        assert "//" not in path
        decoded = unquote(path).replace("\\", "/").split("/")
        assert ".." not in decoded


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=2))
def test_every_value_arrives_as_it_was_given(values: list[str]) -> None:
    """Values are inserted and encoded once: decoding the result returns the value."""
    answer = expand_template(parse_template("https://h.example/?a={1}&b={2}"), values)
    if isinstance(answer, ExpansionFailure):
        assert "control" in answer.reason
        return

    assert [unquote(pair.partition("=")[2]) for pair in URL(answer).search[1:].split("&")] == values
