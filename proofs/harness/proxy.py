"""A wire between Refract and PostgreSQL that can be cut.

Nothing arrives any more, and nobody is told.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import make_url

_BUS = re.compile(rb"LISTEN |SELECT [^;\0]* FROM link_feed")
"""What only those ask who follow the changes of links.

Connections on which this was seen are the bus.
"""


class _Line:
    """One connection through the proxy."""

    def __init__(
        self, proxy: "Proxy", near: asyncio.StreamWriter, far: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._writers = (near, far)
        self.is_bus = False
        self.robbed = False

    async def pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, asking: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                if asking and not self.is_bus and _BUS.search(data):
                    self.is_bus = True
                if self._proxy.cut == "all" or (self._proxy.cut == "bus" and self.is_bus):
                    self.robbed = True
                    continue
                target.write(data)
                await target.drain()
        if not self.robbed:
            target.close()

    def drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


class Proxy:
    """Passes everything on, until `cut` says what falls silent: `bus` or `all`."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lines: set[_Line] = set()
        self.cut: str | None = None

    def heal(self) -> None:
        """Connections that were robbed of something are of no use to anybody: they break."""
        self.cut = None
        for line in list(self._lines):
            if line.robbed:
                line.drop()

    async def carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, forth = await asyncio.open_connection(*self._server)
        except OSError:
            back.transport.abort()
            return
        line = _Line(self, back, forth)
        self._lines.add(line)
        try:
            await asyncio.gather(
                line.pump(near, forth, asking=True), line.pump(far, back, asking=False)
            )
        finally:
            self._lines.discard(line)
            line.drop()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """The proxy before a database, and the URL by which Refract goes through it."""
    there = make_url(url)
    proxy = Proxy(there.host or "127.0.0.1", there.port or 5432)
    server = await asyncio.start_server(proxy.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, there.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    finally:
        server.close()
        proxy.cut = None
        for line in list(proxy._lines):  # noqa: SLF001 - of this module
            line.drop()
