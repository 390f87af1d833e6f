"""From the host of a URL to addresses that may be connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from refract.core.net.addresses import AddressGuard, IpAddress
from refract.core.net.errors import RefusedAddress, Unreachable
from refract.core.urls import WebUrl

HostResolver = Callable[[str], Awaitable[Sequence[IpAddress]]]


async def resolve_by_system(host: str) -> list[IpAddress]:
    """Ask the operating system, in the order in which it would try the answers."""
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
    """Look the host up, once, and refuse it if any answer is forbidden: a name with one foot inside is an attack."""
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
    """An address written as such. The URL parser has already turned octal, hex and short forms into the plain one."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def _check_host_name(host: str) -> None:
    """The parser leaves only letters, digits, dots, `-` and `_`; what remains are names that no DNS can hold."""
    labels = host.removesuffix(".").split(".")
    if len(host) > 254 or not all(0 < len(label) < 64 for label in labels) or labels[-1].isdigit():
        raise RefusedAddress(f"{host[:80]} is no host name")
