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


class Misses:
    """Names and codes that do not exist, asked for in a minute: one budget for every door, for each network and for each user.

    Without it the codes of unlisted links could be walked. What exists is answered however much of the budget is left.
    """

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._allowed = rt.settings.misses_per_minute
        size = self._allowed or 1
        self._buckets = SharedBuckets(rt.part(shared_redis), "miss", size=size, per_second=size / 60)

    async def count(self, network: str, user_id: int | None = None) -> None:
        """Note one miss of a network, and of a user if one is signed in. Raises RateLimited when either has used its budget."""
        await self._take(network)
        if user_id is not None:
            await self.count_user(user_id)

    async def count_user(self, user_id: int) -> None:
        await self._take(f"user:{user_id}")

    async def count_request(self, request: Request, user_id: int | None = None) -> None:
        await self.count(network_behind(request, self._rt), user_id)

    async def _take(self, name: str) -> None:
        if self._allowed is None:
            return
        left = await self._buckets.take(name, self._rt.clock.monotonic())
        if left < 0:
            raise RateLimited(limit=self._allowed, per="a minute for links that do not exist", retry_after=self._buckets.wait(left))
