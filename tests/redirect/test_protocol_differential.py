"""The same bytes through our protocol and stock uvicorn: equal responses except for hits."""

import asyncio
import hashlib
import inspect
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from refract.redirect.protocol import RedirectProtocol
from refract.web.protocol import BoundedHttpProtocol
from tests.redirect.conftest import open_client
from tests.waiting import eventually

HOST = b"Host: x\r\n"
SILENT_TURNS = 25
"""Turns of the event loop without a word, after which an answer is complete.

Seconds would depend on how busy the machine is. Both ends share the loop.
"""


def get(path: bytes, *lines: bytes, method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    return (
        b"%b %b HTTP/%b\r\n" % (method, path, version)
        + HOST
        + b"".join(line + b"\r\n" for line in lines)
        + b"\r\n"
    )


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


CHUNKED = b"4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n"
MISSES: dict[str, list[bytes]] = {
    "get": [get(b"/a")],
    "get with query": [get(b"/a?x=1&y=%20")],
    "empty query": [get(b"/a?")],
    "two question marks": [get(b"/a?b?c")],
    "fragment": [get(b"/a#frag")],
    "fragment on a hit": [get(b"/hit#frag")],
    "query and fragment on a hit": [get(b"/hit?utm_source=x#frag")],
    "percent": [get(b"/%41%20b")],
    "percent spelling of a hit": [get(b"/%68it")],
    "bad percent": [get(b"/%zz")],
    "root": [get(b"/")],
    "double slash": [get(b"//hit")],
    "trailing slash": [get(b"/hit/")],
    "dots": [get(b"/../hit")],
    "star": [get(b"*", method=b"OPTIONS")],
    "high bytes in the path": [get(b"/\xc3\xa4")],
    "http 1.0": [get(b"/a", version=b"1.0")],
    "http 1.0 keep-alive": [get(b"/a", b"Connection: keep-alive", version=b"1.0")],
    "close": [get(b"/a", b"Connection: close")],
    "close in a list": [get(b"/a", b"Connection: foo, Close")],
    "keep-alive": [get(b"/a", b"Connection: keep-alive")],
    "head": [get(b"/a", method=b"HEAD")],
    "head then get": [get(b"/a", method=b"HEAD") + get(b"/b")],
    "options": [get(b"/hit", method=b"OPTIONS")],
    "delete a hit": [get(b"/hit", method=b"DELETE")],
    "put a hit": [get(b"/hit", b"Content-Length: 2", method=b"PUT") + b"ok"],
    "patch a hit": [get(b"/hit", b"Content-Length: 0", method=b"PATCH")],
    "post": [get(b"/a", b"Content-Length: 5", method=b"POST") + b"hello"],
    "post a hit": [get(b"/hit", b"Content-Length: 5", method=b"POST") + b"hello"],
    "post in pieces": [get(b"/a", b"Content-Length: 5", method=b"POST"), b"he", b"llo"],
    "post chunked": [get(b"/a", b"Transfer-Encoding: chunked", method=b"POST") + CHUNKED],
    "post chunked in pieces": [
        get(b"/a", b"Transfer-Encoding: chunked", method=b"POST"),
        CHUNKED[:7],
        CHUNKED[7:],
    ],
    "chunked bytewise": [
        get(b"/a", b"Transfer-Encoding: chunked", method=b"POST"),
        *bytewise(CHUNKED),
    ],
    "bad chunk": [get(b"/a", b"Transfer-Encoding: chunked", method=b"POST") + b"zz\r\nwiki\r\n"],
    "length and chunked": [
        get(b"/a", b"Content-Length: 5", b"Transfer-Encoding: chunked", method=b"POST") + CHUNKED
    ],
    "two lengths": [
        get(b"/a", b"Content-Length: 5", b"Content-Length: 6", method=b"POST") + b"hello"
    ],
    "negative length": [get(b"/a", b"Content-Length: -1", method=b"POST")],
    "get with a body": [get(b"/a", b"Content-Length: 3") + b"abc"],
    "hit with a body": [get(b"/hit", b"Content-Length: 3") + b"abc"],
    "hit with length nought": [get(b"/hit", b"Content-Length: 0")],
    "hit with a chunked body": [get(b"/hit", b"Transfer-Encoding: chunked") + CHUNKED],
    "body that looks like a hit": [
        get(b"/a", b"Content-Length: %d" % len(get(b"/hit")), method=b"POST") + get(b"/hit")
    ],
    "expect": [get(b"/a", b"Expect: 100-continue", b"Content-Length: 2", method=b"POST"), b"ok"],
    "expect on a hit": [get(b"/hit", b"Expect: 100-continue")],
    "expect, odd": [get(b"/hit", b"Expect: something")],
    "upgrade": [
        get(
            b"/a",
            b"Connection: Upgrade",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Key: x",
            b"Sec-WebSocket-Version: 13",
        )
    ],
    "upgrade a hit": [
        get(b"/hit", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: x")
    ],
    "upgrade to h2c": [
        get(b"/hit", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: x")
    ],
    "upgrade without connection": [get(b"/hit", b"Upgrade: websocket")],
    "connect": [get(b"x:443", method=b"CONNECT")],
    "absolute form": [get(b"http://x/a?b=1")],
    "absolute form of a hit": [get(b"http://x/hit")],
    "http2 preface": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "tls hello": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    "rubbish": [b"hello\r\n\r\n"],
    "bad version": [b"GET /a HTTP/9.9\r\n\r\n"],
    "bad method": [b"GRAB /a HTTP/1.1\r\n\r\n"],
    "bad header": [b"GET /a HTTP/1.1\r\nno colon\r\n\r\n"],
    "space before colon": [b"GET /a HTTP/1.1\r\nHost : x\r\n\r\n"],
    "space before colon, hit": [b"GET /hit HTTP/1.1\r\nHost : x\r\n\r\n"],
    "folded header": [b"GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"],
    "nul in a header": [b"GET /a HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n"],
    "bare newlines": [b"GET /a HTTP/1.1\nHost: x\n\n"],
    "bare newlines, hit": [b"GET /hit HTTP/1.1\nHost: x\n\n"],
    "no host": [b"GET /a HTTP/1.1\r\n\r\n"],
    "leading blank lines": [b"\r\n\r\n" + get(b"/a")],
    "empty header value": [get(b"/a", b"X-Empty:")],
    "header spelled oddly": [get(b"/a", b"x-OdD: \t v \t", b"X-Odd: w")],
    "latin header": [get(b"/a", b"X-Name: \xe4\xf6")],
    "many headers": [get(b"/a", *(b"X-%d: %d" % (n, n) for n in range(500)))],
    "large head": [get(b"/a", b"X-Large: " + b"x" * 60_000)],
    "large head in pieces": [
        get(b"/a", b"X-Large: " + b"x" * 30_000)[:20_000],
        get(b"/a", b"X-Large: " + b"x" * 30_000)[20_000:],
    ],
    "cookies twice": [get(b"/a", b"Cookie: a=1", b"Cookie: b=2")],
    "split in the method": [b"G", b"ET /a HTTP/1.1\r\nHost: x\r\n\r\n"],
    "split in the path": [b"GET /a", b"bc HTTP/1.1\r\nHost: x\r\n\r\n"],
    "split in a header": [b"GET /a HTTP/1.1\r\nHo", b"st: x", b"y\r\n\r", b"\n"],
    "bytewise": bytewise(get(b"/a", b"User-Agent: t")),
    "pipelined": [get(b"/a") + get(b"/b") + get(b"/c")],
    "pipelined behind a slow one": [get(b"/slow") + get(b"/b") + get(b"/slow") + get(b"/d")],
    "pipelined hit behind a slow one": [get(b"/slow") + get(b"/hit") + get(b"/b")],
    "pipelined posts": [(get(b"/a", b"Content-Length: 2", method=b"POST") + b"ab") * 3],
    "pipelined after close": [get(b"/a", b"Connection: close") + get(b"/b")],
    "pipelined then rubbish": [get(b"/slow"), b"rubbish\r\n\r\n"],
    "pipelined split": [get(b"/a") + get(b"/b")[:9], get(b"/b")[9:]],
    "answered, then another": [get(b"/a"), get(b"/b"), get(b"/c")],
    "early answer": [get(b"/early", b"Content-Length: 5", method=b"POST"), b"hello", get(b"/b")],
    "stream": [get(b"/stream")],
    "stream to 1.0": [get(b"/stream", version=b"1.0")],
    "head of a stream": [get(b"/stream", method=b"HEAD")],
    "failing application": [get(b"/boom"), get(b"/b")],
    "expired entry": [get(b"/expired")],
    "query on an entry that forwards it": [get(b"/forward?x=1")],
    "list of hosts": [get(b"/a", b"Host: y")],
}


async def converse(here: Any, chunks: list[bytes]) -> tuple[bytes, bool]:
    client = await here.connect()
    with suppress(ConnectionError):  # it has closed; what it said is still to be read
        await client.send(*chunks)
    silent = 0
    while silent < SILENT_TURNS and not client.closed:
        before = len(client.got)
        await client.read(seconds=0.02)
        silent = silent + 1 if len(client.got) == before else 0
    client.writer.close()
    return client.got, client.closed


def fill(here: Any) -> None:
    here.fill(b"/hit", here.entry(1))
    here.fill(b"/expired", here.entry(2, expires_ns=1))
    here.fill(b"/forward", here.entry(3, forwards_query=True))


def test_what_is_not_a_hit_is_answered_as_uvicorn_answers(
    run: Callable[..., None], station: Callable[..., Any]
) -> None:
    async def story() -> None:
        async with station(HttpToolsProtocol) as stock:
            stock_said = await asyncio.gather(
                *(converse(stock, chunks) for chunks in MISSES.values())
            )
        async with station() as lane:
            fill(lane)
            lane_said = await asyncio.gather(
                *(converse(lane, chunks) for chunks in MISSES.values())
            )
            assert lane.clicks() == []
        for name, by_stock, by_lane in zip(MISSES, stock_said, lane_said, strict=True):
            assert by_lane == by_stock, name
        assert (
            sum(said.startswith(b"HTTP/1.1 200") for said, _ in stock_said) > 50
        )  # the corpus does reach the application
        assert sum(said.startswith(b"HTTP/1.1 400") for said, _ in stock_said) > 8

    assert len(MISSES) >= 60
    run(story())


async def test_a_reset_takes_nothing_away_from_what_was_said() -> None:
    """Regression: on a busy machine the answer before a reset was missing, now and then."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        client = await open_client(listener.getsockname()[1])
        loop = asyncio.get_running_loop()
        accepted, _ = await loop.sock_accept(listener)
        await loop.sock_sendall(accepted, b"answer")
        await eventually(lambda: len(client.reader._buffer) == 6)  # type: ignore[attr-defined]
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        await eventually(client.writer.is_closing)

        assert await client.read() == b"answer"
        assert client.closed


PINNED = {
    "__init__": "4f08999410347141",
    "connection_lost": "c91a4c9bf2e29c55",
    "connection_made": "6efb565ff3d36b91",
    "data_received": "010a7ae59a5d3b1a",
    "eof_received": "5652627579a02369",
    "on_body": "dba9c32aeba35b6a",
    "on_header": "65d62c044f61fdbd",
    "on_headers_complete": "1ea8589acfad92d8",
    "on_message_begin": "96d377fdc7c2baef",
    "on_message_complete": "1fbad42dc31fc01f",
    "on_response_complete": "64e254f28e389e76",
    "pause_writing": "17a8fd215d96a13c",
    "resume_writing": "7844bbaa8cceb1ef",
    "send_400_response": "ae5a4a3782b646fd",
    "shutdown": "d7351fa33f00d430",
    "timeout_keep_alive_handler": "8b53bf5f2e202970",
    "_should_upgrade": "8fcad1ab8e096739",
    "_start_asgi_task": "9c08c2571ae9b038",
    "_get_upgrade": "7b1305aac7b87064",
    "_should_upgrade_to_ws": "d580849b4df878c3",
    "handle_websocket_upgrade": "179c4f769386ab89",
    "_unsupported_upgrade_warning": "55bbd2762b189d9a",
    "_unset_keepalive_if_required": "00a6a4e47214e68e",
    "RequestResponseCycle": "e67d470d435dcc1c",
    "FlowControl": "126debcdaa894c83",
}
OURS = {**vars(BoundedHttpProtocol), **vars(RedirectProtocol)}
CALLED = set(PINNED) - set(OURS)


def test_uvicorn_is_the_one_the_lane_was_written_against() -> None:
    """Fail if uvicorn changes a method: read it, adapt the protocol, then pin the new source."""
    base = vars(HttpToolsProtocol)
    overridden = {name for name in OURS if inspect.isfunction(base.get(name))}
    parts = {name: base[name] for name in overridden | (CALLED & set(base))}
    parts |= {"RequestResponseCycle": RequestResponseCycle, "FlowControl": FlowControl}

    found = {
        name: hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:16]
        for name, part in parts.items()
    }

    assert found == PINNED
