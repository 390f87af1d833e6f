"""A web server on loopback with good, odd, slow, huge and hostile pages."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def page(
    body: bytes, *, status: str = "200 OK", kind: str = "text/html; charset=utf-8", more: str = ""
) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length:"
            f" {len(body)}\r\n{more}\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()

    return answer


def redirect(to: str) -> Answer:
    return page(b"", status="302 Found", more=f"Location: {to}\r\n")


async def silence(_writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def huge(writer: asyncio.StreamWriter) -> None:
    """Send fifty megabytes, the title first."""
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length:"
        b" 52428800\r\n\r\n<title>Huge</title>"
    )
    for _ in range(800):
        writer.write(b"x" * 65536)
        await writer.drain()


def held(gate: asyncio.Event, then: Answer, reached: asyncio.Event) -> Answer:
    """Return a handler that responds when the test opens the gate."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        reached.set()
        await gate.wait()
        await then(writer)

    return answer


class Site:
    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.port = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            self.asked.append(path)
            await self.pages.get(path, page(b"nothing", status="404 Not Found"))(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever asked had heard enough
        finally:
            writer.close()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    here = Site()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(here.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
