"""Open requests and streams of each client network in one process."""

from collections import Counter
from types import TracebackType
from typing import Self

from refract.core.runtime import Runtime
from refract.limits.errors import TooManyNetworkStreams, TooManyOpenRequests


class NetworkShares:
    """The open requests and streams of each network.

    The empty network, this machine itself, has no limit.
    """

    def __init__(self, rt: Runtime) -> None:
        self._max_requests = rt.settings.open_requests_per_network
        self._max_streams = rt.settings.streams_per_network
        self.requests: Counter[bytes] = Counter()
        self.streams: Counter[bytes] = Counter()

    def open(self, network: bytes) -> "NetworkShare":
        """Return the share of a request. Raises `TooManyOpenRequests`."""
        if (
            network
            and self._max_requests is not None
            and self.requests[network] >= self._max_requests
        ):
            raise TooManyOpenRequests(limit=self._max_requests, retry_after=1)
        return NetworkShare(self, network)

    def check_stream(self, network: bytes) -> None:
        """Raise `TooManyNetworkStreams` if a request of this network may not become a stream."""
        if network and self._max_streams is not None and self.streams[network] >= self._max_streams:
            raise TooManyNetworkStreams(limit=self._max_streams, retry_after=10)


class NetworkShare:
    """One request or stream of a network, counted while the block runs."""

    def __init__(self, shares: NetworkShares, network: bytes) -> None:
        self._network = network
        self._streams = shares.streams
        self._taken = shares.requests

    def become_stream(self) -> None:
        """Count as a stream instead of a request from now on, since a stream may last."""
        self.__exit__(None, None, None)
        self._taken = self._streams
        self.__enter__()

    def __enter__(self) -> Self:
        self._taken[self._network] += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._taken[self._network] -= 1
        if not self._taken[self._network]:
            del self._taken[self._network]
