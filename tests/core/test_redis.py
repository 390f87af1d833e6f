"""Short timeouts of Redis; its absence is noticed once, not by every caller."""

import asyncio
import os
import random
import signal
import socket
from collections.abc import AsyncIterator

import pytest

from refract.core.redis import (
    QUERY_TIMEOUT,
    RETRY_INTERVAL,
    RedisClient,
    RedisScript,
    RedisUnavailable,
)
from tools.servers import Redis as RedisServer


class Seconds:
    """A clock for the breaker alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[RedisClient]:
    client = RedisClient(redis_server.url)
    yield client
    await client.close()


async def test_answers_come_as_they_are_on_the_wire(redis: RedisClient) -> None:
    await redis.execute("SET", "a", b"\x00\xff")

    assert await redis.execute("MGET", "a", "b") == [b"\x00\xff", None]
    assert await redis.execute("INCR", "n") == 1


async def test_a_script_is_run_though_the_server_has_forgotten_it(redis: RedisClient) -> None:
    script = RedisScript("return {KEYS[1], ARGV[1]}")
    assert await redis.run_script(script, ["k"], 5) == [b"k", b"5"]
    await redis.execute("SCRIPT", "FLUSH")

    assert await redis.run_script(script, ["k"], 6) == [b"k", b"6"]
    assert not redis.is_away


async def test_while_it_is_away_one_question_a_second_finds_out(redis_server: RedisServer) -> None:
    clock = Seconds()
    redis = RedisClient(redis_server.url, monotonic=clock)
    redis_server.stop()
    for _ in range(20):
        with pytest.raises(RedisUnavailable):
            await redis.execute("PING")
    assert redis.failures == 1  # the other nineteen failed immediately
    redis_server.start()
    with pytest.raises(RedisUnavailable):
        await redis.execute("PING")
    clock.now += RETRY_INTERVAL

    assert await redis.execute("PING") == b"PONG"
    assert not redis.is_away
    await redis.close()


async def test_a_server_that_hangs_is_given_up(
    redis_server: RedisServer, redis: RedisClient
) -> None:
    await redis.execute("PING")
    os.kill(redis_server.pid or 0, signal.SIGSTOP)
    try:
        began = asyncio.get_running_loop().time()
        with pytest.raises(RedisUnavailable):
            await redis.execute("PING")
        waited = asyncio.get_running_loop().time() - began
    finally:
        os.kill(redis_server.pid or 0, signal.SIGCONT)

    assert waited >= QUERY_TIMEOUT  # it was tried, with a limit
    assert redis.is_away


async def test_a_full_server_refuses_without_being_away(redis: RedisClient) -> None:
    await redis.execute("CONFIG", "SET", "maxmemory", "1")

    with pytest.raises(RedisUnavailable, match="maxmemory"):
        await redis.execute("SET", "a", "b")

    assert await redis.execute("PING") == b"PONG"


async def test_nobody_gets_an_answer_that_was_meant_for_another(redis: RedisClient) -> None:
    """A cancelled command leaves its reply on the wire: the connection must not be used again."""
    for number in range(100):
        await redis.execute("SET", f"k{number}", str(number))
    chance = random.Random(7)
    wrong: list[tuple[int, bytes]] = []

    async def ask(number: int) -> None:
        for _ in range(30):
            answer = await redis.execute("GET", f"k{number}", seconds=5)
            if answer != str(number).encode():
                wrong.append((number, answer))

    for _ in range(25):
        tasks = [asyncio.create_task(ask(chance.randrange(100))) for _ in range(12)]
        await asyncio.sleep(chance.uniform(0, 0.01))
        for task in chance.sample(tasks, 8):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert wrong == []
    assert await redis.execute("PING") == b"PONG"


async def test_what_is_published_is_heard_until_the_server_goes(
    redis_server: RedisServer, redis: RedisClient
) -> None:
    on_the_list = asyncio.Event()
    heard: list[bytes] = []

    async def listen() -> None:
        async for message in redis.subscribe(
            "news", on_the_list.set
        ):  # one by one, to see them before the end
            heard.append(message)  # noqa: PERF401

    listening = asyncio.create_task(listen())
    await on_the_list.wait()
    await redis.execute("PUBLISH", "news", "one")
    while not heard:  # noqa: ASYNC110 - it sets no event
        await asyncio.sleep(0.01)
    redis_server.stop()

    with pytest.raises(RedisUnavailable):
        await listening
    assert heard == [b"one"]


async def test_an_address_where_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        redis = RedisClient(f"redis://127.0.0.1:{taken.getsockname()[1]}/0")
        with pytest.raises(RedisUnavailable):
            await redis.execute("PING")
        await redis.close()
