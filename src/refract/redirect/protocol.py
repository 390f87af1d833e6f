"""The fast lane: cached redirects are sent by the HTTP protocol, without entering ASGI.

A plain hit is answered from its bytes (`redirect.lane`), any other hit after it was parsed. Any
other request goes to the application, as in `web.protocol`.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from refract.clicks.spool import request_flags
from refract.clicks.spool.format import encode_frame
from refract.clicks.spool.languages import encode_language
from refract.clicks.spool.writer import SpoolWriter, TurnBuffer
from refract.core.ip_addresses import TrustedProxies
from refract.limits.shared_limits import MissLimit
from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.lane import HitResponderClass, create_hit_responder
from refract.web.connections import (
    CONNECTIONS_STATE_KEY,
    ConnectionLimits,
    HostPrefixes,
    OpenConnections,
)
from refract.web.protocol import CLOSE_HEADER, NON_PLAIN_HEADERS, BoundedHttpProtocol

_SPECIAL_HEADERS: Final = request_flags.FLAG_HEADERS | NON_PLAIN_HEADERS


class RedirectProtocol(BoundedHttpProtocol):
    """A connection. A hit is queued in the turn buffer.

    At the end of the turn its click is written to the spool, then responses are sent in order.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.redirect_connections: RedirectConnections = app_state[CONNECTIONS_STATE_KEY]
        self.turn = self.redirect_connections.turn
        self.cache = self.redirect_connections.cache
        self.find: Callable[[bytes], CachedRedirect | None] = self.cache.paths.get
        self.now_ns = self.redirect_connections.now_ns
        self.get_prefix = self.redirect_connections.hosts.get
        self.answer_hit: Callable[[bytes], bool] = _answer_nothing
        self.last_turn = -1  # number of the turn with our latest response
        self.hit = False  # this message was handled here
        self.finished = False  # a response closes the connection: later messages are ignored

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        shared = self.redirect_connections
        find_network = partial(shared.proxies.find_network, self.client)
        self.answer_hit = shared.create_responder(
            shared, transport, self.network, find_network if self.is_proxied else None
        ).answer

    def connection_lost(self, exc: Exception | None) -> None:
        self.answer_hit = _answer_nothing
        super().connection_lost(exc)

    def eof_received(self) -> None:
        self.flush()

    def data_received(self, data: bytes) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        if (
            self.receiving
            or (cycle is not None and (cycle.more_body or not cycle.response_complete))
            or self.redirect_connections.is_draining
            or not self.answer_hit(data)
        ):
            self.parse(data)
            return
        # As after a parsed hit: the connection is idle from now on, and has had a request.
        self.ticks = 0
        self.headers = []
        self.last_turn = self.turn.number
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()

    def parse(self, data: bytes) -> None:
        """Parse bytes that are no plain hit."""
        super().data_received(data)

    def flush(self) -> None:
        """Send queued responses now, before a response that must follow them."""
        if self.last_turn == self.turn.number:
            self.turn.commit()

    def on_headers_complete(self) -> None:
        self.receiving = False
        if self.partial:
            self.check_head()
        headers = dict(self.headers)
        prefix = self.get_prefix(headers.get(b"host", b""))
        # After a response that closes the connection, messages are ignored.
        self.hit = (
            prefix is not None and self._try_respond(prefix + self.url, headers)
        ) or self.finished
        if not self.hit:
            self.start_request()

    def on_body(self, body: bytes) -> None:
        if not self.hit:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.hit:
            super().on_message_complete()

    def _try_respond(self, url: bytes, headers: dict[bytes, bytes]) -> bool:
        """Queue click and response. Return False if this is not a plain hit."""
        entry, query = self._find_entry(url)
        if entry is None:
            return False
        cycle: RequestResponseCycle | None = self.cycle
        now = self.now_ns()
        if (
            now >= entry.expires_ns
            or now >= self.cache.trusted_until_ns
            or (cycle is not None and not cycle.response_complete)
            or (entry.guessable and self._is_code_refused(now))
        ):
            return False
        if len(headers) != len(self.headers) and self._has_two_hosts():
            return False
        flags = 0
        if not _SPECIAL_HEADERS.isdisjoint(headers):
            if not NON_PLAIN_HEADERS.isdisjoint(headers):
                return False
            flags = request_flags.parse_flags(headers)
        parser = self.parser
        method = parser.get_method()
        # HTTP/1.0 is kept alive only on request, which uvicorn does not support, nor do we.
        stays = (
            parser.should_keep_alive()
            and not self.redirect_connections.is_draining
            and (b"connection" not in headers or parser.get_http_version() != "1.0")
        )
        decided = self._decide(entry, now, headers, query)
        if (
            decided is None
            or (
                method != b"GET"  # noqa: PLR1714 - cheaper than a set
                and method != b"HEAD"
                and not entry.any_method
            )
            or (not stays and parser.get_http_version() == "0.9")
        ):
            return False
        entry.seen = True
        head, origin = decided
        turn = self.turn
        if not turn.answers:
            self.loop.call_soon(turn.commit)
        if method != b"HEAD":
            network = self._get_forwarded_network() if self.is_proxied else self.network
            agent, referrer = headers.get(b"user-agent", b""), headers.get(b"referer", b"")
            turn.frames.append(
                encode_frame(
                    *(entry.kind, entry.target, now, flags, network, agent, referrer, query),
                    origin,
                    encode_language(headers.get(b"accept-language", b"")),
                )
            )
        self.last_turn = turn.number
        if stays:
            turn.answers.append((self.transport, head))
        else:
            turn.answers += (self.transport, head + CLOSE_HEADER), (self.transport, None)
            self.finished = True
            self.find, self.answer_hit = _find_nothing, _answer_nothing
        return True

    def _decide(
        self, entry: CachedRedirect, now: int, headers: dict[bytes, bytes], query: bytes
    ) -> tuple[bytes, bytes] | None:
        """Return the head of the response and the origin of the click, or None for a card."""
        if entry.rules is None:
            return entry.head, entry.domain
        return entry.rules.apply(
            now,
            self._get_forwarded_network() if self.is_proxied else self.network,
            headers.get(b"user-agent", b""),
            headers.get(b"accept-language", b""),
            headers.get(b"referer", b""),
            query,
        )

    def _find_entry(self, url: bytes) -> tuple[CachedRedirect | None, bytes]:
        """Return the entry of a URL, and the query if it is not part of the key."""
        entry = self.find(url)
        if entry is not None:
            return entry, b""
        path, _, query = url.partition(b"?")
        entry = self.find(path) if query else None
        if entry is not None and (entry.forwards_query or b"#" in query):
            entry = None
        return entry, query

    def _is_code_refused(self, now: int) -> bool:
        """Return whether this network has used up its misses, and so finds no codes either."""
        misses = self.redirect_connections.misses
        if misses is None or now >= misses.exhausted_until_ns:
            return False
        return misses.is_code_refused(
            self._get_forwarded_network() if self.is_proxied else self.network
        )

    def _has_two_hosts(self) -> bool:
        return sum(name == b"host" for name, _ in self.headers) > 1

    def _get_forwarded_network(self) -> bytes:
        return self.redirect_connections.proxies.find_network(self.client, self.headers)


def _find_nothing(_path: bytes) -> None:
    return None


def _answer_nothing(_data: bytes) -> bool:
    return False


# Shared by the connections of a process: the cache, the turn buffer, and the date.


class RedirectConnections(OpenConnections):
    """The open connections of a redirecting process."""

    def __init__(  # noqa: PLR0913 - all but two by keyword
        self,
        cache: RedirectCache,
        spool: SpoolWriter,
        *,
        proxies: TrustedProxies | None = None,
        limits: ConnectionLimits | None = None,
        hosts: HostPrefixes | None = None,
        count_refusal: Callable[[str], None] | None = None,
        misses: MissLimit | None = None,
        now_ns: Callable[[], int] = time.time_ns,
        create_responder: HitResponderClass = create_hit_responder,
    ) -> None:
        super().__init__(proxies=proxies, limits=limits, hosts=hosts, count_refusal=count_refusal)
        self.cache = cache
        self.turn = TurnBuffer(
            spool, lambda call: asyncio.get_running_loop().call_soon(call), self._build_tail()
        )
        self.now_ns = now_ns
        self.misses = misses
        self.create_responder = create_responder

    def stop(self) -> None:
        """Stop the sweep and send queued responses. The spool is closed by its owner."""
        super().stop()
        self.turn.commit()

    def sweep(self) -> None:
        """Update the date, and let every connection check its timeouts."""
        self.turn.ending = self._build_tail()
        super().sweep()

    @staticmethod
    def _build_tail() -> bytes:
        return responses.build_tail(time.time())
