"""The client network of a request, behind trusted proxies."""

from starlette.requests import Request
from starlette.types import Scope

from refract.core.ip_addresses import TrustedProxies, format_network, get_network, is_loopback
from refract.core.runtime import Runtime
from refract.limits.errors import TooManyNetworkStreams, TooManyOpenRequests
from refract.limits.network_shares import NetworkShare, NetworkShares


def client_network(request: Request, rt: Runtime) -> str:
    """Return the part of the client's address that may be kept, as hexadecimal text."""
    return find_scope_network(request.scope, rt).hex()


def find_scope_network(scope: Scope, rt: Runtime) -> bytes:
    """Return the same as bytes, for requests outside the web framework."""
    return rt.singleton(create_trusted_proxies).find_network(scope.get("client"), scope["headers"])


def client_network_text(request: Request, rt: Runtime) -> str | None:
    """Return the same in CIDR notation, for people to read; None for a peer without an address."""
    return format_network(find_scope_network(request.scope, rt))


def open_share(scope: Scope, rt: Runtime) -> NetworkShare:
    """Return the slot of a request in its network's limit. Raises `TooManyOpenRequests`."""
    try:
        return rt.singleton(NetworkShares).open(_limited_network(scope, rt))
    except TooManyOpenRequests:
        scope["state"]["refusal"] = "open_requests"
        raise


def check_stream(request: Request, rt: Runtime) -> None:
    """Raise `TooManyNetworkStreams` if this request may not become a stream."""
    try:
        rt.singleton(NetworkShares).check_stream(_limited_network(request.scope, rt))
    except TooManyNetworkStreams:
        request.scope["state"]["refusal"] = "streams"
        raise


def _limited_network(scope: Scope, rt: Runtime) -> bytes:
    """Return the network whose shares count; empty for this machine itself, which has no limit."""
    client = rt.singleton(create_trusted_proxies).find_client(scope.get("client"), scope["headers"])
    return b"" if is_loopback(client) else get_network(client)


def create_trusted_proxies(rt: Runtime) -> TrustedProxies:
    """Return the proxies that the settings trust: `rt.singleton(create_trusted_proxies)`."""
    return TrustedProxies(rt.settings.trusted_proxies)
