"""Parsed URLs: what we read from the serialised form is what the parser itself returns."""

import pytest
from ada_url import URL
from hypothesis import given
from hypothesis import strategies as st

from refract.core.urls import BadUrl, complete_url, parse_web_url

_TEXT = st.text(alphabet="abzAZ019-._~!$&'()*+,;=:@/?#[]%äß日 \\|^`{}\"<>", max_size=12)
_HOSTS = st.sampled_from(
    [
        "example.com",
        "EXAMPLE.com.",
        "sub.bücher.example",
        "127.0.0.1",
        "0x7f.1",
        "[::1]",
        "[2001:DB8::0:1]",
        "a_b.example",
        "xn--bcher-kva.example",
    ]
)
_PORTS = st.sampled_from(["", ":", ":80", ":443", ":8080", ":00443", ":65535"])
_TAILS = st.builds(
    lambda slash, text: f"{slash}{text}",
    st.sampled_from(["", "/", "//", "/a/../", "?", "#", "/?", "/#", "/?#"]),
    _TEXT,
)


@given(
    st.sampled_from(["http://", "HTTPS://", "https:/", "https:", "ftp://"]), _HOSTS, _PORTS, _TAILS
)
def test_the_parts_of_an_address_are_the_parsers_own(
    scheme: str, host: str, port: str, tail: str
) -> None:
    typed = f"{scheme}{host}{port}{tail}".strip(" ")
    try:
        found = parse_web_url(typed)
    except BadUrl:
        return
    url = URL(typed)
    assert (found.href, found.scheme, found.host, found.port) == (
        url.href,
        url.protocol.removesuffix(":"),
        url.hostname,
        url.port,
    )
    assert (found.path, found.query, found.fragment) == (url.pathname, url.search, url.hash)
    assert (url.username, url.password) == ("", "")


@pytest.mark.parametrize(
    "typed",
    [
        "https://user@example.com/",
        "https://user:pw@example.com/",
        "https://:@example.com/",
        "https://@example.com/",
        "https://a@b@example.com/",
    ],
)
def test_credentials_are_refused_however_they_are_written(typed: str) -> None:
    with pytest.raises(BadUrl, match="user name and password"):
        parse_web_url(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "ftp://example.com/",
        "javascript:alert(1)",
        "mailto:ada@example.com",
        "data:text/html,x",
        "file:///etc/passwd",
    ],
)
def test_only_web_addresses_are_accepted_and_the_reason_names_the_scheme(typed: str) -> None:
    with pytest.raises(BadUrl, match=f"not {typed.split(':', maxsplit=1)[0]}:"):
        parse_web_url(typed)


@pytest.mark.parametrize(("length", "fits"), [(253, True), (254, False), (1_800, False)])
def test_no_host_is_longer_than_dns_can_hold(length: int, fits: bool) -> None:
    """Parsers accept it; the column for hosts does not."""
    host = ("a" * 62 + ".") * (length // 63) + "a" * (length % 63)

    if fits:
        assert parse_web_url(f"https://{host}./").host == f"{host}."
    else:
        with pytest.raises(BadUrl, match="host name"):
            parse_web_url(f"https://{host}./")


@pytest.mark.parametrize(
    ("typed", "href"),
    [
        ("example.com/x", "https://example.com/x"),
        ("example.com:8080/x", "https://example.com:8080/x"),
        ("10.0.0.7:81?q", "https://10.0.0.7:81/?q"),
    ],
)
def test_a_host_without_a_scheme_gets_https(typed: str, href: str) -> None:
    assert parse_web_url(complete_url(typed)).href == href
