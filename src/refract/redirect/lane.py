"""The fast lane: a cached redirect is answered inside the HTTP protocol, without entering ASGI.

Everything that is not a plain hit goes on to the application, as `web.protocol` does it.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from refract.analytics import signals
from refract.analytics.frames import frame
from refract.core.address import network_of
from refract.redirect.table import Entry
from refract.redirect.traffic import Traffic
from refract.web.connections import STATE
from refract.web.protocol import CLOSE, BoundedProtocol

_NOT_PLAIN: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})
_TELLING: Final = signals.HEADERS | _NOT_PLAIN
_FORWARDED: Final = b"x-forwarded-for"


class Lane(BoundedProtocol):
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
        self.hosts = self.traffic.hosts
        self.answered_in = -1  # number of the turn that holds our latest answer
        self.hit = False  # the message being parsed was answered here
        self.finished = False  # an answer has announced the end: nothing after it is heard

    def eof_received(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Let our answers leave now, before something that must come after them."""
        if self.answered_in == self.turn.number:
            self.turn.commit()

    def on_headers_complete(self) -> None:
        self.receiving = False
        if self.partial:
            self.check_head()
        url = self.url
        entry, query = self.find(url), b""
        if entry is None:
            path, _, query = url.partition(b"?")
            entry = self.find(path) if query else None
            if entry is not None and (entry.forwards_query or b"#" in query):
                entry = None
        # Behind an answer that closes the connection nothing is heard.
        self.hit = (entry is not None and self._answer(entry, query)) or self.finished
        if not self.hit:
            self.hand_over()

    def on_body(self, body: bytes) -> None:
        if not self.hit:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.hit:
            super().on_message_complete()

    def _answer(self, entry: Entry, query: bytes) -> bool:
        """Put click and answer into the turn; return False when this is not a plain hit after all."""
        cycle: RequestResponseCycle | None = self.cycle
        now = self.now_ns()
        if now >= entry.expires_ns or now >= self.table.trusted_until_ns or (cycle is not None and not cycle.response_complete):
            return False
        lines = self.headers
        headers = dict(lines)
        if headers.get(b"host") not in self.hosts or (len(headers) != len(lines) and self._names_two_hosts()):
            return False
        flags = 0
        if not _TELLING.isdisjoint(headers):
            if not _NOT_PLAIN.isdisjoint(headers):
                return False
            flags = signals.flags_of(headers)
        parser = self.parser
        method = parser.get_method()
        # Only an explicit wish can keep HTTP/1.0 alive, and like uvicorn we do not grant it.
        stays = (
            parser.should_keep_alive()
            and not self.traffic.draining
            and (b"connection" not in headers or parser.get_http_version() != "1.0")
        )
        if (method != b"GET" and method != b"HEAD" and not entry.any_method) or (  # noqa: PLR1714 - cheaper than a set
            not stays and parser.get_http_version() == "0.9"
        ):
            return False
        entry.seen = True
        turn = self.turn
        if not turn.answers:
            self.loop.call_soon(turn.commit)
        if method != b"HEAD":
            network = self._forwarded_network() if self.proxied else self.network
            agent, referrer = headers.get(b"user-agent", b""), headers.get(b"referer", b"")
            turn.frames.append(frame(entry.kind, entry.target, now, flags, network, agent, referrer, query))
        self.answered_in = turn.number
        if stays:
            turn.answers.append((self.transport, entry.head))
        else:
            turn.answers += (self.transport, entry.head + CLOSE), (self.transport, None)
            self.finished = True
            self.find = _nothing
        return True

    def _names_two_hosts(self) -> bool:
        return sum(name == b"host" for name, _ in self.headers) > 1

    def _forwarded_network(self) -> bytes:
        peer = self.client[0] if self.client else ""
        return network_of(self.traffic.proxies.client(peer, [value for name, value in self.headers if name == _FORWARDED]))


def _nothing(_path: bytes) -> None:
    return None
