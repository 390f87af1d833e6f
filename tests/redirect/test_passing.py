"""What the redirecting process passes on: exactly the bytes from the first request of others."""

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from uvicorn.server import ServerState

from refract.clicks.spool.writer import SpoolWriter
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.passing import PassingState, RedirectOnlyProtocol, is_short_link
from refract.redirect.protocol import RedirectConnections
from refract.redirect.responses import build_head
from refract.web.connections import CONNECTIONS_STATE_KEY, PASSING_STATE_KEY
from tests.redirect.lanes import LANES, get_responder
from tests.waiting import eventually

HIT = b"GET /one HTTP/1.1\r\nHost: x\r\nUser-Agent: t\r\n\r\n"
SPECIAL_HIT = b"GET /one?x=1 HTTP/1.1\r\nHost: x\r\nDNT: 1\r\n\r\n"
COLD = b"GET /cold HTTP/1.1\r\nHost: x\r\n\r\n"
PAGE = b"GET /app/links HTTP/1.1\r\nHost: x\r\n\r\n"
MISS = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /api/v1/links HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n\r\n\r\n12345678"
OWN = (HIT, SPECIAL_HIT, COLD)
OTHERS = (PAGE, MISS, POST)


class Queue:
    """The other process: it gets a descriptor of its own, and what was read."""

    def __init__(self) -> None:
        self.passed: list[tuple[socket.socket, bytes, bool]] = []

    def send(self, transport: asyncio.Transport, data: bytes, *, is_last: bool) -> None:
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self.passed.append((socket.socket(fileno=descriptor), data, is_last))
        transport.abort()


async def _look_up(path: bytes, _network: bytes) -> CachedRedirect | None:
    await asyncio.sleep(0)
    return (
        CachedRedirect(2, 1, build_head(302, b"https://b.example/")) if path == b"/cold" else None
    )


@asynccontextmanager
async def _connect(
    home: Path, lane: str
) -> AsyncIterator[tuple[socket.socket, Queue, RedirectConnections]]:
    """A connection to the protocol, and the queue that it passes connections to."""
    cache = RedirectCache(10)
    cache.fill(b"/one", CachedRedirect(1, 1, build_head(302, b"https://a.example/")), cache.now())
    spool = SpoolWriter(home / "spool", node="t", segment_bytes=1 << 20, sync="never")
    connections = RedirectConnections(cache, spool, create_responder=get_responder(lane))
    queue = Queue()
    state = {CONNECTIONS_STATE_KEY: connections, PASSING_STATE_KEY: PassingState(queue, _look_up)}
    config = uvicorn.Config(lambda: None, http=RedirectOnlyProtocol, log_config=None)
    config.load()
    client, served = socket.socketpair()
    client.settimeout(10)
    served.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.connect_accepted_socket(
        lambda: RedirectOnlyProtocol(config, ServerState(), state, loop), served
    )
    try:
        yield client, queue, connections
    finally:
        client.close()
        spool.close()
        for twin, _, _ in queue.passed:
            twin.close()


def _read_all(twin: socket.socket) -> bytes:
    twin.setblocking(False)
    found = b""
    try:
        while data := twin.recv(65536):
            found += data
    except BlockingIOError:
        pass
    return found


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("seed", range(12))
async def test_the_first_request_of_others_is_passed_on_whole_however_it_is_cut(
    tmp_path: Path, lane: str, seed: int
) -> None:
    chance = random.Random(seed)
    before = [chance.choice(OWN) for _ in range(chance.randint(0, 4))]
    after = [chance.choice(OTHERS), *(chance.choice(OWN + OTHERS) for _ in range(3))]
    sent = b"".join(before + after)
    cuts = sorted(chance.sample(range(1, len(sent)), chance.randint(0, 8)))
    async with _connect(tmp_path, lane) as (client, queue, connections):
        for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            client.sendall(sent[begin:end])
            for _ in range(chance.randint(0, 6)):
                await asyncio.sleep(0)
        await eventually(lambda: len(queue.passed) == 1)
        ((twin, data, is_last),) = queue.passed
        assert data + _read_all(twin) == b"".join(after)
        assert not is_last
        answers = client.recv(65536) if before else b""
        assert answers.count(b"HTTP/1.1 302 ") == len(before)
        assert answers.count(b"https://b.example/") == before.count(COLD)
        assert connections.turn.answered == len(before)


async def test_a_process_that_stops_says_so(tmp_path: Path) -> None:
    async with _connect(tmp_path, "python") as (client, queue, connections):
        connections.is_draining = True
        client.sendall(PAGE)
        await eventually(lambda: len(queue.passed) == 1)
        assert queue.passed[0][1:] == (PAGE, True)


async def test_what_is_no_request_is_refused_and_not_passed_on(tmp_path: Path) -> None:
    async with _connect(tmp_path, "python") as (client, queue, _):
        client.sendall(b"NONSENSE\r\n\r\n")
        client.setblocking(False)
        answer = await asyncio.get_running_loop().sock_recv(client, 65536)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert queue.passed == []


def test_which_requests_are_for_short_links() -> None:
    own = (b"GET /n HTTP", b"HEAD /n?x ", b"GET /n/more HTTP", b"GET /%6eame HTTP")
    others = (b"GET / HTTP", b"GET /app HTTP", b"GET /App/links ", b"GET /%61pp HTTP")
    unknown = (b"POST /n HTTP", b"GET /n", b"GE", b"GET http://x/n HTTP", b"GET //n HTTP")
    assert [is_short_link(data) for data in own] == [True] * len(own)
    assert [is_short_link(data) for data in (*others, *unknown)] == [False] * 9
