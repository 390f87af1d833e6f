"""Servers at every address of the sealed network, scripted names, and a log of connections."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Self

from refract.core.net import IpAddress
from tests.core.net.corpus import PUBLIC

PUBLIC6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


@dataclass(frozen=True)
class Request:
    """A request as a server saw it."""

    target: str
    headers: dict[str, str]
    reached: str


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    given = {"Content-Type": "text/html", "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def sends(raw: bytes) -> Handler:
    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return handler


def page(body: bytes = b"<title>Hello</title>", **headers: str) -> Handler:
    return sends(answer("200 OK", body, **headers))


def redirect(location: str, status: str = "302 Found") -> Handler:
    return sends(answer(status, Location=location))


@dataclass
class Internet:
    """`sites[path]` answers for any address and name; `reached` lists the connected addresses."""

    sites: dict[str, Handler] = field(default_factory=dict)
    reached: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        reached = str(writer.get_extra_info("sockname")[0])
        self.reached.append(reached)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            request = Request(head[0].split(" ")[1], headers, reached)
            self.requests.append(request)
            await self.sites.get(request.target.partition("?")[0], sends(answer("404 Not Found")))(
                request, writer
            )
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client had read enough, as many of these tests want
        finally:
            writer.close()

    async def listen(
        self,
        port: int = 80,
        *,
        hosts: Sequence[str] = ("0.0.0.0", "::"),  # noqa: S104 - the sealed network
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        for host in hosts:
            self._servers.append(await asyncio.start_server(self._serve, host, port, ssl=tls))
        return self

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)  # lets the transports close


@asynccontextmanager
async def internet() -> AsyncIterator[Internet]:
    here = await Internet().listen()
    try:
        yield here
    finally:
        await here.close()


class Names:
    """Return a resolver with a script of answers per name; the last one stays."""

    def __init__(self, **scripts: Sequence[str]) -> None:
        self.scripts = {
            name.replace("_", "."): [script.split() for script in scripts[name]] for name in scripts
        }
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[IpAddress]:
        self.asked.append(host)
        if host not in self.scripts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        scripts = self.scripts[host]
        answers = scripts[min(self.asked.count(host), len(scripts)) - 1]
        return [ip_address(text) for text in answers]


def good_names() -> Names:
    return Names(good_test=[PUBLIC], other_test=["1.0.0.1"], six_test=[PUBLIC6])
