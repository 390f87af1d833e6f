"""A server on a real socket, with our protocol or stock uvicorn, that echoes requests."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from refract.clicks.spool.format import Click
from refract.clicks.spool.reader import SpoolPosition, inspect_spool, read_batch
from refract.clicks.spool.writer import SpoolWriter
from refract.core.ip_addresses import TrustedProxies
from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.lane import HitResponderClass
from refract.redirect.protocol import RedirectConnections, RedirectProtocol
from refract.web.connections import CONNECTIONS_STATE_KEY, ConnectionLimits
from tests.people import ada, as_ada, as_bob, bob, root
from tests.redirect.lanes import LANES, get_responder
from tests.waiting import eventually

__all__ = ["ada", "as_ada", "as_bob", "bob", "root"]

Message = MutableMapping[str, Any]
ENDING = b"x: y\r\n\r\n"
SMALL_BUFFER = 1 << 16


async def application(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Echo the request, so that servers that parse it differently respond differently."""
    path = scope["path"]
    body = b""
    if path != "/early":
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
    while path == "/gone":
        if (await receive())["type"] == "http.disconnect":
            return
    if path == "/slow":
        await asyncio.sleep(0.2)  # longer than a busy machine needs to deliver the next piece
    if path == "/boom":
        raise RuntimeError("boom")
    said = {key: scope[key] for key in ("method", "http_version", "path", "scheme")}
    said |= {key: scope[key].decode("latin-1") for key in ("raw_path", "query_string")}
    said["headers"] = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    ]
    said["body"] = body.decode("latin-1")
    text = json.dumps(said).encode() * (100_000 if path == "/large" else 1)
    headers = [(b"content-type", b"application/json")]
    if path != "/stream":
        headers.append((b"content-length", b"%d" % len(text)))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/stream":
        await send({"type": "http.response.body", "body": text[:10], "more_body": True})
        text = text[10:]
    await send({"type": "http.response.body", "body": text})


class KeepingReader(asyncio.StreamReader):
    """A stream that ends with a reset connection.

    The usual one then refuses what had arrived before. Whether a peer that closes sends a reset
    depends on whether another request is on its way: on time.
    """

    def set_exception(self, exc: BaseException) -> None:  # noqa: ARG002 - overrides
        self.feed_eof()


async def open_client(port: int) -> "Client":
    """Connect, with a stream that keeps what has arrived."""
    loop = asyncio.get_running_loop()
    reader = KeepingReader(loop=loop)
    transport, protocol = await loop.create_connection(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), "127.0.0.1", port
    )
    return Client(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


class Client:
    """A raw connection that records everything it receives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.got = b""
        self.closed = False

    async def send(self, *chunks: bytes) -> None:
        for chunk in chunks:
            self.writer.write(chunk)
            await self.writer.drain()
            await asyncio.sleep(0.01)

    async def read(self, until: int = 1 << 30, seconds: float = 5.0) -> bytes:
        """Read until `until` bytes in all, the end of the stream, or a timeout."""
        try:
            async with asyncio.timeout(seconds):
                while len(self.got) < until and not self.closed:
                    data = await self.reader.read(1 << 16)
                    self.got += data
                    self.closed = not data
        except TimeoutError:
            pass
        return self.got


class Station:
    def __init__(
        self,
        root: Path,
        protocol: type[HttpToolsProtocol],
        networks: TrustedProxies,
        limits: ConnectionLimits,
        create_responder: HitResponderClass,
    ) -> None:
        self.spool = SpoolWriter(root, node="test")
        self.table = RedirectCache(100)
        self.traffic = RedirectConnections(
            self.table,
            self.spool,
            proxies=networks,
            limits=limits,
            create_responder=create_responder,
        )
        self.traffic.turn.ending = ENDING
        self.state = ServerState()
        config = Config(
            application,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            access_log=False,
        )
        config.load()
        self.make = lambda: protocol(
            config, self.state, {CONNECTIONS_STATE_KEY: self.traffic}, asyncio.get_running_loop()
        )
        self.port = 0
        self.clients: list[Client] = []

    @staticmethod
    def entry(number: int, **more: Any) -> CachedRedirect:
        status = more.pop("status", 302)
        return CachedRedirect(
            number, 1, responses.build_head(status, b"https://example.com/%d" % number), **more
        )

    def fill(self, path: bytes, what: CachedRedirect) -> None:
        assert self.table.fill(path, what, self.table.now())

    @property
    def connections(self) -> list[Any]:
        return list(self.state.connections)

    async def connect(self) -> Client:
        client = await open_client(self.port)
        self.clients.append(client)
        return client

    async def connect_without_reading(self) -> Client:
        """Connect a client that will not read, with small buffers of the kernel.

        They hold tens of thousands of responses otherwise, which have to be made first.
        """
        client = await self.connect()
        await eventually(lambda: self.connections)
        (connection,) = self.connections
        for transport, option in (
            (connection.transport, socket.SO_SNDBUF),
            (client.writer, socket.SO_RCVBUF),
            (client.writer, socket.SO_SNDBUF),
        ):
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, SMALL_BUFFER)
        return client

    def clicks(self) -> list[Click]:
        state, position, got = inspect_spool(self.spool.directory), SpoolPosition(), []
        while (batch := read_batch(state, position, 1 << 20)).next != position:
            got += batch.clicks
            position = batch.next
        return got


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Callable[[Awaitable[None]], None]]:
    """Run a coroutine on uvloop, as the product does, or on asyncio, to test the interface."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner.run  # type: ignore[misc]


@pytest.fixture(params=LANES)
def create_responder(request: pytest.FixtureRequest) -> HitResponderClass:
    """Every way to answer a hit: compiled, by a regular expression, or only by the parser."""
    return get_responder(request.param)


@pytest.fixture
def station(tmp_path: Path, create_responder: HitResponderClass) -> Callable[..., Any]:
    @asynccontextmanager
    async def open_station(
        protocol: type[HttpToolsProtocol] = RedirectProtocol,
        networks: TrustedProxies | None = None,
        limits: ConnectionLimits | None = None,
    ) -> Any:
        here = Station(
            tmp_path / "spool",
            protocol,
            networks or TrustedProxies(),
            limits or ConnectionLimits(),
            create_responder,
        )
        server = await asyncio.get_running_loop().create_server(here.make, "127.0.0.1", 0)
        here.port = server.sockets[0].getsockname()[1]
        try:
            yield here
        finally:
            server.close()
            for connection in here.connections:
                connection.transport.abort()
            for client in here.clients:
                client.writer.close()
                with suppress(ConnectionError):
                    await client.writer.wait_closed()
            here.traffic.stop()
            here.spool.close()

    return open_station
