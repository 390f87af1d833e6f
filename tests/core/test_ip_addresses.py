from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.ip_addresses import TrustedProxies, format_anonymous_address, get_network

FORWARDED = b"x-forwarded-for"
OURS = TrustedProxies(map(ip_network, ["10.0.0.0/8", "fd00::/8"]))


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("203.0.113.77", "203.0.113.0"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::"),
        ("::ffff:203.0.113.77", "203.0.113.0"),
        ("fe80::1%eth0", "fe80::"),
        ("", None),
        ("unknown", None),
        ("1.2.3", None),
        ("1.2.3.4.5", None),
        ("1.2.3.4\x00", None),
    ],
)
def test_what_may_be_kept_of_an_address(address: str, kept: str | None) -> None:
    assert format_anonymous_address(get_network(address)) == kept


@given(st.ip_addresses())
def test_neither_last_octet_nor_last_eighty_bits_survive(address: object) -> None:
    network = get_network(str(address))

    assert len(network) in (3, 6)


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # Not one of our proxies: its header is ignored.
        ("198.51.100.1", [b"1.1.1.1"], "198.51.100.1"),
        ("10.0.0.1", [b"1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", [b"6.6.6.6, 1.1.1.1"], "1.1.1.1"),  # the left one was written by the client
        ("10.0.0.1", [b"6.6.6.6, 1.1.1.1, 10.9.9.9"], "1.1.1.1"),
        ("10.0.0.1", [b"6.6.6.6", b"1.1.1.1", b"10.9.9.9"], "1.1.1.1"),
        ("10.0.0.1", [b"10.2.2.2, 10.9.9.9"], "10.2.2.2"),
        ("10.0.0.1", [b"1.1.1.1:4711"], "1.1.1.1"),
        ("10.0.0.1", [b"[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", [b"[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", [b"2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", [b"1.1.1.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", [b"1.1.1.1, , 10.9.9.9"], "10.9.9.9"),
        ("10.0.0.1", [b""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("::ffff:10.0.0.1", [b"1.1.1.1"], "1.1.1.1"),
        ("fd00::1", [b"1.1.1.1"], "1.1.1.1"),
        ("", [b"1.1.1.1"], ""),
        ("10.0.0.1", [b"7.7.7.7" + b", 10.1.1.1" * 100], "10.1.1.1"),
    ],
)
def test_the_client_is_the_nearest_stranger(peer: str, forwarded: list[bytes], client: str) -> None:
    others = [(b"host", b"go.test"), (b"x-forwarded", b"9.9.9.9"), (b"x-real-ip", b"9.9.9.9")]
    headers = [*others, *((FORWARDED, value) for value in forwarded)]
    assert OURS.find_client((peer, 4711), headers) == client


def test_a_peer_without_an_address_has_no_network() -> None:
    assert not OURS.find_client(None, [(FORWARDED, b"1.1.1.1")])
    assert OURS.find_network(None, [(FORWARDED, b"1.1.1.1")]) == b""


def test_nobody_is_trusted_by_default() -> None:
    headers = [(FORWARDED, b"1.1.1.1")]
    assert TrustedProxies().find_client(("127.0.0.1", 1), headers) == "127.0.0.1"


@given(st.lists(st.binary(max_size=60)))
def test_whatever_is_forwarded_an_address_comes_out(forwarded: list[bytes]) -> None:
    headers = [(FORWARDED, value) for value in forwarded]
    assert OURS.find_network(("10.0.0.1", 1), headers) != b""
