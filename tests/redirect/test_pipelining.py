"""Pipelining (security finding 3): one connection grew memory without bound and starved all others.

uvicorn resumes reading after each response though requests are queued, and each read holds
thousands of requests. Both protocols are tested: that of redirecting roles, and that of workers.
"""

import asyncio
import gc
import resource
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from refract.redirect.protocol import RedirectProtocol
from refract.web.connections import ConnectionLimits
from refract.web.protocol import MAX_BYTES_PER_TURN, MAX_QUEUED_REQUESTS, BoundedHttpProtocol
from tests.waiting import eventually

Run = Callable[..., None]
Open = Callable[..., Any]
PROTOCOLS = pytest.mark.parametrize("protocol", [RedirectProtocol, BoundedHttpProtocol])
READ = 256 * 1024  # what either loop reads at once


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host:x", *lines, "", ""]).encode()


async def flood(client: Any, data: bytes) -> None:
    """Send while the server accepts data."""
    try:
        client.writer.write(data)
        await client.writer.drain()
    except ConnectionError:
        client.closed = True


def kept(connection: Any) -> int:
    """Return the bytes that a connection buffers, received and unsent."""
    cycles = [connection.cycle, *(cycle for cycle, _ in connection.pipeline)]
    return (
        len(connection.backlog)
        + sum(len(cycle.body) for cycle in cycles if cycle)
        + int(connection.transport.get_write_buffer_size())
    )


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@PROTOCOLS
def test_a_pipeline_of_thousands_is_answered_in_order_from_a_bounded_queue(
    run: Run, station: Open, protocol: type
) -> None:
    number = 4_000
    data = b"".join(get(f"/{at}") for at in range(number))

    async def story() -> None:
        async with station(protocol) as here:
            client = await here.connect()
            longest, largest = 0, 0
            sending = asyncio.create_task(flood(client, data))
            got, seen = b"", 0
            gc.collect()
            before = memory()
            while seen < number:
                got += await client.reader.read(1 << 16)
                (connection,) = here.connections
                longest, largest = (
                    max(longest, len(connection.pipeline)),
                    max(largest, kept(connection)),
                )
                *whole, got = got.split(b'"path": "/')
                for part in [*whole[1:], got] if whole else []:
                    if b'"' in part:
                        assert int(part.partition(b'"')[0]) == seen
                        seen += 1
                got = (
                    b'"path": "/' + got
                    if whole and b'"' not in got
                    else got[-20:]
                    if not whole
                    else b""
                )
            await sending
            assert longest <= MAX_QUEUED_REQUESTS
            assert largest < 3 * READ
            assert memory() - before < 16 << 20

    run(story())


@PROTOCOLS
@pytest.mark.parametrize("path", ["/a", "/hit"])
def test_a_client_that_does_not_read_costs_bounded_memory(
    run: Run, station: Open, protocol: type, path: str
) -> None:
    """The finding: a connection took 77 MB until the stall limit."""
    data = get(path) * 400_000  # 10 MB

    async def story() -> None:
        async with station(protocol) as here:
            here.fill(b"/hit", here.entry(1))
            client = await here.connect_without_reading()
            sending = asyncio.create_task(flood(client, data))
            await eventually(lambda: here.connections and here.connections[0].flow.write_paused)
            (connection,) = here.connections
            for _ in range(200):
                await asyncio.sleep(0)
                assert len(connection.pipeline) <= MAX_QUEUED_REQUESTS
                assert kept(connection) < 6 * READ
            assert connection.flow.read_paused
            assert len(here.traffic.turn.answers) == 0
            sending.cancel()

    run(story())


@pytest.mark.parametrize("path", ["/a", "/hit"])
def test_one_turn_of_the_loop_takes_a_bounded_piece_of_a_connection(
    run: Run, station: Open, path: str
) -> None:
    """So that others get their turn: no turn handles more than its share."""
    request = get(path)
    data = request * 50_000

    async def story() -> None:
        async with station() as here:
            here.fill(b"/hit", here.entry(1))
            turns: list[int] = []
            client = await here.connect()
            await client.send(get("/a"))
            await client.read(20)
            (lane,) = here.connections

            append = here.spool.append

            def counted(frames: list[bytes]) -> int:
                turns.append(len(frames))
                return int(append(frames))

            here.spool.append = counted
            sending = asyncio.create_task(flood(client, data))
            reading = asyncio.create_task(client.read(1 << 22, seconds=20))
            other = await here.connect()
            for _ in range(20):  # others are answered meanwhile, each time within a few turns
                await other.send(get("/hit"))
                await other.read(len(other.got) + 50)
            assert other.got.count(b"302 Found") == 20
            # The end of one read and the beginning of the next may fall into one turn.
            assert max(turns) <= 2 * MAX_BYTES_PER_TURN // len(request) + 20
            assert len(lane.pipeline) <= MAX_QUEUED_REQUESTS
            sending.cancel()
            reading.cancel()

    run(story())


@PROTOCOLS
def test_an_upgrade_that_is_not_granted_does_not_swallow_what_follows(
    run: Run, station: Open, protocol: type
) -> None:
    asked = get("/a", "Connection: Upgrade", "Upgrade: websocket") + get("/b") + get("/c")

    async def story() -> None:
        async with station(protocol) as here:
            client = await here.connect()
            await client.send(asked)
            await eventually(lambda: here.state.total_requests == 3)
            await client.read(1)
            while client.got.count(b"HTTP/1.1 200") < 3:
                await client.read(len(client.got) + 1)
            assert [
                client.got.index(b'"path": "/%b"' % name) for name in (b"a", b"b", b"c")
            ] == sorted(client.got.index(b'"path": "/%b"' % name) for name in (b"a", b"b", b"c"))

    run(story())


@PROTOCOLS
@pytest.mark.parametrize("path", [b"/a", b"/hit"])
def test_http_0_9_is_closed_without_an_answer(
    run: Run, station: Open, protocol: type, path: bytes
) -> None:
    async def story() -> None:
        async with station(protocol) as here:
            here.fill(b"/hit", here.entry(1))
            for asked in (b"GET %b\r\n\r\n" % path, b"GET %b\r\nHost: x\r\n\r\n" % path):
                client = await here.connect()
                await client.send(asked)
                await client.read()
                assert (client.got, client.closed) == (b"", True)
            assert here.clicks() == []

    run(story())


def test_whoever_hangs_up_behind_a_queued_request_ends_the_one_before_it(
    run: Run, station: Open
) -> None:
    """uvicorn tells only the newest request: an open stream never learned of the disconnect."""

    async def story() -> None:
        async with station() as here:
            client = await here.connect()
            await client.send(get("/gone") + get("/b"))
            await eventually(lambda: here.state.tasks and here.connections[0].pipeline)
            here.connections[0].transport.abort()
            await eventually(lambda: not here.state.tasks)

    run(story())


def test_a_body_that_nobody_reads_does_not_keep_a_connection(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station(limits=ConnectionLimits(body_seconds=2)) as here:
            client = await here.connect()
            await client.send(
                b"POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            await client.read(12)
            for _ in range(3):
                client.writer.write(b"5\r\nhello\r\n")
                await client.writer.drain()
                here.traffic.sweep()
            await client.read()
            assert client.closed

    run(story())


def test_connections_of_one_network_have_a_limit(run: Run, station: Open) -> None:
    refused: Counter[str] = Counter()

    async def story() -> None:
        async with station(limits=ConnectionLimits(connections_per_network=2)) as here:
            here.traffic.count_refusal = lambda reason: refused.update([reason])
            shared = here.traffic
            entered = [
                shared.register(peer) for peer in ("203.0.113.7", "203.0.113.99", "203.0.113.1")
            ]
            assert entered == [b"\xcb\x00\x71", b"\xcb\x00\x71", None]
            assert shared.register("203.0.114.1") == b"\xcb\x00\x72"
            assert [shared.register("127.0.0.1"), shared.register("::1"), shared.register("")] == [
                b""
            ] * 3
            shared.unregister(b"\xcb\x00\x71")
            assert shared.register("203.0.113.1") == b"\xcb\x00\x71"
            assert refused == {"connections": 1}

    run(story())


def test_a_connection_too_many_is_told_and_closed(
    run: Run, station: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "refract.web.connections.is_loopback", lambda _: False
    )  # the only network a test has

    async def story() -> None:
        async with station(limits=ConnectionLimits(connections_per_network=1)) as here:
            here.fill(b"/hit", here.entry(1))
            first, second = await here.connect(), await here.connect()
            await second.read()
            assert second.closed
            assert second.got.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1\r\n" in second.got
            await first.send(get("/hit"))
            await first.read(20)
            assert first.got.startswith(b"HTTP/1.1 302 ")
            first.writer.close()
            await eventually(lambda: not here.connections)
            third = await here.connect()
            await third.send(get("/hit"))
            await third.read(20)
            assert third.got.startswith(b"HTTP/1.1 302 ")

    run(story())
