"""The addresses that may be connected to, by our own allow list, and those of a host.

`ipaddress.is_global` differs between Python versions and accepts wrong addresses, so it is not
used.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from refract.core.net.errors import RefusedAddress, Unreachable
from refract.core.urls import WebUrl

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

_V4_SPECIAL = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's host agent, reachable only from its virtual machines
        "169.254.0.0/16",  # link-local, metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT relays
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
_V6_UNICAST = IPv6Network("2000::/3")
_V6_SPECIAL = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
_V4_INSIDE = (
    IPv6Network("::ffff:0:0/96"),  # mapped: the kernel speaks IPv4
    # NAT64: in IPv6-only networks, every IPv4 site has such an address.
    IPv6Network("64:ff9b::/96"),
)


def unwrap_ipv4(address: IpAddress) -> IpAddress:
    """Return the IPv4 address that a connection to an IPv6 address would go to, if any."""
    if isinstance(address, IPv6Address) and any(address in network for network in _V4_INSIDE):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_public(address: IpAddress) -> bool:
    """Return whether this address is reachable from the whole internet."""
    if isinstance(address, IPv6Address) and address.scope_id:
        return False
    address = unwrap_ipv4(address)
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4_SPECIAL)
    return address in _V6_UNICAST and not any(address in network for network in _V6_SPECIAL)


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Public addresses on a few ports; and, on any port, the networks that the operator allowed.

    An operator who allows a network knows its services, and services on unusual ports are the
    reason to allow it.
    """

    allow: tuple[IpNetwork, ...] = ()
    ports: frozenset[int] = frozenset((80, 443))

    def is_allowed(self, address: IpAddress, port: int) -> bool:
        inner = unwrap_ipv4(address)
        if any(address in network or inner in network for network in self.allow):
            return True
        return port in self.ports and is_public(address)


# Resolution of a URL's host to addresses that may be connected to.

HostResolver = Callable[[str], Awaitable[Sequence[IpAddress]]]


async def resolve_by_system(host: str) -> list[IpAddress]:
    """Return the operating system's addresses, in the order in which it would try them."""
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as exc:
        raise Unreachable(f"{host}: {exc.strerror}") from exc
    return [ip_address(answer[4][0]) for answer in answers]


def get_port(url: WebUrl) -> int:
    return int(url.port) if url.port else 443 if url.scheme == "https" else 80


async def resolve_allowed_addresses(
    url: WebUrl, guard: AddressGuard, resolve: HostResolver
) -> list[IpAddress]:
    """Resolve the host once, and refuse it if any address is forbidden.

    A name with both public and internal addresses is an attack.
    """
    literal = _parse_literal(url.host)
    if literal is None:
        _check_host_name(url.host)
        addresses = list(dict.fromkeys(await resolve(url.host)))
    else:
        addresses = [literal]
    if not addresses:
        raise Unreachable(f"{url.host} has no address")
    port = get_port(url)
    for address in addresses:
        if not guard.is_allowed(address, port):
            raise RefusedAddress(f"{url.host} is {address}, port {port}")
    return addresses


def _parse_literal(host: str) -> IpAddress | None:
    """Return an address literal.

    The URL parser has already normalised octal, hex and short forms.
    """
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def _check_host_name(host: str) -> None:
    """Refuse names that DNS cannot hold.

    The URL parser leaves only letters, digits, dots, `-` and `_`.
    """
    labels = host.removesuffix(".").split(".")
    if len(host) > 254 or not all(0 < len(label) < 64 for label in labels) or labels[-1].isdigit():
        raise RefusedAddress(f"{host[:80]} is no host name")
