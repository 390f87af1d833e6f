"""Which network asks, and how often it may: for doors that are open to strangers."""

from starlette.requests import Request

from refract.core.address import TrustedProxies, network_of, network_text
from refract.core.redis import shared_redis
from refract.core.runtime import Runtime
from refract.web.limits import RateLimited
from refract.web.shared_limits import SharedBuckets


def network_behind(request: Request, rt: Runtime) -> str:
    """The part of the client's address that may be kept, whatever proxies of ours stand in between."""
    return _network(request, rt).hex()


def network_text_behind(request: Request, rt: Runtime) -> str | None:
    """Return the same in CIDR notation, for people to read; None for a peer without an address."""
    return network_text(_network(request, rt))


def _network(request: Request, rt: Runtime) -> bytes:
    peer = request.client.host if request.client else ""
    forwarded = [value.encode("latin-1") for value in request.headers.getlist("x-forwarded-for")]
    return network_of(rt.part(_proxies).client(peer, forwarded))


def _proxies(rt: Runtime) -> TrustedProxies:
    return TrustedProxies(rt.settings.trusted_proxies)


class NetworkLimit:
    """So many requests a minute for each network, over all processes where there is Redis. None sets no limit."""

    def __init__(self, rt: Runtime, kind: str, per_minute: int | None) -> None:
        self._rt = rt
        self._per_minute = per_minute
        self._buckets = SharedBuckets(rt.part(shared_redis), kind, size=per_minute or 1, per_second=(per_minute or 1) / 60)

    async def count(self, request: Request, now: float) -> None:
        """Note one request, or raise `RateLimited`."""
        if self._per_minute is None:
            return
        left = await self._buckets.take(network_behind(request, self._rt), now)
        if left < 0:
            raise RateLimited(limit=self._per_minute, per="a minute for each network", retry_after=self._buckets.wait(left))
