"""A door in front of a server that a test can close.

What is behind it is away without being stopped for others.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import make_url

PORTS = {"postgresql": 5432, "mysql": 3306}


class Proxy:
    """Forwards bytes.

    `cut` ends every connection and lets nobody in; `hang` lets everybody in and says nothing.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent = False
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        self._silent = False
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def refuse(self) -> None:
        """Let nobody in any more. Connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def hang(self) -> None:
        self._silent = True

    async def mend(self) -> None:
        await self.cut()
        await self.open()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(task := asyncio.current_task())  # type: ignore[arg-type]
        self._writers.add(writer)
        behind: asyncio.StreamWriter | None = None
        try:
            inner, behind = await asyncio.open_connection(*self._target)
            self._writers.add(behind)
            await asyncio.gather(self._pump(reader, behind), self._pump(inner, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for one in filter(None, (writer, behind)):
                one.transport.abort()
                self._writers.discard(one)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                while self._silent:  # noqa: ASYNC110 - nobody tells when it ends
                    await asyncio.sleep(0.02)
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A door in front of a database, and the URL that leads through it."""
    parts = make_url(url)
    proxy = Proxy(parts.host or "127.0.0.1", parts.port or PORTS[parts.drivername])
    await proxy.open()
    try:
        yield (
            proxy,
            parts.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False),
        )
    finally:
        await proxy.cut()
