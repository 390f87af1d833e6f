"""Redis, asked briefly: whoever waits for it waits a moment, and while it is away nobody waits at all.

Everything kept there can be lost without loss: the database and the spool know it too. So each use says what to do instead
when `RedisUnavailable` is raised.
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
"""The longest anybody waits for an answer, connecting included."""

RETRY_INTERVAL = 1.0
"""After a failure one question in so many seconds finds out whether it is back; all others are told at once that it is not."""

MAX_CONNECTIONS = 16


class RedisUnavailable(Unavailable):
    """Redis isn't responding ({reason}). The database takes over in the meantime."""


@dataclass(frozen=True)
class RedisScript:
    """A Lua script, known to the server by its digest."""

    text: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "digest", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        )


class RedisClient:
    """One server. Answers are as they come over the wire: bytes, integers, lists and None."""

    def __init__(self, url: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.failures = 0
        self._now = monotonic
        self._failing = False
        self._retry_at = float("-inf")
        self._probing = False
        self._client: Any = _create_client(
            url
        )  # at once: loading the library takes longer than a question may
        self._log = structlog.get_logger("refract.redis")

    @property
    def is_away(self) -> bool:
        """By the last question's experience."""
        return self._failing

    async def execute(self, *words: str | bytes | float, seconds: float = QUERY_TIMEOUT) -> Any:
        """One command. A question that is given up or takes too long closes its connection, so that no answer can go astray."""
        if self._failing and (self._probing or self._now() < self._retry_at):
            raise RedisUnavailable(reason="it did not answer a moment ago")
        probing, self._probing = self._probing, self._failing
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.execute_command(*words)
        except (OSError, TimeoutError, EOFError) as exc:
            raise self._mark_failed(exc) from exc
        except Exception as exc:
            if (word := self._translate_error(exc)) is None:
                raise
            raise word from exc
        finally:
            self._probing = probing
        if self._failing:
            self._failing = False
            self._log.info("redis_back")
        return answer

    async def run_script(
        self,
        script: RedisScript,
        keys: Sequence[str],
        *values: str | bytes | float,
        seconds: float = QUERY_TIMEOUT,
    ) -> Any:
        """A script, sent in full only when the server does not know it."""
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
        """What is published, until the connection is lost. `heard` is called once the server has put us on its list."""
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
            if (word := self._translate_error(exc)) is None:
                raise
            raise word from exc
        finally:
            await pubsub.aclose()

    async def close(self) -> None:
        await self._client.aclose()
        await self._client.connection_pool.disconnect()

    def _mark_failed(self, error: BaseException) -> RedisUnavailable:
        if not self._failing:
            self._log.warning("redis_away", reason=_format_reason(error))
        self.failures += 1
        self._failing = True
        self._retry_at = self._now() + RETRY_INTERVAL
        return RedisUnavailable(reason=_format_reason(error))

    def _translate_error(self, error: Exception) -> RedisUnavailable | None:
        """What the library's error means; None for one that is not about Redis. A refusal (full, read-only) leaves the connection good."""
        from redis import exceptions  # noqa: PLC0415 - only those who have a Redis load its library

        if isinstance(error, exceptions.NoScriptError):
            return RedisUnavailable(reason="it does not know the script", unknown_script=True)
        if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
            return self._mark_failed(error)
        if isinstance(error, exceptions.RedisError):
            self.failures += 1
            return RedisUnavailable(reason=_format_reason(error))
        return None


def _create_client(url: str) -> Any:
    from redis import (  # noqa: PLC0415 - only those who have a Redis load its library
        asyncio as library,
    )
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415

    pool = library.BlockingConnectionPool.from_url(
        url,
        max_connections=MAX_CONNECTIONS,
        timeout=QUERY_TIMEOUT,
        protocol=2,
        socket_timeout=None,  # each question has its own
        socket_connect_timeout=2.0,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),  # the library would try for seconds
    )
    client = library.Redis(connection_pool=pool)
    client.response_callbacks.clear()  # they differ between versions of the library; the wire does not
    return client


def _format_reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def create_redis(rt: Runtime) -> RedisClient | None:
    """The Redis of this process, if there is one: `rt.singleton(shared_redis)`."""
    url = rt.settings.redis_url
    if url is None:
        return None
    redis = RedisClient(url, monotonic=rt.clock.monotonic)
    away = rt.metrics.gauge(
        "refract_redis_away", "1 while Redis does not answer and the database does its work"
    )
    away.set_function(lambda: float(redis.is_away))
    return redis
