"""Small HTTP servers on real sockets: pages to be saved, and a model that may misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, str, bytes]
Responder = Callable[[str, bytes], Awaitable[Answer]]


@dataclass
class Server:
    """Answers one request per connection."""

    respond: Responder
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ", 2)[1]
            length = next(
                (
                    int(line.split(":")[1])
                    for line in head.splitlines()
                    if line.lower().startswith("content-length:")
                ),
                0,
            )
            body = await reader.readexactly(length)
            self.asked.append((path, body))
            status, kind, content = await self.respond(path, body)
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length:"
                f" {len(content)}\r\nConnection: close\r\n\r\n".encode()
            )
            writer.write(content)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(respond: Responder) -> AsyncIterator[Server]:
    server = Server(respond)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


@dataclass
class Site:
    """Pages by path; everything else is 404. A bare status is a page that responds with it."""

    server: Server
    pages: dict[str, str | int]

    def url(self, path: str) -> str:
        return f"{self.server.url}{path}"


@asynccontextmanager
async def a_site(pages: dict[str, str | int] | None = None) -> AsyncIterator[Site]:
    known: dict[str, str | int] = dict(pages or {})

    async def respond(path: str, _body: bytes) -> Answer:
        page = known.get(path, 404)
        return (
            (page, "text/html", b"<p>error</p>")
            if isinstance(page, int)
            else (200, "text/html; charset=utf-8", page.encode())
        )

    async with serving(respond) as server:
        yield Site(server, known)


def completion(content: Any) -> Answer:
    """Return a chat completion with this content."""
    said = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return (
        200,
        "application/json",
        json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode(),
    )


GOOD = {
    "title": "A title by the model",
    "summary": "A summary by the model.",
    "tags": ["engines", "history"],
}


@dataclass
class Model:
    """A model behind a socket.

    `says` has its next responses, the last of which is repeated. A question with the field
    `unknown_field` gets 400.
    """

    server: Server
    says: list[Answer]
    pause: float = 0.0
    unknown_field: str | None = None

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.server.asked]


@asynccontextmanager
async def a_model() -> AsyncIterator[Model]:
    async def respond(_path: str, body: bytes) -> Answer:
        if model.pause:
            await asyncio.sleep(model.pause)
        if model.unknown_field in json.loads(body):
            return (400, "application/json", b'{"error": "unknown field"}')
        return model.says.pop(0) if len(model.says) > 1 else model.says[0]

    async with serving(respond) as server:
        model = Model(server, [completion(GOOD)])
        yield model


def page(title: str, body: str, *, head: str = "", lang: str = "en") -> str:
    """Return a page like that of a blog: navigation, an article, a footer."""
    paragraphs = "".join(f"<p>{part}</p>" for part in body.split("\n"))
    return (
        f'<!doctype html><html lang="{lang}"><head><meta'
        f' charset="utf-8"><title>{title}</title>{head}</head><body><nav><a href="/">Home</a> <a'
        ' href="/about">About'
        f" us</a></nav><article><h1>{title}</h1>{paragraphs}</article><footer>All rights reserved."
        " We use cookies.</footer></body></html>"
    )
