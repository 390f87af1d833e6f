"""Where a hit's microseconds go: the lane without sockets, part by part.

`python -m bench lane_parts`

Single thread, best of several repeats, nothing but our own code and the parser: what the whole
server costs beyond this (bench/redirect.py) is the event loop and the kernel's network stack.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from bench._common import AGENT, REFERRER
from refract.clicks.spool.format import LINK_CLICK, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.protocol import RedirectConnections, RedirectProtocol
from refract.web.connections import CONNECTIONS_STATE_KEY

REQUEST = (
    f"GET /s77 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: {AGENT}\r\nReferer:"
    f" {REFERRER}\r\n\r\n".encode()
)
NUMBER = 20_000
TURN = 30
"""Hits that share one write; about what 64 busy connections give."""


class Nowhere:
    """A transport that takes everything and sends nothing."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 4711) if name == "peername" else default

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def is_closing(self) -> bool:
        return False


class Silent:
    """As many callbacks as the lane has, all of them empty."""

    def on_message_begin(self) -> None: ...

    def on_url(self, url: bytes) -> None: ...

    def on_header(self, name: bytes, value: bytes) -> None: ...

    def on_headers_complete(self) -> None: ...

    def on_body(self, body: bytes) -> None: ...

    def on_message_complete(self) -> None: ...


def microseconds(work: Callable[[], object], each: int = 1) -> float:
    best = float("inf")
    for _ in range(7):
        begin = time.process_time()
        for _ in range(NUMBER // each):
            work()
        best = min(best, time.process_time() - begin)
    return best / (NUMBER // each * each) * 1e6


async def nobody(scope: Any, receive: Any, send: Any) -> None:
    """The application that no hit reaches."""


async def measure() -> None:
    with tempfile.TemporaryDirectory() as directory:
        spool = SpoolWriter(Path(directory), node="bench", segment_bytes=1 << 20)
        table = RedirectCache(100)
        table.fill(
            b"/s77",
            CachedRedirect(10**17, 1, responses.build_head(302, b"https://example.com/article/77")),
            table.now(),
        )
        traffic = RedirectConnections(table, spool, hosts={b"127.0.0.1:8000"})
        config = Config(nobody, ws="none", lifespan="off", log_config=None)
        lane = RedirectProtocol(
            config, ServerState(), {CONNECTIONS_STATE_KEY: traffic}, asyncio.get_running_loop()
        )
        lane.connection_made(cast("Any", Nowhere()))
        agent, referrer = AGENT.encode(), REFERRER.encode()
        kept = encode_frame(
            LINK_CLICK, 10**17, time.time_ns(), 0, b"\x7f\0\0", agent, referrer, b""
        )
        parser = httptools.HttpRequestParser(Silent())
        turn = traffic.turn
        turn.answers.append(
            (cast("Any", Nowhere()), b"")
        )  # so that nothing is scheduled while we measure

        def hits() -> None:
            for _ in range(TURN):
                lane.data_received(REQUEST)
            turn.frames.clear()
            del turn.answers[1:]

        def commit() -> None:
            turn.frames = [kept] * TURN
            turn.answers = [(lane.transport, b"head")] * TURN
            turn.commit()

        parse = microseconds(lambda: parser.feed_data(REQUEST))
        whole = microseconds(hits, TURN)
        framing = microseconds(
            lambda: encode_frame(LINK_CLICK, 10**17, 1 << 60, 0, b"\x7f\0\0", agent, referrer, b"")
        )
        leaving = microseconds(commit, TURN)
        spool.close()
    print(f"parsing the request, callbacks empty      {parse:5.2f} µs")
    print(f"the click's frame                         {framing:5.2f} µs")
    print(f"look-up, checks and the rest of the lane  {whole - parse - framing:5.2f} µs")
    print(f"leaving: spool write shared by {TURN}, answers  {leaving:5.2f} µs")
    print(f"together                                  {whole + leaving:5.2f} µs")


def main(_arguments: list[str]) -> int:
    asyncio.run(measure())
    return 0
