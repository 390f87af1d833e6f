"""Resolution of a URL's host to addresses that may be connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from refract.core.net.addresses import AddressGuard, IpAddress
from refract.core.net.errors import RefusedAddress, Unreachable
from refract.core.urls import WebUrl

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
