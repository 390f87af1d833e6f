"""Limits of calls per network or user: approximate, in memory and Redis, never in a database."""

from contextlib import suppress

from refract.core.ip_addresses import get_network
from refract.core.phrases import Phrase
from refract.core.redis import create_redis
from refract.core.runtime import Runtime
from refract.limits.buckets import SharedBuckets
from refract.limits.errors import RateLimited


class SharedLimit:
    """A number of calls per subject and time span, across processes with Redis.

    None sets no limit.
    """

    def __init__(
        self, rt: Runtime, kind: str, limit: int | None, *, per: Phrase, seconds: int = 60
    ) -> None:
        """Create the limit.

        `kind` names the buckets, `per` completes "N are allowed …", `seconds` is the time span.
        """
        self._clock = rt.clock
        self._limit = limit
        self._per = per
        self.exhausted_until_ns = 0
        """Until when a subject may have no call left; in the past if none was refused."""
        size = limit or 1
        self._buckets = SharedBuckets(
            rt.singleton(create_redis), kind, size=size, per_second=size / seconds
        )

    async def charge(self, subject: str) -> None:
        """Count one call of a subject, such as a network or a user. Raises `RateLimited`."""
        if self._limit is None:
            return
        self._require(await self._buckets.take(subject, self._clock.monotonic()))

    def note_call(self, subject: str) -> None:
        """Count a call that another process charges, so that this one knows when none is left."""
        if self._limit is not None:
            with suppress(RateLimited):
                self._require(self._buckets.take_own(subject, self._clock.monotonic()))

    def check(self, subject: str) -> None:
        """Raise `RateLimited` if a subject has no call left. Nothing is counted."""
        if self._limit is not None:
            self._require(self._buckets.peek(subject, self._clock.monotonic()))

    def is_exhausted(self, subject: str) -> bool:
        """Return whether a subject has no call left. Nothing is counted."""
        return self._limit is not None and self._buckets.peek(subject, self._clock.monotonic()) < 0

    def _require(self, left: float) -> None:
        """Raise `RateLimited` if a bucket had no token; note until when it has none."""
        if left >= 1 or self._limit is None:
            return
        wait = self._buckets.retry_after(left if left < 0 else left - 1)
        self.exhausted_until_ns = max(
            self.exhausted_until_ns, self._clock.now_ns() + wait * 1_000_000_000
        )
        if left < 0:
            raise RateLimited(limit=self._limit, per=self._per, retry_after=wait)


LOOPBACK_NETWORKS = frozenset(get_network(address).hex() for address in ("127.0.0.1", "::1"))


class MissLimit(SharedLimit):
    """Requests for names and codes that do not exist: one limit for every way in.

    Counted per minute, by network and by user, so that the codes of unlisted links cannot be
    enumerated. Names keep working when the limit is used up. Codes made of ids do not: a 429 for
    every absent code and a redirect for the others would tell them apart.
    """

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt,
            "miss",
            rt.settings.misses_per_minute,
            per=Phrase("per minute for links that don't exist"),
        )

    async def charge_network(self, network: str, user_id: int | None = None) -> None:
        """Count one miss of a network, and of the user if one is signed in."""
        await self.charge(network)
        if user_id is not None:
            await self.charge_user(user_id)

    async def charge_user(self, user_id: int) -> None:
        """Count one miss of a user."""
        await self.charge(f"user:{user_id}")

    def check_code(self, network: str, user_id: int | None = None) -> None:
        """Raise `RateLimited` if a network or a user has used up its misses.

        This machine itself is exempt: behind a proxy that is not in `REFRACT_TRUSTED_PROXIES`
        every client comes from it, and a single one could block the codes of all.
        """
        if network not in LOOPBACK_NETWORKS:
            self.check(network)
        if user_id is not None:
            self.check(f"user:{user_id}")

    def is_code_refused(self, network: bytes) -> bool:
        """Return whether `check_code` would refuse a network."""
        subject = network.hex()
        return subject not in LOOPBACK_NETWORKS and self.is_exhausted(subject)


class RenderLimit(SharedLimit):
    """Images and feeds rendered for a network per minute."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt,
            "render",
            rt.settings.renders_per_minute,
            per=Phrase("per minute for images and feeds"),
        )


GUESSES_PER_MINUTE = 5
WRONG_GUESSES_PER_HOUR = 200


class GuessLimit(SharedLimit):
    """Passwords that a network may try per link and minute."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt, "guess", GUESSES_PER_MINUTE, per=Phrase("per minute for the password of a link")
        )


class WrongGuessLimit(SharedLimit):
    """Wrong passwords per link and hour, from all networks together."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt,
            "wrong-guess",
            WRONG_GUESSES_PER_HOUR,
            per=Phrase("per hour for wrong passwords of a link"),
            seconds=3600,
        )


ADDRESSES_PER_HOUR = 100


class AddressLimit(SharedLimit):
    """Email addresses that a user may enter per hour, because responses tell who has an account."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt,
            "address",
            ADDRESSES_PER_HOUR,
            per=Phrase("per hour for email addresses"),
            seconds=3600,
        )

    async def charge_user(self, user_id: int, *, is_admin: bool) -> None:
        """Count one address. Administrators see all accounts anyway, and are not limited."""
        if not is_admin:
            await self.charge(str(user_id))
