"""The open connections of one process: their deadlines, and the share of each client network."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from refract.core.ip_addresses import TrustedProxies, get_network, is_loopback

CONNECTIONS_STATE_KEY: Final = "refract.connections"
"""The key in uvicorn's state under which each connection finds its `OpenConnections`."""
PASSING_STATE_KEY: Final = "refract.passing"
"""The key under which it finds how to pass itself on to another process, if there is one."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of a connection, in time and size. The sweep counts the seconds."""

    head_seconds: int = 8
    """From the start of a connection or request to the end of its headers."""
    body_seconds: int = 8
    """For a body to arrive, plus one for every `body_rate` bytes that have."""
    body_rate: int = 1024
    idle_seconds: int = 5
    """Between two requests."""
    stall_seconds: int = 30
    """For a client to read what was written."""
    head_bytes: int = 64 * 1024
    connections_per_network: int | None = None
    """Connections that one client network may have open; None sets no limit."""


class SweptConnection(Protocol):
    """A connection, as the sweep sees it."""

    def sweep(self, limits: ConnectionLimits) -> None: ...


class HostPrefixes(Protocol):
    """The prefixes of cache keys by raw values of `Host` that are known to be ours."""

    def get(self, host: bytes, /) -> bytes | None: ...


class AnyHost:
    """Takes every `Host` for the default domain, for servers that don't check it."""

    def get(self, _host: bytes | None, /) -> bytes:
        return b""


def _ignore(reason: str) -> None:
    """Count nothing."""


class OpenConnections:
    """The open connections of a process. `start` and `stop` belong to the lifespan."""

    def __init__(
        self,
        *,
        proxies: TrustedProxies | None = None,
        limits: ConnectionLimits | None = None,
        hosts: HostPrefixes | None = None,
        count_refusal: Callable[[str], None] | None = None,
    ) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._per_network: Counter[bytes] = Counter()
        self.proxies = proxies or TrustedProxies()
        self.limits = limits or ConnectionLimits()
        self.hosts: HostPrefixes = AnyHost() if hosts is None else hosts
        self.count_refusal = count_refusal or _ignore
        self.open: set[SweptConnection] = set()
        self.is_draining = False
        """Set before the process stops: every later response closes its connection."""

    def register(self, peer: str) -> bytes | None:
        """Return the network of a new connection (empty: unlimited), or None if it is full."""
        limit = self.limits.connections_per_network
        network = get_network(peer)
        if limit is None or not network or is_loopback(peer) or self.proxies.is_trusted(peer):
            return b""
        if self._per_network[network] >= limit:
            self.count_refusal("connections")
            return None
        self._per_network[network] += 1
        return network

    def unregister(self, network: bytes) -> None:
        """Release the share of a closed connection."""
        if network:
            self._per_network[network] -= 1
            if not self._per_network[network]:
                del self._per_network[network]

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + 1.0
        self._timer = loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        """End the sweep."""
        if self._timer is not None:
            self._timer.cancel()

    def sweep(self) -> None:
        """Let every connection check its timeout."""
        for connection in list(self.open):
            connection.sweep(self.limits)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = get_next_tick(self._due, loop.time())
        self._timer = loop.call_at(self._due, self._tick)
        self.sweep()


def get_next_tick(due: float, now: float) -> float:
    """Return the time of the tick after one that was due.

    Late ticks don't shift the schedule: ten delays in a row would make ten seconds eleven.
    """
    return due + 1.0 if now < due + 1.0 else now + 1.0
