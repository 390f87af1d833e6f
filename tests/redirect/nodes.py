"""A redirect node in the test process, on a real socket, whose engine can be inspected."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from refract.clicks.spool.format import Click
from refract.clicks.spool.reader import SpoolPosition, inspect_spool, read_batch
from refract.core.db.raw import RawReader, RawRow
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.redirect.engine import RedirectEngine
from refract.server.node import ServerNode
from refract.server.uvicorn import GracefulServer
from tests.conftest import make_settings
from tests.waiting import PATIENCE


class Counting:
    """A reader that records its queries and can be blocked."""

    def __init__(self, inner: RawReader) -> None:
        self.inner = inner
        self.asked: list[tuple[object, ...]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.after = asyncio.Event()
        self.after.set()
        self.read = asyncio.Event()

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        self.asked.append(values)
        await self.gate.wait()
        found = await self.inner.fetch_rows(statement, *values)
        self.read.set()
        await self.after.wait()
        return found

    async def close(self) -> None:
        await self.inner.close()


class Place:
    """A node and its parts."""

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.node = ServerNode(rt)
        assert self.node.engine is not None
        self.engine: RedirectEngine = self.node.engine
        database = self.engine.lookup._database
        self.reader = database._reader = Counting(database._reader)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.node), base_url="http://go.test"
        )

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """Send a request through ASGI, bypassing the protocol."""
        return await self.client.get(path, **more)

    @property
    def cached(self) -> set[bytes]:
        return set(self.engine.cache.paths)

    def clicks(self) -> list[Click]:
        state, position, got = inspect_spool(self.engine.spool.directory), SpoolPosition(), []
        while (batch := read_batch(state, position, 1 << 20)).next != position:
            got += batch.clicks
            position = batch.next
        return got

    @asynccontextmanager
    async def on_the_wire(self) -> AsyncIterator[httpx.AsyncClient]:
        """Serve with our protocol, as `refract serve` does."""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            self.node,
            http=self.node.protocol_class,
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            server_header=False,
        )
        server = GracefulServer(config, self.node)
        accepting = asyncio.Event()

        async def ready() -> None:
            accepting.set()

        running = asyncio.create_task(server.run_until_stopped(listener, ready))
        await accepting.wait()
        try:
            host = self.rt.settings.public_url.split("://")[1]
            async with httpx.AsyncClient(
                base_url=url, trust_env=False, headers={"Host": host}, timeout=PATIENCE
            ) as client:
                yield client
        finally:
            server.stop()
            await running


@asynccontextmanager
async def open_place(rt: Runtime, *, listening: bool = False) -> AsyncIterator[Place]:
    """Open a node. `listening` runs the invalidation; without it a test polls the feed itself."""
    place = Place(rt)
    try:
        if listening:
            async with place.engine.run():
                yield place
        else:
            await place.engine.invalidator.poll()
            rt.clock.advance(1)  # type: ignore[attr-defined]  # a test's clock
            yield place
    finally:
        await place.client.aclose()
        place.engine.spool.close()


@pytest.fixture
def settings(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    given = (
        {"redis_url": request.getfixturevalue("redis_server").url}
        if "redis_server" in request.fixturenames
        else {}
    )
    return make_settings(
        tmp_path / "data", database_url=database, role="redirect", misses_per_minute=None, **given
    )


@pytest.fixture
async def nodes(rt: Runtime) -> AsyncIterator[list[Place]]:
    """Two processes. Only the first hears of the test's commits before it polls."""
    async with AsyncExitStack() as opened:
        db = Database(rt.settings)
        opened.push_async_callback(db.close)
        other = Runtime(settings=rt.settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
        opened.push_async_callback(other.close)
        yield [await opened.enter_async_context(open_place(each)) for each in (rt, other)]
