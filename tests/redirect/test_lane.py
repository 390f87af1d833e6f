"""The compiled and the Python lane against the parser: same clicks, same responses."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from uvicorn.config import Config
from uvicorn.server import ServerState

from refract.clicks.spool.format import (
    ENTRY_CLICK,
    decode_clicks,
    encode_domain,
    encode_frame,
    extract_domain,
)
from refract.clicks.spool.writer import SpoolWriter, TurnBuffer
from refract.core.ip_addresses import TrustedProxies
from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.lane import HitResponderClass
from refract.redirect.protocol import RedirectConnections, RedirectProtocol
from refract.web.connections import CONNECTIONS_STATE_KEY, HostPrefixes
from refract.web.protocol import MAX_BYTES_PER_TURN
from tests.redirect.lanes import LANES, get_responder

NOW = 1_800_000_000_000_000_000
SHORT = encode_domain("sho.rt")
HOSTS = {b"x": b"", b"x:80": b"", b"y": b"sho.rt"}
Message = MutableMapping[str, Any]
CHROME = (
    b"GET /one HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nCache-Control: max-age=0\r\n"
    b'sec-ch-ua: "Chromium";v="120", "Not?A_Brand";v="99"\r\nsec-ch-ua-mobile: ?0\r\n'
    b'sec-ch-ua-platform: "Linux"\r\nUpgrade-Insecure-Requests: 1\r\n'
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0\r\n"
    b"Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nSec-Fetch-Site: cross-site\r\n"
    b"Sec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\n"
    b"Referer: https://news.example.org/article?id=1#top\r\nAccept-Encoding: gzip, br\r\n"
    b"Accept-Language: en-US,en;q=0.9\r\n\r\n"
)


class RecordingTransport:
    """A transport that records what is sent."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.sent = b""
        self.closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.peer, 4711) if name == "peername" else default

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


@dataclass
class Lane:
    """A lane with a real table, turn and spool, and an application that records its requests."""

    root: Path
    create_responder: HitResponderClass
    answered: int = 0  # by the responder, without the parser
    requests: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = RedirectCache(100)
        self.spool = SpoolWriter(self.root, node="test", segment_bytes=1 << 40)
        self.config = Config(
            self.application, ws="none", lifespan="off", log_config=None, access_log=False
        )
        self.config.load()
        for path, entry in {
            b"/one": _entry(1),
            b"/two": _entry(2, status=308),
            b"/list/3": _entry(3, kind=ENTRY_CLICK),
            b"/forward": _entry(4, forwards_query=True),
            b"/expired": _entry(5, expires_ns=NOW),
            b"/due": _entry(6, expires_ns=NOW + 1),
            b"/code": _entry(7, guessable=True),
            b"/keyed?x=1": _entry(8),
            b"sho.rt/one": _entry(9, domain=SHORT),
            b"sho.rt/code": _entry(10, domain=SHORT, guessable=True),
            b"sho.rt/forward": _entry(11, domain=SHORT, forwards_query=True),
        }.items():
            assert self.table.fill(path, entry, self.table.now())

    async def application(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        del receive
        said = ("method", "http_version", "raw_path", "query_string", "headers")
        self.requests.append(tuple(scope[key] for key in said))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"application"})

    async def play(self, pieces: list[bytes], case: "Case") -> tuple[Any, ...]:
        """Feed one connection; return everything that can be seen from outside."""
        connections = RedirectConnections(
            self.table,
            self.spool,
            proxies=TrustedProxies([ip_network("10.0.0.0/8")]),
            hosts=case.hosts,
            now_ns=lambda: NOW,
            create_responder=self.create_responder,
        )
        connections.turn.ending = b"x: y\r\n\r\n"
        connections.is_draining = case.draining
        self.table.trusted_until_ns = NOW + case.trusted
        refusals: list[str] = []
        connections.count_refusal = refusals.append
        protocol = RedirectProtocol(
            self.config,
            ServerState(),
            {CONNECTIONS_STATE_KEY: connections},
            asyncio.get_running_loop(),
        )
        transport = RecordingTransport(case.peer)
        before, self.requests = self.spool.written, []
        protocol.connection_made(cast("Any", transport))
        answer = protocol.answer_hit

        def counted(data: bytes) -> bool:
            done = answer(data)
            self.answered += done
            return done

        protocol.answer_hit = counted
        for piece in pieces:
            if transport.closing:
                break
            protocol.data_received(piece)
            await _settle(protocol)
        timeouts = protocol._get_timeout(connections.limits), protocol.ticks, protocol.finished
        protocol.connection_lost(None)
        seen = {path: entry.seen for path, entry in self.table.paths.items()}
        for entry in self.table.paths.values():
            entry.seen = False
        frames = _read_spool(self.spool)[-(self.spool.written - before) :]
        return (
            frames if self.spool.written > before else [],
            transport.sent,
            transport.closing,
            self.requests,
            refusals,
            timeouts,
            seen,
            connections.turn.answered,
        )


@dataclass(frozen=True)
class Case:
    """The state of a process that decides about hits."""

    peer: str = "203.0.113.7"
    hosts: Mapping[bytes, bytes] | None = field(default_factory=lambda: HOSTS)
    draining: bool = False
    trusted: int = 1


def _entry(number: int, **more: Any) -> CachedRedirect:
    head = responses.build_head(more.pop("status", 302), b"https://example.com/%d" % number)
    return CachedRedirect(number, 1, head, **more)


async def _settle(protocol: Any) -> None:
    """Let the turn, the application and the backlog finish."""
    for _ in range(400):
        await asyncio.sleep(0)
        if not protocol.tasks and not protocol.is_scheduled and not protocol.turn.answers:
            return


def _read_spool(spool: SpoolWriter) -> list[bytes]:
    (segment,) = spool.directory.glob("*.clicks")
    data, frames, at = segment.read_bytes(), [], 16
    while at < len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        frames.append(data[at : at + size])
        at += size
    return frames


@contextmanager
def _open_lanes(root: Path) -> Iterator[list[Lane]]:
    lanes = [Lane(root / name, get_responder(name)) for name in LANES]
    try:
        yield lanes
    finally:
        for lane in lanes:
            lane.spool.close()


@pytest.fixture
def lanes(tmp_path: Path) -> Iterator[list[Lane]]:
    with _open_lanes(tmp_path) as opened:
        yield opened


def compare(lanes: list[Lane], pieces: list[bytes], case: Case) -> tuple[Any, ...]:
    """Play the pieces in every lane and return the result, which is one."""

    async def story() -> list[tuple[Any, ...]]:
        return [await lane.play(pieces, case) for lane in lanes]

    *results, by_parser = asyncio.run(story())
    for lane, result in zip(LANES, results, strict=False):
        assert result == by_parser, lane
    return by_parser


PATHS = [b"/one", b"/two", b"/list/3", b"/forward", b"/expired", b"/due", b"/code", b"/keyed?x=1"]
URLS = [
    *PATHS,
    *(path + b"?utm_source=a&key=b&utm_term=%20c" for path in PATHS),
    *(b"/one?", b"/one??", b"/one?a#b", b"/one#b", b"/On\xc3\xa9", b"/one\x7f", b"http://x/one"),
    *(b"/keyed", b"/keyed?x=2", b"/none", b"/", b"*", b"", b"/one /two", b'/one"<>\\^`{|}'),
]
NAMES = [
    *(b"host", b"user-agent", b"referer", b"connection", b"proxy-connection", b"keep-alive"),
    *(b"dnt", b"sec-gpc", b"purpose", b"x-purpose", b"sec-purpose", b"x-moz", b"expect"),
    *(b"content-length", b"transfer-encoding", b"upgrade", b"x-forwarded-for", b"cookie"),
    *(b"sec-ch-ua", b"sec-fetch-mode", b"accept", b"cache-control", b"pragma", b"priority"),
    *(b"accept-language", b"te", b"x-forwarded-host", b"origin", b"", b"a b", b"d\xc3"),
]
VALUES = [
    *(b"x", b"x:80", b"y", b"x ", b"", b"1", b"0", b" 1 ", b"keep-alive", b"Keep-Alive", b"close"),
    *(b"upgrade", b"keep-alive, close", b"prefetch", b"Prefetch;prerender", b"websocket", b"5"),
    *(b"chunked", b"100-continue", b"https://from.example/p?q=1#f", b"https://f.example/#a?b"),
    *(b"203.0.113.9", b"198.51.100.1, 10.1.1.1", b"2001:db8::7", b"nonsense", b"a\tb", b"\xff\x80"),
    *(b"\x00", b"\x7f", b"a\rb", b"a\nb", b"a\r\n b", b"agent" * 200, b"https://" + b"r" * 3000),
]


def _spell(name: bytes, style: int) -> bytes:
    return [name, name.title(), name.upper(), name.swapcase()][style]


lines = st.builds(
    lambda name, style, colon, value, end: _spell(name, style) + colon + value + end,
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.sampled_from([b": ", b":", b":\t ", b" : ", b": "]),
    st.one_of(st.sampled_from(VALUES), st.binary(max_size=20)),
    st.sampled_from([b"\r\n"] * 12 + [b"\n", b"\r", b""]),
)
usual = st.sampled_from(
    [b"Host: x\r\n"] * 6 + [b"host:x\r\n", b"HOST: x:80\r\n", b""] + [b"Host: y\r\n"] * 3
)
agents = st.sampled_from([b"", b"User-Agent: Firefox\r\n", b"user-agent:\r\n"])
choices = st.sampled_from(
    [b"de", b"EN", b"fil", b"x", b"-CH", b"-", b",", b";q=0.5", b";q=1.0", b"; q=0", b" ", b"*"]
)
languages = st.builds(
    lambda name, choices: name + b"".join(choices) + b"\r\n" if name else b"",
    st.sampled_from([b"Accept-Language: ", b"accept-language:", b"ACCEPT-LANGUAGE: ", b""]),
    st.lists(choices, max_size=60),
)
requests = st.builds(
    lambda method, url, version, host, agent, language, rest, end: (
        b"%b %b HTTP/%b\r\n" % (method, url, version)
        + b"".join([host, agent, language, *rest, end])
    ),
    st.sampled_from([b"GET"] * 12 + [b"HEAD", b"POST", b"get", b"GET "]),
    st.sampled_from(URLS),
    st.sampled_from([b"1.1"] * 12 + [b"1.0", b"2.0", b"0.9"]),
    usual,
    agents,
    languages,
    st.lists(lines, max_size=4),
    st.sampled_from([b"\r\n"] * 8 + [b"", b"\n", b"\r\n\r\n", b"\r\nx"]),
)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Requests, perhaps damaged, in one piece each or cut anywhere."""
    sent = draw(st.lists(st.one_of(requests, st.just(CHROME)), min_size=1, max_size=3))
    data = bytearray(b"".join(sent))
    for place, byte in draw(
        st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2)
    ):
        if data:
            data[place % len(data)] = byte
    if draw(st.booleans()):
        cuts, at = [], 0
        for request in sent:
            at += len(request)
            cuts.append(at)
    else:
        cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=5)))
    edges = [0, *cuts, len(data)]
    pieces = [bytes(data[a:b]) for a, b in pairwise(edges)]
    return [piece for piece in pieces if piece]


cases = st.builds(
    Case,
    peer=st.sampled_from(["203.0.113.7", "2001:db8:1:2::3", "10.0.0.1", ""]),
    hosts=st.sampled_from([HOSTS, HOSTS, {b"x": b"", b"x:80": b""}, {b"x ": b""}, None]),
    draining=st.sampled_from([False, False, False, True]),
    trusted=st.sampled_from([1, 1, 1, 0]),
)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(streams(), cases)
@example([CHROME], Case())
@example([CHROME, CHROME + CHROME[:9], CHROME[9:]], Case())
@example([CHROME[:-2], b"\r\n" + CHROME], Case(peer="10.0.0.1"))
@example([CHROME.replace(b"GET", b"HEAD")], Case())
@example(
    [b"GET /code HTTP/1.1\r\nHost: x\r\nX: " + b"y" * MAX_BYTES_PER_TURN + b"\r\n\r\n"], Case()
)
@example([b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", CHROME, CHROME], Case())
def test_every_lane_counts_and_answers_the_same(
    lanes: list[Lane], pieces: list[bytes], case: Case
) -> None:
    compare(lanes, pieces, case)


@pytest.mark.parametrize(
    ("lines", "peer"),
    [
        ([], "203.0.113.7"),
        ([b"DNT: 1"], "203.0.113.7"),
        ([b"Sec-GPC: 1"], "203.0.113.7"),
        ([b"Sec-Purpose: prefetch"], "203.0.113.7"),
        ([b"Purpose: prefetch", b"DNT: 1"], "203.0.113.7"),
        ([b"X-Forwarded-For: 198.51.100.1"], "203.0.113.7"),
        ([b"X-Forwarded-For: 198.51.100.1"], "10.0.0.1"),
        ([b"X-Forwarded-For: 198.51.100.1", b"X-Forwarded-For: 10.0.0.2"], "10.0.0.1"),
        ([b"User-Agent: a", b"User-Agent: b", b"Referer: c?d"], "203.0.113.7"),
    ],
)
def test_the_compiled_lane_answers_what_browsers_send(
    lanes: list[Lane], lines: list[bytes], peer: str
) -> None:
    """So that equality is not the result of leaving everything to the parser."""
    head = CHROME.replace(b"/one", b"/one?utm_source=a")
    request = head[:-2] + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
    frames, *_ = compare(lanes, [request, request], Case(peer=peer))
    assert len(frames) == 2
    assert lanes[0].answered == 2
    assert lanes[2].answered == 0


@pytest.mark.parametrize(
    "query", [b"", b"?utm_source=a", b"?utm_term=" + b"b" * 1_263, b"?utm_term=" + b"b" * 1_400]
)
@pytest.mark.parametrize("private", [b"", b"DNT: 1\r\n"])
def test_a_path_leads_elsewhere_on_another_domain(
    lanes: list[Lane], query: bytes, private: bytes
) -> None:
    ask = b"GET /one%b HTTP/1.1\r\nHost: %b\r\n%b\r\n"
    frames, sent, *_ = compare(
        lanes, [ask % (query, host, private) for host in (b"x", b"y")], Case()
    )
    assert [click.target for frame in frames for click in decode_clicks(frame, 0)] == [1, 9]
    assert [
        extract_domain(click.campaign) for frame in frames for click in decode_clicks(frame, 0)
    ] == [None, "sho.rt"]
    assert b"https://example.com/9" in sent
    assert [lane.answered for lane in lanes] == [2, 0 if private else 2, 0]


def test_the_python_lane_answers_a_browser_without_the_parser(lanes: list[Lane]) -> None:
    frames, *_ = compare(lanes, [CHROME], Case())
    assert [lane.answered for lane in lanes] == [1, 1, 0]
    network, agent = b"\xcb\x00\x71", b"Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0"
    referrer = b"https://news.example.org/article"
    assert frames == [
        encode_frame(1, 1, NOW, 0, network, agent, referrer, b"", b"", b"language=en")
    ]


def test_two_hosts_are_no_plain_hit(lanes: list[Lane]) -> None:
    request = b"GET /one HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"
    frames, *_ = compare(lanes, [request], Case())
    assert frames == []
    assert [lane.answered for lane in lanes] == [0, 0, 0]


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_a_network_without_misses_left_finds_no_codes(tmp_path: Path, lane: str) -> None:
    """Decided by the parser's lane, which knows the network: the responder leaves it alone."""

    class Exhausted:
        exhausted_until_ns = NOW + 1

    class Shared:
        """What a responder reads."""

        def __init__(self, spool: SpoolWriter) -> None:
            self.cache = RedirectCache(10)
            self.turn = TurnBuffer(spool, lambda _call: None)
            self.hosts: HostPrefixes = {b"x": b""}
            self.misses: Any = Exhausted()
            self.now_ns = lambda: NOW

    spool = SpoolWriter(tmp_path, node="test")
    shared = Shared(spool)
    for path, guessable in ((b"/code", True), (b"/name", False)):
        shared.cache.fill(path, _entry(1, guessable=guessable), shared.cache.now())
    responder = get_responder(lane)(shared, RecordingTransport(""), b"", None)
    ask = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"
    assert [responder.answer(ask % path) for path in (b"/code", b"/name")] == [False, True]
    Exhausted.exhausted_until_ns = NOW
    assert responder.answer(ask % b"/code")
    spool.close()


@pytest.mark.parametrize(("variable", "lane"), [("python", "python"), ("", "compiled")])
def test_the_lane_is_chosen_at_import(variable: str, lane: str) -> None:
    get_responder("compiled")
    done = subprocess.run(
        [sys.executable, "-c", "from refract.redirect.lane import LANE; print(LANE)"],
        env={**os.environ, "REFRACT_LANE": variable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [lane]
