"""Client addresses and networks, the same for the fast lane and everything else."""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

_INSIDE = tuple(
    ip_network(text)
    for text in (
        *("127.0.0.0/8", "::1/128"),  # this machine
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),  # private
        *("169.254.0.0/16", "fe80::/10"),  # link-local
    )
)
_MAPPED = b"\0" * 10 + b"\xff\xff"
_MAX_HOPS = 32
FORWARDED_HEADER = b"x-forwarded-for"


class TrustedProxies:
    """The networks whose `X-Forwarded-For` header is trusted."""

    def __init__(self, networks: Iterable[IPv4Network | IPv6Network] = ()) -> None:
        self._networks = tuple(networks)

    def is_trusted(self, host: str) -> bool:
        """Return whether this address is one of our proxies. IPv4 inside IPv6 counts as IPv4."""
        packed = pack_address(host) if self._networks else None
        if packed is None:
            return False
        address = ip_address(packed)
        return any(
            address in network for network in self._networks if network.version == address.version
        )

    def find_network(
        self, peer: tuple[str, int] | None, headers: Iterable[tuple[bytes, bytes]]
    ) -> bytes:
        """Return the part of the client's address that may be stored; empty if it has none."""
        return get_network(self.find_client(peer, headers))

    def find_client(
        self, peer: tuple[str, int] | None, headers: Iterable[tuple[bytes, bytes]]
    ) -> str:
        """Return the nearest address that is not one of our proxies.

        Peer and headers are as in ASGI. The values of every `X-Forwarded-For` header are read from
        the right, since each proxy appends the address it saw. An entry that is not an address ends
        the search: what is left of it is not trustworthy.
        """
        nearest = peer[0] if peer else ""
        if not self.is_trusted(nearest):
            return nearest
        forwarded = [value for name, value in headers if name == FORWARDED_HEADER]
        hops = b",".join(forwarded).rsplit(b",", _MAX_HOPS)
        for hop in reversed(hops[-_MAX_HOPS:]):
            host = _parse_hop(hop)
            if pack_address(host) is None:
                break
            nearest = host
            if not self.is_trusted(host):
                break
        return nearest


def pack_address(host: str) -> bytes | None:
    """Return four or sixteen bytes, or None if it is not an address."""
    try:
        if ":" not in host:
            return socket.inet_pton(socket.AF_INET, host)
        packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except (OSError, ValueError):
        return None
    return packed[12:] if packed.startswith(_MAPPED) else packed


def get_network(host: str) -> bytes:
    """Return the part of an address that may be stored.

    Three bytes of IPv4, six of IPv6, none of anything else.
    """
    packed = pack_address(host)
    if packed is None:
        return b""
    return packed[:3] if len(packed) == 4 else packed[:6]


def format_anonymous_address(network: bytes) -> str | None:
    """Return the anonymised address: its last octet (IPv4) or last 80 bits (IPv6) are zero."""
    if len(network) == 3:
        return socket.inet_ntop(socket.AF_INET, network + b"\0")
    if len(network) == 6:
        return socket.inet_ntop(socket.AF_INET6, network + b"\0" * 10)
    return None


def format_network(network: bytes) -> str | None:
    """Return the network in CIDR notation, `203.0.113.0/24` or `2001:db8:1::/48`."""
    address = format_anonymous_address(network)
    return None if address is None else f"{address}/{len(network) * 8}"


def _parse_hop(hop: bytes) -> str:
    """Parse `203.0.113.7`, `203.0.113.7:4711`, `2001:db8::7` or `[2001:db8::7]:4711`."""
    text = hop.strip().decode("latin-1")
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def is_loopback(host: str) -> bool:
    """Return whether a host, as a bind address or in a URL, can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_inside(host: str) -> bool:
    """Return whether an address belongs to this machine or to a private network."""
    packed = pack_address(host)
    if packed is None:
        return False
    address = ip_address(packed)
    return any(address in network for network in _INSIDE if network.version == address.version)
