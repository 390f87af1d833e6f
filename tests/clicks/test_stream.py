"""From a spool through the stream into the database: nothing lost and nothing twice."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from refract.clicks.ingest import stream
from refract.clicks.ingest.consumer import (
    CLAIM_IDLE_MS,
    MAINTENANCE_INTERVAL,
    StreamConsumer,
    StreamEntry,
)
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.ingest.shipper import LOST_POLL_INTERVAL, SpoolShipper
from refract.clicks.spool.format import LINK_CLICK, encode_frame
from refract.clicks.spool.reader import SpoolPosition, SpoolState, list_spools, lock_ingester
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.redis import RETRY_INTERVAL, RedisClient, RedisUnavailable
from refract.core.runtime import Runtime
from tests.waiting import eventually
from tools.servers import Redis as RedisServer

one_database = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class Fleet:
    """A node that ships and consumers that store, on a clock that only the test moves."""

    def __init__(
        self, rt: Runtime, clock: ManualClock, redis: RedisClient, server: RedisServer
    ) -> None:
        self.rt = rt
        self.clock = clock
        self.redis = redis
        self.server = server
        self.root = rt.settings.effective_spool_dir
        self.shipper = SpoolShipper(rt, redis)
        self.accepted = 0

    def consumer(self) -> StreamConsumer:
        return StreamConsumer(self.rt, self.redis, Ingester(self.rt))

    def clicks(self, number: int, spool: SpoolWriter) -> None:
        made = [
            encode_frame(
                LINK_CLICK, 42, self.rt.clock.now_ns(), 0, b"\x0a\x00\x00", b"Mozilla/5.0", b"", b""
            )
            for _ in range(number)
        ]
        assert spool.append(made) == number
        self.accepted += number

    def spool(self, **more: Any) -> SpoolWriter:
        return SpoolWriter(self.root, node="here", **more)

    async def ship(self) -> int:
        self.clock.advance(LOST_POLL_INTERVAL)
        return await self.shipper.ship_all()

    async def settled(self) -> None:
        """Everything accepted is stored, once, and the node has nothing left."""
        figures = await reconcile(self.rt)
        assert figures.drift == []
        assert (figures.accepted, figures.stored, figures.pending) == (
            self.accepted,
            self.accepted,
            0,
        )
        await self.ship()
        await self.consumer().run_once(10)  # so that it notices the end of the writer
        await self.ship()
        assert list_spools(self.root) == []


@pytest.fixture
async def fleet(rt: Runtime, clock: ManualClock, redis_server: RedisServer) -> AsyncIterator[Fleet]:
    redis = RedisClient(redis_server.url, monotonic=clock.monotonic)
    yield Fleet(rt, clock, redis, redis_server)
    await redis.close()


async def test_clicks_of_several_segments_and_turns_arrive_once(fleet: Fleet) -> None:
    spool = fleet.spool(segment_bytes=4096)
    consumer = fleet.consumer()
    for number in (1, 70, 3, 150):
        fleet.clicks(number, spool)
        await fleet.ship()
    assert await consumer.run_once(10) == fleet.accepted
    fleet.clicks(5, spool)
    spool.close()
    await fleet.ship()
    assert await consumer.run_once(10) == 5

    await fleet.settled()


@one_database
async def test_a_segment_stays_until_the_database_has_it(fleet: Fleet) -> None:
    spool = fleet.spool(segment_bytes=4096)
    fleet.clicks(100, spool)
    fleet.clicks(100, spool)
    spool.close()
    await fleet.ship()
    assert await stream.get_length(fleet.redis) > 0
    before = list_spools(fleet.root)[0].segments
    await fleet.ship()
    assert (
        list_spools(fleet.root)[0].segments == before
    )  # accepted by the stream, and kept all the same

    await fleet.consumer().run_once(10)
    await fleet.ship()
    await fleet.settled()


@one_database
async def test_a_redis_that_forgets_everything_is_told_again(fleet: Fleet) -> None:
    spool = fleet.spool()
    consumer = fleet.consumer()
    fleet.clicks(10, spool)
    await fleet.ship()
    await consumer.run_once(10)
    fleet.clicks(20, spool)
    await fleet.ship()
    await fleet.redis.execute("FLUSHALL")
    assert await fleet.ship() == 20
    with pytest.raises(RedisUnavailable):
        await consumer.run_once(10)  # its group is gone too
    consumer._group_created = False  # as `run` sets it after that
    assert await consumer.run_once(10) == 20

    spool.close()
    await fleet.settled()


@one_database
async def test_a_batch_that_is_sent_twice_is_stored_once(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(10, spool)
    await fleet.ship()
    fleet.clicks(10, spool)
    fleet.shipper = SpoolShipper(
        fleet.rt, fleet.redis
    )  # the first died, and nobody knows what it sent
    await fleet.ship()
    assert await stream.get_length(fleet.redis) == 2

    consumer = fleet.consumer()
    await consumer.run_once(10)
    assert await consumer.run_once(10) == 0
    spool.close()
    await fleet.settled()


@one_database
async def test_batches_that_overtake_each_other_wait_for_their_turn(fleet: Fleet) -> None:
    spool = fleet.spool()
    for number in (3, 4, 5):
        fleet.clicks(number, spool)
        await fleet.ship()
    first, second = fleet.consumer(), fleet.consumer()
    await stream.create_group(fleet.redis)
    taken = await fleet.redis.execute(
        "XREADGROUP",
        "GROUP",
        stream.CONSUMER_GROUP,
        first._name,
        "COUNT",
        1,
        "STREAMS",
        stream.STREAM_KEY,
        ">",
    )
    assert await second.run_once(10) == 0  # it has the second and the third
    entries = await first._parse_entries(taken[0][1])
    assert await first._store_entries(entries) == 3
    assert await second.run_once(10) == 9

    spool.close()
    await fleet.settled()


@one_database
async def test_what_was_lost_and_sent_again_is_stored_before_what_overtook_it(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting batches cause no database queries: their number must not delay the missing one."""
    spool = fleet.spool()
    for _ in range(20):
        fleet.clicks(5, spool)
        await fleet.ship()
    await fleet.redis.execute("FLUSHALL")
    for _ in range(20):
        fleet.clicks(5, spool)
        await fleet.shipper.ship_all()
    await fleet.ship()
    asked = 0
    original = Ingester.load_checkpoint

    async def counting(self: Ingester, of: SpoolState) -> SpoolPosition:
        nonlocal asked
        asked += 1
        return await original(self, of)

    monkeypatch.setattr(Ingester, "load_checkpoint", counting)
    consumer = fleet.consumer()
    assert await consumer.run_once(10) == 200
    assert asked <= 2

    spool.close()
    await fleet.settled()


@one_database
async def test_what_a_dead_consumer_had_another_takes_over(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.clicks.ingest.consumer.CLAIM_IDLE_MS", 1)
    assert CLAIM_IDLE_MS > 1
    spool = fleet.spool()
    fleet.clicks(6, spool)
    await fleet.ship()
    await stream.create_group(fleet.redis)
    await fleet.redis.execute(
        "XREADGROUP",
        "GROUP",
        stream.CONSUMER_GROUP,
        "dead",
        "COUNT",
        9,
        "STREAMS",
        stream.STREAM_KEY,
        ">",
    )
    await asyncio.sleep(0.01)
    assert await fleet.consumer().run_once(10) == 6

    spool.close()
    await fleet.settled()


@one_database
async def test_a_consumer_that_has_been_at_it_for_a_while_takes_over_too(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rounds are as long as the pause between two claims of idle entries; both must happen."""
    monkeypatch.setattr("refract.clicks.ingest.consumer.CLAIM_IDLE_MS", 1)
    consumer = fleet.consumer()
    read = consumer._read

    async def waiting(block_ms: int) -> list[StreamEntry]:
        fleet.clock.advance(MAINTENANCE_INTERVAL)  # nothing came for so long
        return await read(block_ms)

    monkeypatch.setattr(consumer, "_read", waiting)
    await consumer.run_once(1)
    spool = fleet.spool()
    fleet.clicks(6, spool)
    await fleet.ship()
    await fleet.redis.execute(
        "XREADGROUP",
        "GROUP",
        stream.CONSUMER_GROUP,
        "dead",
        "COUNT",
        9,
        "STREAMS",
        stream.STREAM_KEY,
        ">",
    )
    await asyncio.sleep(0.01)
    await consumer.run_once(1)
    await consumer.run_once(1)

    assert (await reconcile(fleet.rt)).stored == 6
    spool.close()


@one_database
async def test_only_what_everybody_has_acknowledged_is_trimmed(fleet: Fleet) -> None:
    spool = fleet.spool()
    for _ in range(5):
        fleet.clicks(1, spool)
        await fleet.ship()
    await stream.create_group(fleet.redis)
    ids = [entry[0] for entry in await fleet.redis.execute("XRANGE", stream.STREAM_KEY, "-", "+")]
    await fleet.redis.execute(
        "XREADGROUP",
        "GROUP",
        stream.CONSUMER_GROUP,
        "slow",
        "COUNT",
        3,
        "STREAMS",
        stream.STREAM_KEY,
        ">",
    )
    await fleet.redis.execute("XACK", stream.STREAM_KEY, stream.CONSUMER_GROUP, ids[0], ids[2])

    assert await stream.trim_acknowledged(fleet.redis) == 1
    left = [entry[0] for entry in await fleet.redis.execute("XRANGE", stream.STREAM_KEY, "-", "+")]
    assert left == ids[1:]  # the second is not acknowledged, the last two were not read

    await fleet.redis.execute("XGROUP", "CREATE", stream.STREAM_KEY, "others", "0")
    await fleet.redis.execute("XACK", stream.STREAM_KEY, stream.CONSUMER_GROUP, ids[1])
    assert await stream.trim_acknowledged(fleet.redis) == 0  # another group has read nothing yet
    spool.close()


@one_database
async def test_a_full_redis_leaves_the_clicks_on_the_node(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(7, spool)
    await fleet.redis.execute("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(RedisUnavailable):
        await fleet.ship()
    assert (await reconcile(fleet.rt)).pending == 7

    await fleet.redis.execute("CONFIG", "SET", "maxmemory", "0")
    assert await fleet.ship() == 7
    await fleet.consumer().run_once(10)
    spool.close()
    await fleet.settled()


@one_database
async def test_without_redis_a_node_that_may_write_stores_by_itself(fleet: Fleet) -> None:
    spool = fleet.spool()
    fleet.clicks(4, spool)
    await fleet.ship()
    fleet.server.stop()
    fleet.clicks(3, spool)
    writing = SpoolShipper(fleet.rt, fleet.redis, fallback=Ingester(fleet.rt))
    assert await writing._run_once()
    fleet.server.start()
    fleet.clock.advance(RETRY_INTERVAL)
    await fleet.consumer().run_once(10)

    spool.close()
    await writing.ship_all()
    await fleet.settled()


@one_database
async def test_without_redis_a_node_that_may_only_read_leaves_its_directory_to_others(
    fleet: Fleet,
) -> None:
    spool = fleet.spool()
    fleet.clicks(4, spool)
    fleet.server.stop()
    running = asyncio.create_task(fleet.shipper.run())
    try:
        await eventually(lambda: _free(fleet.root))
    finally:
        running.cancel()
    assert await Ingester(fleet.rt).apply_all() == 4
    spool.close()


async def _free(root: Path) -> bool:
    await asyncio.sleep(0.1)
    with lock_ingester(root) as mine:
        return mine


@one_database
async def test_foreign_entries_are_put_aside_and_stop_nobody(fleet: Fleet) -> None:
    await fleet.redis.execute("XADD", stream.STREAM_KEY, "*", "what", "ever")
    await fleet.redis.execute(
        "XADD",
        stream.STREAM_KEY,
        "*",
        "spool",
        "1",
        "node",
        "n",
        "from",
        "1:0",
        "to",
        "x",
        "frames",
        "",
    )
    spool = fleet.spool()
    fleet.clicks(2, spool)
    spool.close()
    await fleet.ship()

    assert await fleet.consumer().run_once(10) == 2
    await fleet.settled()
