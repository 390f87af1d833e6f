"""A lookup in memory, pages as JSON, and a real server on a loopback port."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from refract.identity.models import User
from refract.links.golinks.template import parse_template
from refract.redirect.resolver import RedirectTarget, SignedInUser
from refract.web.i18n import LazyText


@dataclass(frozen=True)
class Person:
    user: User
    is_admin: bool = False


def person(user_id: int, *, is_admin: bool = False) -> Person:
    return Person(User(id=user_id), is_admin)


def link(name: str, destination: str, **facts: Any) -> RedirectTarget:
    return RedirectTarget(
        kind="link", id=facts.pop("id", 1), name=name, template=parse_template(destination), **facts
    )


@dataclass
class MemoryLookup:
    """A lookup in memory. A set of user ids may open secure links."""

    names: dict[str, RedirectTarget] = field(default_factory=dict)
    allowed: set[int] = field(default_factory=set)
    near: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    suggested_to: list[int | None] = field(default_factory=list)
    has_kept_codes: bool = False

    def add(self, *found: RedirectTarget) -> None:
        self.names |= {one.name.lower().replace("_", "-"): one for one in found}

    async def find(self, text: str) -> RedirectTarget | None:
        self.asked.append(text)
        return self.names.get(text.lower().replace("_", "-"))

    async def can_open(
        self,
        found: RedirectTarget,  # noqa: ARG002 - one set for all links
        visitor: SignedInUser,
    ) -> bool:
        return visitor.is_admin or visitor.user.id in self.allowed

    async def read_rules(self, found: RedirectTarget) -> RedirectTarget:
        return found

    async def suggest(
        self,
        text: str,  # noqa: ARG002 - the same for every text
        visitor: SignedInUser | None,
    ) -> list[str]:
        self.suggested_to.append(visitor.user.id if visitor else None)
        return self.near


class PlainSurface:
    """A frontend that renders template and context as JSON. The cookie `as=7` is user 7."""

    async def authenticate(self, scope: Scope) -> SignedInUser | None:
        told = Request(scope).cookies.get("as")
        return person(abs(int(told)), is_admin=int(told) < 0) if told else None

    def get_network(self, scope: Scope) -> str:
        return Request(scope).headers.get("x-network", "here")

    async def get_manage_url(
        self,
        visitor: SignedInUser | None,  # noqa: ARG002 - nobody manages anything here
        found: RedirectTarget,  # noqa: ARG002 - nobody manages anything here
    ) -> str | None:
        return None

    async def can_create(self, visitor: SignedInUser | None, name: str) -> bool:
        return visitor is not None and not name.startswith("taken")

    def render_page(
        self,
        scope: Scope,
        visitor: SignedInUser | None,
        template: str,
        *,
        status: int,
        page_title: str | LazyText,
        **context: Any,
    ) -> Response:
        facts = {
            "template": template,
            "path": scope["path"],
            "title": page_title,
            "user": visitor.user.id if visitor else None,
        }
        body = json.dumps(facts | context, default=str)
        return Response(body, status, media_type="text/html")

    async def render_slow_page(
        self, scope: Scope, template: str, *, page_title: str | LazyText, **context: Any
    ) -> Response:
        return self.render_page(scope, None, template, status=200, page_title=page_title, **context)


@dataclass(frozen=True)
class Reply:
    """A response, byte for byte."""

    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def lines(self) -> list[bytes]:
        return self.head.split(b"\r\n")[1:]

    def values(self, name: bytes) -> list[bytes]:
        return [
            line.partition(b":")[2].strip()
            for line in self.lines
            if line.partition(b":")[0].lower() == name
        ]

    def header(self, name: str) -> str | None:
        found = self.values(name.encode())
        return found[0].decode("latin-1") if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A keep-alive connection, read without an HTTP library."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, path: str | bytes, method: str = "GET", **headers: str) -> Reply:
        raw = path.encode() if isinstance(path, str) else path
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self._writer.write(
            method.encode()
            + b" "
            + raw
            + b" HTTP/1.1\r\nHost: go.test\r\n"
            + extra.encode()
            + b"\r\n"
        )
        head = (await self._reader.readuntil(b"\r\n\r\n"))[:-4]
        reply = Reply(head, b"")
        length = int(reply.header("content-length") or 0)
        return Reply(
            head, await self._reader.readexactly(length) if length and method != "HEAD" else b""
        )

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[Callable[[], Any]]:
    """Serve the application with uvicorn; yield a function that opens connections."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http="httptools",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        log_config=None,
        ws="none",
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    opened: list[Wire] = []

    async def connect() -> Wire:
        wire = Wire(*await asyncio.open_connection(*listener.getsockname()))
        opened.append(wire)
        return wire

    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event to wait for
            await asyncio.sleep(0.01)
        yield connect
    finally:
        for wire in opened:
            wire.close()
        server.should_exit = True
        await task
        listener.close()
