"""Buckets shared over Redis, and per process while it is unavailable."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from refract.core.redis import RedisClient
from refract.limits.buckets import SharedBuckets, take_shared
from tools.servers import Redis as RedisServer


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[RedisClient]:
    client = RedisClient(redis_server.url)
    yield client
    await client.close()


async def test_many_at_once_get_exactly_the_limit(redis: RedisClient) -> None:
    """Slow enough to refill that nothing comes back meanwhile."""

    async def take_four() -> int:
        taken = [await take_shared(redis, "x", 1, size=20, per_second=0.0001) for _ in range(4)]
        return sum(granted for granted, _ in taken)

    assert sum(await asyncio.gather(*(take_four() for _ in range(16)))) == 20


async def test_what_is_not_there_is_granted_in_part(redis: RedisClient) -> None:
    first, second = [await take_shared(redis, "x", 7, size=10, per_second=0.0001) for _ in range(2)]

    assert (first[0], round(first[1])) == (7, 3)
    assert (second[0], round(second[1])) == (3, 0)


async def test_it_fills_up_again_and_is_then_forgotten(redis: RedisClient) -> None:
    await take_shared(redis, "x", 10, size=10, per_second=1000)
    await asyncio.sleep(0.05)

    assert (await take_shared(redis, "x", 1, size=10, per_second=1000))[0] == 1
    assert 0 < await redis.execute("PTTL", "refract:limit:x") <= 2000


async def test_two_processes_share_and_go_on_alone_without_redis(
    redis: RedisClient, redis_server: RedisServer
) -> None:
    one, other = (SharedBuckets(redis, "miss", size=3, per_second=0.001) for _ in range(2))
    assert [await one.take("net", 0.0) >= 0 for _ in range(2)] == [True, True]
    assert [await other.take("net", 0.0) >= 0 for _ in range(2)] == [True, False]
    assert other.peek("net", 0.0) < 0  # learned from Redis: two of the three were taken by `one`
    redis_server.stop()

    assert other.retry_after(await other.take("net", 0.0)) >= 1  # what it knew last still holds
    assert [await other.take("new", 0.0) >= 0 for _ in range(4)] == [True, True, True, False]
