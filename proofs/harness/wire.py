"""An HTTP/1.1 connection that hides nothing: what was sent, what came back, and how it ended.

A client for people repairs things: it retries, reconnects, follows. A client for proofs must not,
or it would cover up what it is there to see.
"""

import asyncio
from typing import NamedTuple

_END = b"\r\n\r\n"


class Answer(NamedTuple):
    """A complete response."""

    status: int
    head: bytes
    body: bytes
    closes: bool

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode() + b":"
        for line in self.head.split(b"\r\n")[1:]:
            if line[: len(wanted)].lower() == wanted:
                return line[len(wanted) :].strip().decode("latin-1")
        return None


class Cut(Exception):
    """The connection ended before the answer was complete."""

    def __init__(self, received: int) -> None:
        super().__init__(f"cut after {received} bytes of the answer")
        self.received = received


class Wire(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._buffer = b""
        self.answered = 0
        self.lost = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, port: int) -> "Wire":
        """Raises `OSError` when nobody listens."""
        _, wire = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return wire

    @property
    def port(self) -> int:
        """Our end: by this the server's process can be found that holds the other."""
        assert self._transport is not None
        return int(self._transport.get_extra_info("sockname")[1])

    @property
    def usable(self) -> bool:
        return not self.lost.done()

    @property
    def busy(self) -> bool:
        return self._waiting is not None

    async def ask(self, request: bytes, seconds: float = 30.0) -> Answer:
        """Send a request and wait for its answer.

        `Cut` when there is none, `TimeoutError` when there is none in time.
        """
        if self.lost.done() or self._transport is None:
            raise Cut(0)
        self._waiting = asyncio.get_running_loop().create_future()
        alarm = asyncio.get_running_loop().call_later(seconds, self._too_late)
        self._transport.write(request)
        try:
            return await self._waiting
        finally:
            alarm.cancel()
            self._waiting = None

    def send(self, data: bytes) -> None:
        """Bytes that are not yet, or not at all, a request."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _too_late(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(TimeoutError())
        self.close()

    # -- the transport's side

    # TCP has no other kind of transport.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        answer = _parse(self._buffer)
        if answer is None:
            return
        self._buffer = b""
        self.answered += 1
        if answer.closes:
            self.close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)

    def connection_lost(self, _exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Cut(len(self._buffer)))


def _parse(data: bytes) -> Answer | None:
    """None while something is missing.

    Every answer of ours that a proof asks for says how long it is.
    """
    head, end, body = data.partition(_END)
    if not end:
        return None
    status = int(head[9:12])
    folded = head.lower()
    at = folded.find(b"\r\ncontent-length:")
    length = int(folded[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    if len(body) < length:
        return None
    return Answer(status, head, body[:length], b"\r\nconnection: close" in folded)


def get(path: str, *headers: str, host: str = "localhost") -> bytes:
    return request("GET", path, b"", *headers, host=host)


def request(
    method: str, path: str, body: bytes = b"", *headers: str, host: str = "localhost"
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", *headers]
    if body or method in ("POST", "PUT", "PATCH"):
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
