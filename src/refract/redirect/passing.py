"""Connections of role `all`, which are passed to the process that has to answer a request.

One process only redirects, and so is never late; the others have pages, the API and everything
that needs more than a cached link. A connection is with the process that answers its latest
request. Its socket is passed on with the bytes of the next one (`server.connection_queue`), so
clients and their addresses look the same from each process.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from refract.names.grammar import is_route
from refract.redirect.cache import CachedRedirect
from refract.redirect.protocol import RedirectProtocol
from refract.web.connections import PASSING_STATE_KEY, ConnectionLimits
from refract.web.protocol import HEAD_END, NON_PLAIN_HEADERS, BoundedHttpProtocol

WRITE_POLL_SECONDS: Final = 0.005
_match_short_link = re.compile(rb"(?:GET|HEAD) /([^/?# ]+)[/? ]").match

LookUp = Callable[[bytes, bytes], Awaitable[CachedRedirect | None]]
"""Returns the redirect of a key of the cache, given the client's network."""


class PassedConnections(Protocol):
    """Where connections are passed to."""

    def send(self, transport: asyncio.Transport, data: bytes, *, is_last: bool) -> None: ...


async def _look_up_nothing(_path: bytes, _network: bytes) -> None:
    return None


@dataclass(frozen=True, slots=True)
class PassingState:
    """The state that the connections of a process share."""

    queue: PassedConnections
    look_up: LookUp = _look_up_nothing
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)


class RedirectOnlyProtocol(RedirectProtocol):
    """A connection of the process that only redirects.

    A name that isn't cached is looked up once; a request that isn't a redirect then either is
    passed on together with the connection.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        data: bytes = b"",
        is_last: bool = False,  # noqa: ARG002 - never of a connection that is passed back
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.passing: PassingState = app_state[PASSING_STATE_KEY]
        self.first_data = data
        self.message = b""  # bytes of the message that is being parsed
        self.is_held = False  # a message is looked up or passed on: nothing else is parsed
        self.is_looked_up = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        data, self.first_data = self.first_data, b""
        if data and not transport.is_closing():
            self.data_received(data)

    def parse(self, data: bytes) -> None:
        self.backlog += data
        self._parse_backlog()

    def _feed_parser(self, piece: bytes) -> None:
        """Parse a piece that ends with the head of a message at the latest, and remember it."""
        if self.message:
            # The end of the head may have begun in the piece before.
            known = len(self.message[-3:])
            end = (self.message[-3:] + piece).find(HEAD_END) + len(HEAD_END) - known
            if 0 < end < len(piece):
                self.parsed -= len(piece) - end
                piece = piece[:end]
        self.message += piece
        super()._feed_parser(piece)
        if not self.receiving and not self.is_held:
            self.message = b""

    def start_request(self) -> None:
        self.is_held = True
        self.flow.pause_reading()
        self.loop.call_soon(self._proceed)

    def on_body(self, body: bytes) -> None:
        """Leave the body to the process that gets the connection."""

    def on_message_complete(self) -> None:
        """Do nothing: the message was answered, or is passed on."""

    def _proceed(self) -> None:
        if self.is_looked_up or not self._may_be_redirect():
            self._pass_on()
            return
        self.is_looked_up = True
        prefix = self.get_prefix(dict(self.headers).get(b"host", b"")) or b""
        path = prefix + self.url.partition(b"?")[0]
        network = self._get_forwarded_network() if self.is_proxied else self.network
        task = self.loop.create_task(self._look_up(path, network))
        self.passing.tasks.add(task)
        task.add_done_callback(self.passing.tasks.discard)

    def _may_be_redirect(self) -> bool:
        headers = dict(self.headers)
        return (
            is_short_link(b"%b %b " % (self.parser.get_method(), self.url))
            and NON_PLAIN_HEADERS.isdisjoint(headers)
            and self.get_prefix(headers.get(b"host", b"")) is not None
        )

    async def _look_up(self, path: bytes, network: bytes) -> None:
        entry = await self.passing.look_up(path, network)
        if self.transport.is_closing():
            return
        if entry is None:
            self._pass_on()
            return
        message, self.message = self.message, b""
        self.is_held = False
        self.find = {path: entry}.get
        self._feed_parser(message)  # again, now with its redirect
        if not self.finished:
            self.find = self.cache.paths.get
        if not self.is_held:
            self.is_looked_up = False
            self._schedule_parsing()

    def _pass_on(self) -> None:
        """Pass the connection on, once the responses before this request are written."""
        if self.transport.is_closing():
            return
        self.flush()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(WRITE_POLL_SECONDS, self._pass_on)
            return
        data = self.message + self.backlog[self.parsed :]
        self.passing.queue.send(self.transport, data, is_last=self.shared.is_draining)

    def _can_parse(self) -> bool:
        return not self.is_held and super()._can_parse()

    def _schedule_parsing(self) -> None:
        if not self.is_held:
            super()._schedule_parsing()

    def _get_timeout(self, limits: ConnectionLimits) -> int | None:
        return None if self.is_held else super()._get_timeout(limits)

    def shutdown(self) -> None:
        if not self.is_held:
            super().shutdown()


class ApplicationProtocol(BoundedHttpProtocol):
    """A connection that the redirecting process has passed on, with the bytes of a request.

    A later request for a short link is passed back with it.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        data: bytes = b"",
        is_last: bool = False,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.passing: PassingState = app_state[PASSING_STATE_KEY]
        self.first_data = data
        self.is_last = is_last  # the process that passed it on is stopping
        self.is_passed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        data, self.first_data = self.first_data, b""
        if not transport.is_closing():
            super().data_received(data)

    def data_received(self, data: bytes) -> None:
        if self._is_idle() and is_short_link(data):
            self.is_passed = True
            self._unset_keepalive_if_required()
            self.flow.pause_reading()
            self.passing.queue.send(self.transport, data, is_last=False)
        else:
            super().data_received(data)

    def start_request(self) -> None:
        super().start_request()
        if self.is_last:
            self.cycle.keep_alive = False

    def _is_idle(self) -> bool:
        """Return whether the latest request is answered and the response written."""
        cycle: RequestResponseCycle | None = self.cycle
        return (
            cycle is not None
            and cycle.response_complete
            and not cycle.more_body
            and not self.receiving
            and not self.pipeline
            and not self.shared.is_draining
            and not self.transport.get_write_buffer_size()
        )

    def _get_timeout(self, limits: ConnectionLimits) -> int | None:
        return None if self.is_passed else super()._get_timeout(limits)

    def shutdown(self) -> None:
        if not self.is_passed:
            super().shutdown()


def is_short_link(data: bytes) -> bool:
    """Return whether a request begins with the path of a name or code, not of a page or the API."""
    found = _match_short_link(data)
    return found is not None and not is_route(
        unquote_to_bytes(found[1]).decode("utf-8", "surrogateescape")
    )
