"""From a spool over the stream to the database: nothing lost and nothing twice, whoever dies and whatever Redis forgets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from refract.analytics import stream
from refract.analytics.consume import IDLE_MS, TEND_SECONDS, Consumer, Entry
from refract.analytics.figures import add_up
from refract.analytics.frames import LINK_CLICK, frame
from refract.analytics.ingest import Ingester
from refract.analytics.ship import ASK_LOST_SECONDS, Shipper
from refract.analytics.spool import Spool
from refract.analytics.spool_reader import Position, SpoolState, only_ingester, spools
from refract.core.clock import ManualClock
from refract.core.redis import AWAY_SECONDS, Redis, RedisAway
from refract.core.runtime import Runtime
from tools.servers import Redis as RedisServer

one_database = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class Fleet:
    """A node that ships and consumers that store, on a clock that only the test moves."""

    def __init__(self, rt: Runtime, clock: ManualClock, redis: Redis, server: RedisServer) -> None:
        self.rt = rt
        self.clock = clock
        self.redis = redis
        self.server = server
        self.root = rt.settings.effective_spool_dir
        self.shipper = Shipper(rt, redis)
        self.accepted = 0

    def consumer(self) -> Consumer:
        return Consumer(self.rt, self.redis, Ingester(self.rt))

    def clicks(self, number: int, spool: Spool) -> None:
        made = [frame(LINK_CLICK, 42, self.rt.clock.now_ns(), 0, b"\x0a\x00\x00", b"Mozilla/5.0", b"", b"") for _ in range(number)]
        assert spool.append(made) == number
        self.accepted += number

    def spool(self, **more: Any) -> Spool:
        return Spool(self.root, node="here", **more)

    async def ship(self) -> int:
        self.clock.advance(ASK_LOST_SECONDS)
        return await self.shipper.ship_all()

    async def settled(self) -> None:
        """Everything that was accepted is stored, once, and the node has nothing left."""
        figures = await add_up(self.rt)
        assert figures.drift == []
        assert (figures.accepted, figures.stored, figures.pending) == (self.accepted, self.accepted, 0)
        await self.ship()
        await self.consumer().round(10)  # that its writer is gone, and nothing more will come
        await self.ship()
        assert spools(self.root) == []


@pytest.fixture
async def fleet(rt: Runtime, clock: ManualClock, redis_server: RedisServer) -> AsyncIterator[Fleet]:
    redis = Redis(redis_server.url, monotonic=clock.monotonic)
    yield Fleet(rt, clock, redis, redis_server)
    await redis.close()


async def test_clicks_of_several_segments_and_turns_arrive_once(fleet: Fleet) -> None:
    spool = fleet.spool(segment_bytes=4096)
    consumer = fleet.consumer()
    for number in (1, 70, 3, 150):
        fleet.clicks(number, spool)
        await fleet.ship()
    assert await consumer.round(10) == fleet.accepted
    fleet.clicks(5, spool)
    spool.close()
    await fleet.ship()
    assert await consumer.round(10) == 5

    await fleet.settled()


@one_database
async def test_a_segment_stays_until_the_database_has_it(fleet: Fleet) -> None:
    spool = fleet.spool(segment_bytes=4096)
    fleet.clicks(100, spool)
    fleet.clicks(100, spool)
    spool.close()
    await fleet.ship()
    assert await stream.length(fleet.redis) > 0
    before = spools(fleet.root)[0].segments
    await fleet.ship()
    assert spools(fleet.root)[0].segments == before  # accepted by the stream, and kept all the same

    await fleet.consumer().round(10)
    await fleet.ship()
    await fleet.settled()


@one_database
async def test_a_redis_that_forgets_everything_is_told_again(fleet: Fleet) -> None:
    spool = fleet.spool()
    consumer = fleet.consumer()
    fleet.clicks(10, spool)
    await fleet.ship()
    await consumer.round(10)
    fleet.clicks(20, spool)
    await fleet.ship()
    await fleet.redis.ask("FLUSHALL")
    assert await fleet.ship() == 20
    with pytest.raises(RedisAway):
        await consumer.round(10)  # its group is gone too
    consumer._begun = False  # as `run` has it after that
    assert await consumer.round(10) == 20

    spool.close()
    await fleet.settled()


@one_database
async def test_a_batch_that_is_sent_twice_is_stored_once(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(10, spool)
    await fleet.ship()
    fleet.clicks(10, spool)
    fleet.shipper = Shipper(fleet.rt, fleet.redis)  # the first died, and nobody knows what it sent
    await fleet.ship()
    assert await stream.length(fleet.redis) == 2

    consumer = fleet.consumer()
    await consumer.round(10)
    assert await consumer.round(10) == 0
    spool.close()
    await fleet.settled()


@one_database
async def test_batches_that_overtake_each_other_wait_for_their_turn(fleet: Fleet) -> None:
    spool = fleet.spool()
    for number in (3, 4, 5):
        fleet.clicks(number, spool)
        await fleet.ship()
    first, second = fleet.consumer(), fleet.consumer()
    await stream.begin(fleet.redis)
    taken = await fleet.redis.ask("XREADGROUP", "GROUP", stream.GROUP, first._name, "COUNT", 1, "STREAMS", stream.STREAM, ">")
    assert await second.round(10) == 0  # it has the second and the third
    entries = await first._understood(taken[0][1])
    assert await first._store(entries) == 3
    assert await second.round(10) == 9

    spool.close()
    await fleet.settled()


@one_database
async def test_what_was_lost_and_sent_again_is_stored_before_what_overtook_it(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody asks the database about each batch that waits: their number must not decide how long the one they wait for takes."""
    spool = fleet.spool()
    for _ in range(20):
        fleet.clicks(5, spool)
        await fleet.ship()
    await fleet.redis.ask("FLUSHALL")
    for _ in range(20):
        fleet.clicks(5, spool)
        await fleet.shipper.ship_all()
    await fleet.ship()
    asked = 0
    original = Ingester.checkpoint

    async def counting(self: Ingester, of: SpoolState) -> Position:
        nonlocal asked
        asked += 1
        return await original(self, of)

    monkeypatch.setattr(Ingester, "checkpoint", counting)
    consumer = fleet.consumer()
    assert await consumer.round(10) == 200
    assert asked <= 2

    spool.close()
    await fleet.settled()


@one_database
async def test_what_a_dead_consumer_had_another_takes_over(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refract.analytics.consume.IDLE_MS", 1)
    assert IDLE_MS > 1
    spool = fleet.spool()
    fleet.clicks(6, spool)
    await fleet.ship()
    await stream.begin(fleet.redis)
    await fleet.redis.ask("XREADGROUP", "GROUP", stream.GROUP, "dead", "COUNT", 9, "STREAMS", stream.STREAM, ">")
    await asyncio.sleep(0.01)
    assert await fleet.consumer().round(10) == 6

    spool.close()
    await fleet.settled()


@one_database
async def test_a_consumer_that_has_been_at_it_for_a_while_takes_over_too(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rounds are as long as the pause between two looks at what others left: one must not use up the other's turn."""
    monkeypatch.setattr("refract.analytics.consume.IDLE_MS", 1)
    consumer = fleet.consumer()
    read = consumer._read

    async def waiting(block_ms: int) -> list[Entry]:
        fleet.clock.advance(TEND_SECONDS)  # nothing came for so long
        return await read(block_ms)

    monkeypatch.setattr(consumer, "_read", waiting)
    await consumer.round(1)
    spool = fleet.spool()
    fleet.clicks(6, spool)
    await fleet.ship()
    await fleet.redis.ask("XREADGROUP", "GROUP", stream.GROUP, "dead", "COUNT", 9, "STREAMS", stream.STREAM, ">")
    await asyncio.sleep(0.01)
    await consumer.round(1)
    await consumer.round(1)

    assert (await add_up(fleet.rt)).stored == 6
    spool.close()


@one_database
async def test_only_what_everybody_has_acknowledged_is_trimmed(fleet: Fleet) -> None:
    spool = fleet.spool()
    for _ in range(5):
        fleet.clicks(1, spool)
        await fleet.ship()
    await stream.begin(fleet.redis)
    ids = [entry[0] for entry in await fleet.redis.ask("XRANGE", stream.STREAM, "-", "+")]
    await fleet.redis.ask("XREADGROUP", "GROUP", stream.GROUP, "slow", "COUNT", 3, "STREAMS", stream.STREAM, ">")
    await fleet.redis.ask("XACK", stream.STREAM, stream.GROUP, ids[0], ids[2])

    assert await stream.trim(fleet.redis) == 1
    left = [entry[0] for entry in await fleet.redis.ask("XRANGE", stream.STREAM, "-", "+")]
    assert left == ids[1:]  # the second is not acknowledged, the last two were read by nobody

    await fleet.redis.ask("XGROUP", "CREATE", stream.STREAM, "others", "0")
    await fleet.redis.ask("XACK", stream.STREAM, stream.GROUP, ids[1])
    assert await stream.trim(fleet.redis) == 0  # another group has read nothing yet
    spool.close()


@one_database
async def test_a_full_redis_leaves_the_clicks_on_the_node(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(7, spool)
    await fleet.redis.ask("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(RedisAway):
        await fleet.ship()
    assert (await add_up(fleet.rt)).pending == 7

    await fleet.redis.ask("CONFIG", "SET", "maxmemory", "0")
    assert await fleet.ship() == 7
    await fleet.consumer().round(10)
    spool.close()
    await fleet.settled()


@one_database
async def test_without_redis_a_node_that_may_write_stores_by_itself(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(4, spool)
    await fleet.ship()
    fleet.server.stop()
    fleet.clicks(3, spool)
    writing = Shipper(fleet.rt, fleet.redis, instead=Ingester(fleet.rt))
    assert await writing._round()
    fleet.server.start()
    fleet.clock.advance(AWAY_SECONDS)
    await fleet.consumer().round(10)

    spool.close()
    await writing.ship_all()
    await fleet.settled()


@one_database
async def test_without_redis_a_node_that_may_only_read_leaves_its_directory_to_others(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(4, spool)
    fleet.server.stop()
    running = asyncio.create_task(fleet.shipper.run())
    try:
        async with asyncio.timeout(10):
            while not await _free(fleet.root):  # noqa: ASYNC110 - a lock of the kernel sends no event
                await asyncio.sleep(0.05)
    finally:
        running.cancel()
    assert await Ingester(fleet.rt).apply_all() == 4
    spool.close()


async def _free(root: Path) -> bool:
    await asyncio.sleep(0.1)
    with only_ingester(root) as mine:
        return mine


@one_database
async def test_foreign_entries_are_put_aside_and_stop_nobody(fleet: Fleet) -> None:
    await fleet.redis.ask("XADD", stream.STREAM, "*", "what", "ever")
    await fleet.redis.ask("XADD", stream.STREAM, "*", "spool", "1", "node", "n", "from", "1:0", "to", "x", "frames", "")
    spool = fleet.spool()
    fleet.clicks(2, spool)
    spool.close()
    await fleet.ship()

    assert await fleet.consumer().round(10) == 2
    await fleet.settled()
