"""The end of a connection, seen from the client."""

import asyncio
import select
import socket
from typing import cast

import uvloop

from refract.core.sockets import has_unread_data, shut_down_writing
from tests.waiting import PATIENCE


def heard(client: socket.socket) -> bytes | None:
    """Return what has arrived by now, without a turn of the loop; None for nothing."""
    poll = select.poll()
    poll.register(client.fileno(), select.POLLIN)
    return client.recv(100) if poll.poll(0) else None


class Pair:
    """A client's plain socket and the server's end of it, on a loop as `refract serve` has it."""

    def __init__(self) -> None:
        self.made: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    async def open(self) -> tuple[asyncio.Transport, socket.socket]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Note(self), "127.0.0.1", 0)
        client = socket.create_connection(server.sockets[0].getsockname())
        async with asyncio.timeout(PATIENCE):
            transport = await self.made
        server.close()
        return transport, client


class _Note(asyncio.Protocol):
    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pair.made.set_result(cast(asyncio.Transport, transport))


def test_the_other_side_hears_of_the_end_before_the_loops_next_turn() -> None:
    async def story() -> None:
        transport, client = await Pair().open()
        assert not has_unread_data(transport)
        transport.close()
        assert heard(client) is None  # the loop has not done it yet
        shut_down_writing(transport)
        assert heard(client) == b""
        client.close()

    uvloop.run(story())


def test_what_is_still_to_be_sent_is_sent_first() -> None:
    async def story() -> None:
        transport, client = await Pair().open()
        transport.write(b"x" * 10_000_000)
        transport.close()
        shut_down_writing(transport)
        size = 0
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(client, 1 << 20):
            size += len(data)
        assert size == 10_000_000
        client.close()

    uvloop.run(story())


def test_a_connection_that_stays_open_is_left_alone() -> None:
    async def story() -> None:
        transport, client = await Pair().open()
        shut_down_writing(transport)
        assert heard(client) is None
        client.sendall(b"GET")
        assert has_unread_data(transport)
        transport.close()
        client.close()

    uvloop.run(story())
