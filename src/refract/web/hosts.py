"""Host names that this installation serves. Requests for others are rejected (DNS rebinding).

A page whose own name resolves to our IP address could otherwise read what only its visitor's
network may see. Ports are not compared: tunnels and mapped ports change them, and they protect
nothing.
"""

import socket
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import Scope

from refract.core.errors import Malformed, RefractError
from refract.core.ip_addresses import is_loopback, pack_address
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings

MAX_SPELLINGS: Final = 256
EXEMPT_PATHS: Final = frozenset({"/health", "/ready", "/metrics", "/api/v1/domains/tls"})
"""Requested by machines that know a process by its IP address only."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_WILDCARD_ADDRESSES: Final = ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound


class InvalidHost(Malformed):
    """The request must have exactly one Host header."""


class MisdirectedRequest(RefractError):
    """This installation doesn't serve the host of this request. Its URL is {public_url}."""

    status = 421


class AcceptedHosts:
    """The hosts that requests may name. `spellings` caches raw values that were accepted before."""

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
        self.spellings: set[bytes] = set(_iter_spellings(names, {None, public.port, settings.port}))

    def is_accepted(self, value: bytes) -> bool:
        """Return whether a request may name this host."""
        if value in self.spellings:
            return True
        name = parse_host(value)
        known = name in self._names or (
            self._accepts_any_address and name is not None and _is_local_name(name)
        )
        if known and len(self.spellings) < MAX_SPELLINGS:
            self.spellings.add(value)
        return known

    def find_problem(self, scope: Scope) -> RefractError | None:
        """Return the error for the host that a request names, if any. HTTP/1.0 may name none."""
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1:
            return None if not named and scope["http_version"] == "1.0" else InvalidHost()
        if self.is_accepted(named[0]) or scope["path"] in EXEMPT_PATHS:
            return None
        return MisdirectedRequest(public_url=self._public_url)


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
