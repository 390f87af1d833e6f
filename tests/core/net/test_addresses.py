"""The allow list for addresses, range by range."""

from ipaddress import ip_address, ip_network

import pytest

from refract.core.net import AddressGuard, is_public
from refract.core.net.addresses import _V4_SPECIAL, _V6_SPECIAL, IpNetwork
from tests.core.net.corpus import OF


@pytest.mark.parametrize("text", OF["v4"] + OF["v6"])
def test_a_forbidden_address_is_forbidden(text: str) -> None:
    assert not is_public(ip_address(text))
    assert not AddressGuard().is_allowed(ip_address(text), 80)


@pytest.mark.parametrize("network", _V4_SPECIAL + _V6_SPECIAL, ids=str)
def test_a_special_range_is_forbidden_from_its_first_to_its_last_address(
    network: IpNetwork,
) -> None:
    assert not is_public(network[0])
    assert not is_public(network[-1])


@pytest.mark.parametrize(
    "text",
    "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 "  # noqa: SIM905 - shorter
    "126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 "
    "169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.31.195.255 192.31.197.0"
    " 192.52.192.255 192.52.194.0 192.88.98.255 "
    "192.88.100.0 192.167.255.255 192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0"
    " 198.51.99.255 198.51.101.0 "
    "203.0.112.255 203.0.114.0 223.255.255.255 2000:: 2001:200:: 2001:db7:ffff::1 2001:db9:: 2003::"
    " 2620:4f:7fff::1 2620:4f:8001:: "
    "3ffe:ffff::1 3fff:1000:: ::ffff:8.8.8.8 64:ff9b::8.8.8.8".split(),
)
def test_what_lies_next_to_a_special_range_is_public(text: str) -> None:
    assert is_public(ip_address(text))


def test_an_address_bound_to_an_interface_is_never_public() -> None:
    assert is_public(ip_address("2606:4700::1111"))
    assert not is_public(ip_address("2606:4700::1111%eth0"))
    assert not is_public(ip_address("::ffff:8.8.8.8%1"))


def test_public_addresses_are_open_on_the_given_ports_alone() -> None:
    guard = AddressGuard(ports=frozenset((80, 8080)))

    assert [
        port for port in (0, 22, 80, 443, 8080) if guard.is_allowed(ip_address("8.8.8.8"), port)
    ] == [80, 8080]


@pytest.mark.parametrize("inside", ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1"])
def test_a_network_that_the_operator_opened_is_open_on_any_port(inside: str) -> None:
    guard = AddressGuard(allow=(ip_network("10.1.0.0/16"), ip_network("fd12::/16")))

    assert guard.is_allowed(ip_address(inside), 3000)
    assert not guard.is_allowed(ip_address("10.2.0.1"), 80)
    assert not guard.is_allowed(ip_address("fd13::1"), 80)
    assert not guard.is_allowed(ip_address("8.8.8.8"), 3000)
