"""A Redis client with short timeouts, which fails immediately while Redis is unavailable.

Everything stored there can be lost without harm: the database and the spool have it too. So each
caller has a fallback for `RedisUnavailable`.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

QUERY_TIMEOUT = 0.15
"""The longest wait for a reply, including the connection."""

RETRY_INTERVAL = 1.0
"""Seconds after a failure before a command tests whether Redis is back.

All others fail immediately.
"""

MAX_CONNECTIONS = 16


class RedisUnavailable(Unavailable):
    """Redis isn't responding ({reason}). The database takes over in the meantime."""


@dataclass(frozen=True)
class RedisScript:
    """A Lua script, which the server knows by its digest."""

    text: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "digest", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        )


class RedisClient:
    """A client of one server. Replies are those of the wire: bytes, integers, lists and None."""

    def __init__(self, url: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.failures = 0
        self._now = monotonic
        self._failing = False
        self._retry_at = float("-inf")
        self._probing = False
        # Immediately: loading the library takes longer than a command may.
        self._client: Any = _create_client(url)
        self._log = structlog.get_logger("refract.redis")

    @property
    def is_away(self) -> bool:
        """Return whether the last command failed."""
        return self._failing

    async def execute(self, *command: str | bytes | float, seconds: float = QUERY_TIMEOUT) -> Any:
        """Execute one command.

        A command that is cancelled or takes too long closes its connection, so that its reply
        cannot be taken for another's.
        """
        if self._failing and (self._probing or self._now() < self._retry_at):
            raise RedisUnavailable(reason="it did not answer a moment ago")
        probing, self._probing = self._probing, self._failing
        try:
            async with asyncio.timeout(seconds):
                reply = await self._client.execute_command(*command)
        except (OSError, TimeoutError, EOFError) as exc:
            raise self._mark_failed(exc) from exc
        except Exception as exc:
            if (translated := self._translate_error(exc)) is None:
                raise
            raise translated from exc
        finally:
            self._probing = probing
        if self._failing:
            self._failing = False
            self._log.info("redis_recovered")
        return reply

    async def run_script(
        self,
        script: RedisScript,
        keys: Sequence[str],
        *values: str | bytes | float,
        seconds: float = QUERY_TIMEOUT,
    ) -> Any:
        """Run a script, which is sent in full only if the server does not know it."""
        try:
            return await self.execute(
                "EVALSHA", script.digest, len(keys), *keys, *values, seconds=seconds
            )
        except RedisUnavailable as exc:
            if not exc.facts.get("unknown_script"):
                raise
        return await self.execute("EVAL", script.text, len(keys), *keys, *values, seconds=seconds)

    async def subscribe(
        self, channel: str, on_subscribed: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield published messages until the connection is lost.

        `on_subscribed` is called once the server has confirmed the subscription.
        """
        pubsub = self._client.pubsub()
        try:
            await pubsub.subscribe(channel)
            async for message in pubsub.listen():
                if message["type"] == "subscribe":
                    on_subscribed()
                elif message["type"] == "message":
                    yield message["data"]
        except (OSError, TimeoutError, EOFError) as exc:
            raise RedisUnavailable(reason=_format_reason(exc)) from exc
        except Exception as exc:
            if (translated := self._translate_error(exc)) is None:
                raise
            raise translated from exc
        finally:
            await pubsub.aclose()

    async def close(self) -> None:
        await self._client.aclose()
        await self._client.connection_pool.disconnect()

    def _mark_failed(self, error: BaseException) -> RedisUnavailable:
        if not self._failing:
            self._log.warning("redis_unavailable", reason=_format_reason(error))
        self.failures += 1
        self._failing = True
        self._retry_at = self._now() + RETRY_INTERVAL
        return RedisUnavailable(reason=_format_reason(error))

    def _translate_error(self, error: Exception) -> RedisUnavailable | None:
        """Translate an error of the library; return None if it is not about Redis.

        A refused command (full, read-only) leaves the connection usable.
        """
        from redis import exceptions  # noqa: PLC0415 - only with Redis

        if isinstance(error, exceptions.NoScriptError):
            return RedisUnavailable(reason="it does not know the script", unknown_script=True)
        if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
            return self._mark_failed(error)
        if isinstance(error, exceptions.RedisError):
            self.failures += 1
            return RedisUnavailable(reason=_format_reason(error))
        return None


def _create_client(url: str) -> Any:
    from redis import (  # noqa: PLC0415 - only with Redis
        asyncio as library,
    )
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415

    pool = library.BlockingConnectionPool.from_url(
        url,
        max_connections=MAX_CONNECTIONS,
        timeout=QUERY_TIMEOUT,
        protocol=2,
        socket_timeout=None,  # each command has its own
        socket_connect_timeout=2.0,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),  # the library would retry for seconds
    )
    client = library.Redis(connection_pool=pool)
    # They differ between versions of the library; the wire does not.
    client.response_callbacks.clear()
    return client


def _format_reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def create_redis(rt: Runtime) -> RedisClient | None:
    """Create the Redis client of this process, None if not configured.

    Call it by `rt.singleton(create_redis)`.
    """
    url = rt.settings.redis_url
    if url is None:
        return None
    redis = RedisClient(url, monotonic=rt.clock.monotonic)
    away = rt.metrics.gauge(
        "refract_redis_away", "1 while Redis is unavailable and the database replaces it"
    )
    away.set_function(lambda: float(redis.is_away))
    return redis
