"""How many requests and streams each client network may have open in one process."""

from collections import Counter
from types import TracebackType
from typing import Self

from starlette.types import Scope

from refract.core.address import TrustedProxies, is_loopback, network_of
from refract.core.errors import Limited
from refract.core.runtime import Runtime


class TooManyOpenRequests(Limited):
    """Your network has {limit} requests open at once, which is as many as it may. Try again in {retry_after} seconds."""


class TooManyNetworkStreams(Limited):
    """Your network has {limit} live streams open, which is as many as it may. Try again in {retry_after} seconds."""


class NetworkShares:
    """The open requests and streams of each network. This machine itself has no limit."""

    def __init__(self, rt: Runtime) -> None:
        self._proxies = TrustedProxies(rt.settings.trusted_proxies)
        self._max_requests = rt.settings.open_requests_per_network
        self._max_streams = rt.settings.streams_per_network
        self.requests: Counter[bytes] = Counter()
        self.streams: Counter[bytes] = Counter()

    def open(self, scope: Scope) -> "NetworkShare":
        """Take the share of a request; raise `TooManyOpenRequests` if its network has none left."""
        network = self._network(scope)
        if self._max_requests is not None and self.requests[network] >= self._max_requests and network:
            scope["state"]["refusal"] = "open_requests"
            raise TooManyOpenRequests(limit=self._max_requests, retry_after=1)
        return NetworkShare(self, network)

    def check_stream(self, scope: Scope) -> None:
        """Raise `TooManyNetworkStreams` if this request may not become a stream."""
        network = self._network(scope)
        if self._max_streams is not None and self.streams[network] >= self._max_streams and network:
            scope["state"]["refusal"] = "streams"
            raise TooManyNetworkStreams(limit=self._max_streams, retry_after=10)

    def _network(self, scope: Scope) -> bytes:
        peer = scope["client"][0] if scope.get("client") else ""
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        client = self._proxies.client(peer, forwarded)
        return b"" if is_loopback(client) else network_of(client)


class NetworkShare:
    """The share that one request takes of its network's, for as long as the block runs."""

    def __init__(self, shares: NetworkShares, network: bytes) -> None:
        self._network = network
        self._streams = shares.streams
        self._taken = shares.requests

    def become_stream(self) -> None:
        """Count as a stream from now on: it may last, and holds up no request."""
        self.__exit__(None, None, None)
        self._taken = self._streams
        self.__enter__()

    def __enter__(self) -> Self:
        self._taken[self._network] += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self._taken[self._network] -= 1
        if not self._taken[self._network]:
            del self._taken[self._network]
