"""The corpus of destinations: each verdict with its reason, and the host that is reached."""

import string
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from refract.core.clock import ManualClock
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.urls import normalize_host
from refract.links.golinks.expansion import MAX_HREF, ExpansionFailure, expand_template
from refract.links.golinks.template import parse_template
from refract.links.safety.errors import InvalidUrl, LinkLoop
from refract.links.safety.service import CheckedDestination, DestinationChecker
from tests.conftest import START, make_settings
from tests.corpus.urls import ACCEPTED, LOOPS, REFUSED, WITHOUT_SCHEME

NOTHING: Any = SimpleNamespace()


@pytest.fixture(scope="module")
def safety(tmp_path_factory: pytest.TempPathFactory) -> DestinationChecker:
    """The checks that need nobody's answer: reading, and loops."""
    settings = make_settings(tmp_path_factory.mktemp("corpus"))
    return DestinationChecker(
        Runtime(
            settings=settings, db=NOTHING, clock=ManualClock(START), ids=NOTHING, secret=NOTHING
        )
    )


def short(text: str) -> str:
    return ascii(text)[1:60]


def test_the_corpus_is_large_enough() -> None:
    assert len(ACCEPTED) + len(REFUSED) + len(LOOPS) >= 200


@pytest.mark.parametrize("typed", REFUSED, ids=short)
def test_refused_input_says_why(safety: DestinationChecker, typed: str) -> None:
    answer = safety._parse_destination(typed)

    assert isinstance(answer, InvalidUrl)
    assert REFUSED[typed] in answer.message
    assert answer.errors[0].message == answer.message


@pytest.mark.parametrize("typed", LOOPS, ids=short)
def test_our_own_addresses_are_loops(safety: DestinationChecker, typed: str) -> None:
    assert isinstance(safety._parse_destination(typed), LinkLoop)


@pytest.mark.parametrize("typed", WITHOUT_SCHEME)
def test_a_host_without_a_scheme_gets_one(safety: DestinationChecker, typed: str) -> None:
    answer = safety._parse_destination(typed)

    assert isinstance(answer, CheckedDestination)
    assert answer.as_typed == f"https://{typed}"


@pytest.mark.parametrize("typed", ACCEPTED, ids=short)
def test_accepted_input_leads_to_the_host_it_shows(safety: DestinationChecker, typed: str) -> None:
    answer = safety._parse_destination(typed)

    assert isinstance(answer, CheckedDestination)
    assert answer.host == ACCEPTED[typed]
    assert answer.as_typed == typed
    _assert_one_reading(answer)


def _assert_one_reading(answer: CheckedDestination) -> None:
    """The bytes that would go out mean the same to a browser and to the strictest old parser."""
    location = expand_template(
        parse_template(answer.as_typed),
        ["x"] * (parse_template(answer.as_typed).last_position or 0),
    )
    if isinstance(
        location, ExpansionFailure
    ):  # a default that is refused as a path is refused when followed
        return
    assert location.isascii()
    assert all(0x21 <= ord(character) <= 0x7E for character in location)
    assert len(location) <= MAX_HREF
    browser = URL(location)
    assert browser.href == location
    assert browser.protocol in ("http:", "https:")
    assert (browser.username, browser.password) == ("", "")
    assert browser.hostname == answer.host
    other = urlsplit(location)
    assert other.username is None
    assert other.password is None
    assert other.scheme == browser.protocol[:-1]
    assert normalize_host(other.hostname or "") == normalize_host(answer.host).strip("[]")


# -- anything at all

ODD = ":/\\@?#[]%.{}<>|^`'\" \t\r\n\0\u3002\u00ad\u200b\uff0f\uff20\u2100①"
schemes = st.sampled_from(
    ["http", "https", "HTTP", "hTTps", "javascript", "data", "ftp", "", "http+x"]
)
slashes = st.sampled_from([":", ":/", "://", ":///", ":\\\\", ":/\\"])
pieces = st.text(string.ascii_letters + string.digits + ODD, max_size=12)
hosts = st.sampled_from(
    [
        "good.example",
        "go.test",
        "127.0.0.1",
        "[::1]",
        "bücher.example",
        "1.1",
        "0x7f.1",
        "xn--bcher-kva.example",
    ]
)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    """Near misses: right in most places, strange in some."""
    before, after = draw(pieces), draw(pieces)
    return f"{draw(schemes)}{draw(slashes)}{before}{draw(hosts)}{after}{draw(pieces)}"


@given(
    st.one_of(
        addresses(),
        st.text(max_size=60),
        st.builds(lambda rest: f"https://good.example/{rest}", st.text(max_size=40)),
    )
)
@example("http://good.example\\@evil.example/")
@example("https://good.example/{1}\r\nX: y")
def test_whatever_is_accepted_has_one_reading(safety: DestinationChecker, typed: str) -> None:
    answer = safety._parse_destination(typed)

    if isinstance(answer, RefractError):
        assert answer.status == 422
        assert answer.message
        return
    _assert_one_reading(answer)
