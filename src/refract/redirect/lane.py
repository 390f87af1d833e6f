"""The fast lane: a cached redirect is answered inside the HTTP protocol, without entering ASGI.

Everything that is not a plain hit is left to uvicorn, whose protocol this extends. The methods overridden here are pinned
by a test to the source of uvicorn they were written against.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from refract.analytics import signals
from refract.analytics.frames import frame
from refract.core.address import network_of
from refract.core.sockets import hang_up, unread
from refract.redirect.answer import CLOSE
from refract.redirect.table import Entry
from refract.redirect.traffic import STATE, Limits, Traffic

_NOT_PLAIN: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})
_TELLING: Final = signals.HEADERS | _NOT_PLAIN
_FORWARDED: Final = b"x-forwarded-for"


class HeadTooLong(Exception):
    """Raised inside the parser to stop it."""


class Lane(HttpToolsProtocol):
    """One connection. Its hits go to the turn: first the click to the spool, then the answer to the client, in order."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.traffic: Traffic = app_state[STATE]
        self.turn = self.traffic.turn
        self.table = self.traffic.table
        self.find: Callable[[bytes], Entry | None] = self.table.paths.get
        self.now_ns = self.traffic.now_ns
        self.most_head = self.traffic.limits.head_bytes
        self.url = b""
        self.network = b""  # of the peer, when it is the client
        self.proxied = False
        self.answered_in = -1  # number of the turn that holds our latest answer
        self.hit = False  # the message being parsed was answered here
        self.finished = False  # an answer has announced the end: nothing after it is heard
        self.receiving = False  # inside a head
        self.partial = False  # a head came in several pieces, or may be too long
        self.head_size = 0
        self.body_size = 0
        self.ticks = 0  # sweeps since something changed
        self.held = False  # we stopped reading because the client does not

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.traffic.lanes.add(self)
        peer = self.client[0] if self.client else ""
        self.proxied = self.traffic.proxies.trusts(peer)
        self.network = network_of(peer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.traffic.lanes.discard(self)
        super().connection_lost(exc)

    def eof_received(self) -> None:
        self.flush()

    def shutdown(self) -> None:
        self.flush()
        super().shutdown()

    def flush(self) -> None:
        """Let our answers leave now, before something that must come after them."""
        if self.answered_in == self.turn.number:
            self.turn.commit()

    # -- bytes in

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        if len(data) > self.most_head:
            self.partial = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._refuse(error)
            return
        except httptools.HttpParserUpgrade:
            self._leave_upgrade_to_uvicorn()
        if self.receiving or self.partial:
            self._count_head(data)

    def on_message_begin(self) -> None:
        # uvicorn builds the ASGI scope here; a hit needs none, so that waits for `_fall_through`.
        self.url = b""
        self.headers = []
        self.receiving = True
        self.ticks = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.receiving = False
        if self.partial:
            self._check_head()
        url = self.url
        entry = self.find(url)
        if entry is not None:
            self.hit = self._answer(entry, b"")
        else:
            path, _, query = url.partition(b"?")
            entry = self.find(path) if query else None
            self.hit = entry is not None and not entry.forwards_query and b"#" not in query and self._answer(entry, query)
        if not self.hit:
            self._fall_through()

    def on_body(self, body: bytes) -> None:
        if not self.hit:
            self.body_size += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.hit:
            super().on_message_complete()

    # -- the hit

    def _answer(self, entry: Entry, query: bytes) -> bool:
        """Put click and answer into the turn; False when this is not a plain hit after all."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            return False
        now = self.now_ns()
        if now >= entry.expires_ns or now >= self.table.trusted_until_ns:
            return False
        headers = dict(self.headers)
        flags = 0
        if not _TELLING.isdisjoint(headers):
            if not _NOT_PLAIN.isdisjoint(headers):
                return False
            flags = signals.flags_of(headers)
        parser = self.parser
        method = parser.get_method()
        if method != b"GET" and method != b"HEAD":  # noqa: PLR1714 - cheaper than a set, and this is the hot path
            return False
        entry.seen = True
        turn = self.turn
        if not turn.answers:
            self.loop.call_soon(turn.commit)
        if method == b"GET":
            network = self._forwarded_network() if self.proxied else self.network
            agent, referrer = headers.get(b"user-agent", b""), headers.get(b"referer", b"")
            turn.frames.append(frame(entry.kind, entry.target, now, flags, network, agent, referrer, query))
        self.answered_in = turn.number
        # Only an explicit wish can keep HTTP/1.0 alive, and like uvicorn we do not grant it.
        if (
            parser.should_keep_alive()
            and not self.traffic.draining
            and (b"connection" not in headers or parser.get_http_version() != "1.0")
        ):
            turn.answers.append((self.transport, entry.head))
        else:
            turn.answers += (self.transport, entry.head + CLOSE), (self.transport, None)
            self.finished = True
            self.find = _nothing
        return True

    def _forwarded_network(self) -> bytes:
        peer = self.client[0] if self.client else ""
        return network_of(self.traffic.proxies.client(peer, [value for name, value in self.headers if name == _FORWARDED]))

    # -- everything else

    def _fall_through(self) -> None:
        if self.finished:
            self.hit = True  # behind an answer that closes the connection: not heard
            return
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url = url
        self.scope["headers"] = self.headers = headers
        self.expect_100_continue = any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)
        self.body_size = 0
        super().on_headers_complete()

    def _leave_upgrade_to_uvicorn(self) -> None:
        if self._should_upgrade():
            self.handle_websocket_upgrade()
        else:
            self._unsupported_upgrade_warning()

    def send_400_response(self, msg: str) -> None:
        self.flush()
        super().send_400_response(msg)

    # -- heads that are too long

    def _count_head(self, data: bytes) -> None:
        """The parser buffers a head without bound, so it is counted piece by piece."""
        self.partial = self.receiving
        if self.receiving:
            self.head_size += len(data)
            end = data.rfind(b"\r\n\r\n")
            if end >= 0:
                self.head_size = len(data) - end - 4  # what went before belonged to an earlier message
            if self.head_size > self.most_head:
                self._refuse(HeadTooLong())

    def _check_head(self) -> None:
        self.head_size = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self.most_head:
            raise HeadTooLong

    def _refuse(self, error: Exception) -> None:
        if not isinstance(error, HeadTooLong) and not isinstance(error.__context__, HeadTooLong):
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")
            return
        self.flush()
        dates = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        self.transport.write(STATUS_LINE[431] + dates + b"content-length: 0\r\n" + CLOSE + b"\r\n")
        self.transport.close()

    # -- clients that do not read, and clients that do not write

    def pause_writing(self) -> None:
        super().pause_writing()
        self.ticks = 0
        self._hold()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.ticks = 0
        if self.held:
            self.held = False
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # resumes reading
        if self.flow.write_paused and not self.transport.is_closing():
            self._hold()

    def _hold(self) -> None:
        if not self.flow.read_paused:
            self.flow.pause_reading()
            self.held = True

    def sweep(self, limits: Limits) -> None:
        """Called once a second: has this connection had its time?"""
        self.ticks += 1
        if self.flow.write_paused or self.transport.is_closing():
            if self.ticks >= limits.stall_seconds:
                self.transport.abort()
            return
        patience = self._patience(limits)
        if patience is None:
            self.ticks = 0
        elif self.ticks >= patience and not unread(self.transport):
            self.flush()
            self.transport.close()
            hang_up(self.transport)

    def timeout_keep_alive_handler(self) -> None:
        """After a long sleep of the whole process timers come first, and what clients sent meanwhile after them."""
        if not unread(self.transport):
            super().timeout_keep_alive_handler()
            hang_up(self.transport)

    def _patience(self, limits: Limits) -> int | None:
        """None while it is the application that makes the client wait."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.receiving or self.headers is None:
            return limits.head_seconds
        if cycle is None or cycle.response_complete:
            return limits.idle_seconds
        if cycle.more_body and not self.flow.read_paused:
            return limits.body_seconds + self.body_size // limits.body_rate
        return None


def _nothing(_path: bytes) -> None:
    return None
