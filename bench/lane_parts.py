"""What a hit costs without sockets, in each lane, with the headers of a browser and with three.

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

from uvicorn.config import Config
from uvicorn.server import ServerState

from bench._common import table
from bench.redirect import HEADERS
from refract.clicks.spool.format import LINK_CLICK, encode_domain, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.core.compiled import load_compiled
from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.lane import MODULE_NAME, PythonHitResponder
from refract.redirect.protocol import RedirectConnections, RedirectProtocol
from refract.web.connections import CONNECTIONS_STATE_KEY

HOST = b"127.0.0.1:8000"
DOMAIN = b"d77.example"
PREFIXES = {HOST: b""} | {b"d%d.example" % n: b"d%d.example" % n for n in range(100)}
"""The default domain and a hundred others."""
NUMBER = 20_000
TURN = 30
"""Hits that share one write; about what 64 busy connections give."""


def build_request(headers: str) -> bytes:
    lines = [f"Host: {HOST.decode()}", *HEADERS[headers]]
    return "\r\n".join(["GET /s77 HTTP/1.1", *lines, "", ""]).encode()


class Nowhere:
    """A transport that takes everything and sends nothing."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 4711) if name == "peername" else default

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def is_closing(self) -> bool:
        return False


def measure_best(work: Callable[[], object]) -> float:
    """Return the µs of one hit; `work` does a turn of them."""
    best = float("inf")
    for _ in range(7):
        begin = time.process_time()
        for _ in range(NUMBER // TURN):
            work()
        best = min(best, time.process_time() - begin)
    return best / (NUMBER // TURN * TURN) * 1e6


async def never_called(scope: Any, receive: Any, send: Any) -> None:
    """The application, which no hit reaches."""


def connect(connections: RedirectConnections, lane: str) -> RedirectProtocol:
    """Return a connection that answers hits by one lane; without a responder the parser does."""
    config = Config(never_called, ws="none", lifespan="off", log_config=None)
    protocol = RedirectProtocol(
        config, ServerState(), {CONNECTIONS_STATE_KEY: connections}, asyncio.get_running_loop()
    )
    module, reason = load_compiled(MODULE_NAME)
    if lane == "compiled" and module is None:
        raise SystemExit(f"no compiled lane: {reason} (python -m tools.extension)")
    connections.create_responder = (
        module.HitResponder if lane == "compiled" and module else PythonHitResponder
    )
    protocol.connection_made(cast("Any", Nowhere()))
    if lane == "parser":
        protocol.answer_hit = lambda _data: False
    return protocol


def measure_hits(connections: RedirectConnections, lane: str, request: bytes) -> float:
    protocol, turn = connect(connections, lane), connections.turn

    def hits() -> None:
        for _ in range(TURN):
            protocol.data_received(request)
        if len(turn.frames) != TURN:
            raise SystemExit(f"{lane}: not every request was a hit")
        turn.frames.clear()
        del turn.answers[1:]

    return measure_best(hits)


def measure_commit(connections: RedirectConnections, frame: bytes) -> float:
    turn = connections.turn

    def commit() -> None:
        turn.frames = [frame] * TURN
        turn.answers = [(cast("Any", Nowhere()), b"head")] * TURN
        turn.commit()

    return measure_best(commit)


async def measure() -> None:
    with tempfile.TemporaryDirectory() as directory:
        spool = SpoolWriter(Path(directory), node="bench", segment_bytes=1 << 20)
        cache = RedirectCache(100)
        head = responses.build_head(302, b"https://example.com/article/77")
        cache.fill(b"/s77", CachedRedirect(10**17, 1, head), cache.now())
        entry = CachedRedirect(10**17 + 1, 1, head, domain=encode_domain(DOMAIN.decode()))
        cache.fill(DOMAIN + b"/s77", entry, cache.now())
        connections = RedirectConnections(cache, spool, hosts=PREFIXES)
        # So that nothing is scheduled while we measure.
        connections.turn.answers.append((cast("Any", Nowhere()), b""))
        requests = {headers: build_request(headers) for headers in HEADERS}
        rows = [
            [
                f"{lane} lane{where}",
                *(
                    f"{measure_hits(connections, lane, request.replace(HOST, host)):.2f}"
                    for request in requests.values()
                ),
            ]
            for lane in ("compiled", "python", "parser")
            for host, where in ((HOST, ""), (DOMAIN, ", one of 100 domains"))
        ]
        frame = encode_frame(LINK_CLICK, 1, 1, 0, b"\x7f\0\0", b"a" * 100, b"r" * 40, b"")
        commit = f"{measure_commit(connections, frame):.2f}"
        rows.append([f"spool write shared by {TURN}, responses", *[commit] * len(requests)])
        spool.close()
    table(["µs CPU of a hit", *requests], rows)


def main(_arguments: list[str]) -> int:
    asyncio.run(measure())
    return 0
