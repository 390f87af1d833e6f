"""Host names that this installation serves. Requests for others are rejected (DNS rebinding).

The default domain is the host of the base URL; other domains answer short links only.

A page whose own name resolves to our IP address could otherwise read what only its visitor's
network may see. Ports are not compared: tunnels and mapped ports change them, and they protect
nothing.
"""

import socket
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from starlette.types import Scope

from refract.core.errors import Malformed, RefractError
from refract.core.ip_addresses import is_loopback, pack_address
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings

MAX_SPELLINGS: Final = 256
EXEMPT_PATHS: Final = frozenset({"/health", "/ready", "/metrics", "/api/v1/domains/tls"})
"""Requested by machines that know a process by its IP address only."""
_DOMAIN_STATE: Final = "domain"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_WILDCARD_ADDRESSES: Final = ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound


class InvalidHost(Malformed):
    """The request must have exactly one Host header."""


class MisdirectedRequest(RefractError):
    """This installation doesn't serve the host of this request. Its URL is {public_url}."""

    status = 421


class AcceptedHosts:
    """The hosts that requests may name.

    `prefixes` has raw values of `Host` that were accepted before, with the prefix of the cache keys
    of their domain: the host, or nothing for the default domain. It is never replaced: connections
    hold a reference.
    """

    def __init__(self, settings: Settings) -> None:
        self._public_url = settings.public_url
        self._accepts_any_address = settings.base_url is None
        public = urlsplit(settings.public_url)
        names = {public.hostname or ""}
        if settings.base_url is None:
            machine = socket.gethostname().lower()
            names |= {
                *_LOOPBACK,
                machine,
                machine.partition(".")[0],
                f"{machine.partition('.')[0]}.local",
            }
            names |= {settings.host.lower()} - {*_WILDCARD_ADDRESSES}
        elif is_loopback(public.hostname or ""):
            names |= {*_LOOPBACK}
        self._names = frozenset(names)
        self._ports = {None, public.port, settings.port}
        self._domains: frozenset[str] = frozenset()
        self._max_prefixes = MAX_SPELLINGS
        self.prefixes = dict.fromkeys(_iter_spellings(names, self._ports), b"")

    def set_domains(self, hosts: Iterable[str]) -> None:
        """Accept the hosts of these other domains, and of no others than these."""
        self._domains = frozenset(hosts) - self._names
        known = {host.encode() for host in self._domains}
        for value, prefix in list(self.prefixes.items()):
            if prefix and prefix not in known:
                del self.prefixes[value]
        for host in self._domains:
            self.prefixes |= dict.fromkeys(_iter_spellings([host], self._ports), host.encode())
        self._max_prefixes = MAX_SPELLINGS + len(self._ports) * len(self._domains)

    def find_domain(self, value: bytes) -> str | None:
        """Return the domain of a value of `Host`: empty for the default one, None if unknown."""
        prefix = self.prefixes.get(value)
        if prefix is not None:
            return prefix.decode()
        name = parse_host(value)
        if name is None:
            return None
        if name in self._domains:
            domain = name
        elif name in self._names or (self._accepts_any_address and _is_local_name(name)):
            domain = ""
        else:
            return None
        if len(self.prefixes) < self._max_prefixes:
            self.prefixes[value] = domain.encode()
        return domain

    def is_accepted(self, value: bytes) -> bool:
        """Return whether a request may name this host."""
        return self.find_domain(value) is not None

    def find_problem(self, scope: Scope) -> RefractError | None:
        """Return the error for the host that a request names, if any. HTTP/1.0 may name none.

        The domain of the request is noted for `get_domain`.
        """
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1:
            return None if not named and scope["http_version"] == "1.0" else InvalidHost()
        domain = self.find_domain(named[0])
        if domain:
            scope.setdefault("state", {})[_DOMAIN_STATE] = domain
        if domain is not None or scope["path"] in EXEMPT_PATHS:
            return None
        return MisdirectedRequest(public_url=self._public_url)


def get_domain(scope: Scope) -> str:
    """Return the host of the domain that a request is for; empty for the default domain."""
    domain: str = scope.get("state", {}).get(_DOMAIN_STATE, "")
    return domain


def move_to_domain(scope: Scope, host: str, path: str, query: str) -> Scope:
    """Return the same request for a path of another domain. Its path and query are as sent."""
    return {
        **scope,
        "path": unquote(path),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "state": {**scope.get("state", {}), _DOMAIN_STATE: host},
    }


def create_accepted_hosts(rt: Runtime) -> AcceptedHosts:
    """Return the hosts of this process."""
    return AcceptedHosts(rt.settings)


def parse_host(value: bytes) -> str | None:
    """Return the lowercase name in a `Host` header, without its port; None if it is malformed."""
    text = value.decode("latin-1").lower()
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        port = port.removeprefix(":") if port.startswith(":") or not port else "?"
        if not bracket or pack_address(name) is None:
            return None
    else:
        name, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return None
    return name.removesuffix(".") or None


def _is_local_name(name: str) -> bool:
    """Return whether a name can't be rebound: an IP address, or below `.localhost`."""
    return pack_address(name) is not None or name.endswith(".localhost")


def _iter_spellings(names: Iterable[str], ports: set[int | None]) -> Iterable[bytes]:
    for name in names:
        written = f"[{name}]" if ":" in name else name
        for port in ports:
            yield (written if port is None else f"{written}:{port}").encode("latin-1", "replace")
