"""HTTP/1.1 with limits for headers, pipelines, bodies and time.

The class extends uvicorn's httptools protocol; a test pins the methods it overrides to the source
of uvicorn they were written against.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from refract.core.ip_addresses import get_network
from refract.core.sockets import has_unread_data, shut_down_writing
from refract.web.connections import CONNECTIONS_STATE_KEY, ConnectionLimits, OpenConnections

HEAD_END: Final = b"\r\n\r\n"
CLOSE_HEADER: Final = b"connection: close\r\n"
MAX_QUEUED_REQUESTS: Final = 32
"""Requests of a connection that are parsed in one turn of the event loop, or queued."""
MAX_UNCHECKED_BYTES: Final = MAX_QUEUED_REQUESTS * len(b"GET / HTTP/1.1\r\n\r\n")
"""Bytes that are parsed at once: too few for more requests than may be queued."""
MAX_BYTES_PER_TURN: Final = 16 * 1024
"""Bytes of a connection that are parsed in one turn of the event loop."""
NON_PLAIN_HEADERS: Final = frozenset(
    {b"content-length", b"transfer-encoding", b"expect", b"upgrade"}
)
"""Headers of requests that have a body, or want more than a response."""


class HeadTooLong(Exception):
    """Raised inside the parser: the head of a request is too long."""


class UnknownVersion(Exception):
    """Raised inside the parser: the request isn't HTTP/1, so its sender can't read a response."""


class PacedFlowControl(FlowControl):
    """Flow control that lets the connection decide when to resume reading."""

    def __init__(self, transport: asyncio.Transport, proceed: Callable[[], None]) -> None:
        super().__init__(transport)
        self._resume = proceed

    def resume_reading(self) -> None:
        if self.read_paused:
            self._resume()

    def resume_transport(self) -> None:
        super().resume_reading()


class BoundedHttpProtocol(HttpToolsProtocol):
    """A connection. While a response is pending, input stays unparsed and reading is paused."""

    flow: PacedFlowControl

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.shared: OpenConnections = app_state[CONNECTIONS_STATE_KEY]
        self.max_head = self.shared.limits.head_bytes
        self.url = b""
        self.network = b""  # of the peer, if it is the client
        self.counted_network: bytes | None = (
            b""  # the network whose limit this connection counts for
        )
        self.is_proxied = False
        self.running: RequestResponseCycle | None = None
        self.backlog = b""  # arrived and not parsed, from `parsed` on
        self.parsed = 0
        self.is_scheduled = False
        self.receiving = False  # inside a head
        self.partial = False  # a head arrived in several pieces
        self.head_size = 0
        self.body_size = 0
        self.ticks = 0  # sweeps since something changed

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = PacedFlowControl(transport, self._schedule_parsing)
        self.shared.open.add(self)
        peer = self.client[0] if self.client else ""
        self.is_proxied = self.shared.proxies.is_trusted(peer)
        self.network = get_network(peer)
        self.counted_network = self.shared.register(peer)
        if self.counted_network is None:
            self._close_with_status(429, b"retry-after: 1\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self.shared.open.discard(self)
        self.shared.unregister(self.counted_network or b"")
        self.backlog = b""
        if self.running is not None and not self.running.response_complete:
            self.running.disconnected = True  # uvicorn notifies only the newest request
            self.running.message_event.set()
        super().connection_lost(exc)

    def flush(self) -> None:
        """Send what must be written before anything that follows."""

    def shutdown(self) -> None:
        self.flush()
        super().shutdown()

    # -- bytes in

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        # There is no backlog: while there is one, reading is paused.
        if len(data) > MAX_UNCHECKED_BYTES and (
            len(data) > MAX_BYTES_PER_TURN or data.find(HEAD_END) != len(data) - 4
        ):
            self.backlog += data
            self._parse_backlog()
            return
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            self._on_parser_stop(exc, data)
            self._parse_backlog()
            return
        if self.receiving or self.partial:
            self._count_head(data)

    def _parse_backlog(self) -> None:
        """Parse the backlog by requests, until one waits for a response or the turn is over."""
        self.is_scheduled = False
        self._unset_keepalive_if_required()
        left, pieces = MAX_BYTES_PER_TURN, MAX_QUEUED_REQUESTS
        while self.parsed < len(self.backlog) and self._can_parse():
            if left <= 0 or not pieces:
                self._schedule_parsing()
                break
            end = self.backlog.find(HEAD_END, self.parsed, self.parsed + left)
            end = min(len(self.backlog), self.parsed + left) if end < 0 else end + len(HEAD_END)
            piece = self.backlog[self.parsed : end]
            self.parsed = end
            left -= len(piece)
            pieces -= 1
            self._feed_parser(piece)
        if self.transport.is_closing():
            self.parsed = len(self.backlog)
        if self.parsed < len(self.backlog):
            self.flow.pause_reading()
        else:
            self.backlog, self.parsed = b"", 0
            self._schedule_parsing()

    def _feed_parser(self, piece: bytes) -> None:
        try:
            self.parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            self._on_parser_stop(exc, piece)
            return
        if self.receiving or self.partial:
            self._count_head(piece)

    def _on_parser_stop(self, exc: Exception, data: bytes) -> None:
        """Reject what can't be parsed. An upgrade is ignored: what follows it is still HTTP."""
        if not isinstance(exc, httptools.HttpParserUpgrade):
            self._reject(exc)
            return
        self.backlog = data[exc.args[0] :] + self.backlog[self.parsed :]
        self.parsed = 0

    def _can_parse(self) -> bool:
        """Return whether more may be parsed: no response is pending, or its request isn't read."""
        if self.transport.is_closing() or self.pipeline or self.flow.write_paused:
            return False
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return cycle.more_body and len(cycle.body) <= HIGH_WATER_LIMIT

    def _schedule_parsing(self) -> None:
        """Parse the rest in a later turn of the event loop; resume reading if there is none."""
        if self.transport.is_closing():
            return
        if self.backlog:
            if not self.is_scheduled and self._can_parse():
                self.is_scheduled = True
                self.loop.call_soon(self._parse_backlog)
        elif not self.pipeline and not self.flow.write_paused and not self._is_body_full():
            self.flow.resume_transport()

    def _is_body_full(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return (
            cycle is not None and not cycle.response_complete and len(cycle.body) > HIGH_WATER_LIMIT
        )

    # -- messages

    def on_message_begin(self) -> None:
        # uvicorn builds the ASGI scope here. It is built later, since not every request needs one.
        self.url = b""
        self.headers = []
        self.receiving = True
        self.ticks = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.receiving = False
        if self.partial:
            self.check_head()
        self.start_request()

    def start_request(self) -> None:
        """Start the application for a request, as uvicorn would."""
        if self.parser.get_http_version() == "0.9":
            raise UnknownVersion
        url, headers = self.url, self.headers
        if not url.startswith(b"/") and b"://" in url:
            headers = _replace_host(url, headers)
        super().on_message_begin()
        self.url = url
        self.scope["headers"] = self.headers = headers
        self.expect_100_continue = any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in headers
        )
        self.body_size = 0
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        self.body_size += len(body)
        super().on_body(body)

    # -- refusals

    def send_400_response(self, msg: str) -> None:
        self.flush()
        super().send_400_response(msg)

    def _count_head(self, data: bytes) -> None:
        """Count the bytes of a head, since the parser buffers it without limit."""
        self.partial = self.receiving
        if self.receiving:
            self.head_size += len(data)
            end = data.rfind(HEAD_END)
            if end >= 0:
                self.head_size = len(data) - end - 4  # earlier bytes belonged to an earlier message
            if self.head_size > self.max_head:
                self._reject(HeadTooLong())

    def check_head(self) -> None:
        """Stop the parser if the completed head is too long."""
        self.head_size = 0
        if (
            len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            > self.max_head
        ):
            raise HeadTooLong

    def _reject(self, exc: Exception) -> None:
        match exc if isinstance(exc, HeadTooLong) else exc.__context__:
            case HeadTooLong():
                self.shared.count_refusal("head")
                self._close_with_status(431)
            case UnknownVersion():
                self.shared.count_refusal("version")
                self.flush()
                self.transport.close()
            case _:
                self.shared.count_refusal("malformed")
                self.send_400_response("Invalid HTTP request received.")

    def _close_with_status(self, status: int, lines: bytes = b"") -> None:
        self.flush()
        dates = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        self.transport.write(
            STATUS_LINE[status] + dates + lines + b"content-length: 0\r\n" + CLOSE_HEADER + b"\r\n"
        )
        self.transport.close()

    # -- clients that don't read, and clients that don't write

    def pause_writing(self) -> None:
        super().pause_writing()
        self.ticks = 0
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.ticks = 0
        self._schedule_parsing()

    def sweep(self, limits: ConnectionLimits) -> None:
        """Close the connection if it timed out. Called once a second."""
        self.ticks += 1
        if self.flow.write_paused or self.transport.is_closing():
            if self.ticks >= limits.stall_seconds:
                self.transport.abort()
            return
        cycle: RequestResponseCycle | None = self.cycle
        ignored = (
            cycle is not None and cycle.response_complete and cycle.more_body
        )  # a body that isn't read
        patience = self._get_timeout(limits)
        if patience is None:
            self.ticks = 0
        elif self.ticks >= patience and (ignored or not has_unread_data(self.transport)):
            self.flush()
            self.transport.close()
            shut_down_writing(self.transport)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection without input: after a pause, timers run before reads."""
        if not has_unread_data(self.transport):
            super().timeout_keep_alive_handler()
            shut_down_writing(self.transport)

    def _get_timeout(self, limits: ConnectionLimits) -> int | None:
        """Return the timeout of this state, or None while the client waits for the application."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.receiving or self.headers is None:
            return limits.head_seconds
        if cycle is None or cycle.response_complete:
            return (
                limits.idle_seconds if cycle is None or not cycle.more_body else limits.body_seconds
            )
        if cycle.more_body and not self.flow.read_paused:
            return limits.body_seconds + self.body_size // limits.body_rate
        return None


def _replace_host(url: bytes, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Use the host of an absolute request URL instead of the header's (RFC 9112, 3.2.2)."""
    authority = url.split(b"://", 1)[1].split(b"/", 1)[0].split(b"?", 1)[0].rpartition(b"@")[2]
    return [(name, authority if name == b"host" else value) for name, value in headers]
