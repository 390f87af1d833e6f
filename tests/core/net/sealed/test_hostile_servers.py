"""Hostile and broken servers: each ends in its own error, within its budget."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from refract.core.net import (
    AddressGuard,
    BadAnswer,
    BadStatus,
    FetchError,
    FetchLimits,
    NotAPage,
    PageFetcher,
    TimedOut,
    TooLarge,
    TooManyRedirects,
    Unreachable,
)
from refract.core.net.connection import MIB
from tests.core.net.sealed.internet import Internet, Names, Request, answer, page, redirect, sends
from tests.core.net.sealed.servers import (
    HEAD,
    announces_and_waits,
    bomb,
    drip,
    flood,
    reset_after,
    silence,
)


@pytest.fixture(autouse=True)
async def _upper_bound() -> AsyncIterator[None]:
    """A generous limit that no test may need."""
    async with asyncio.timeout(30):
        yield


async def _ending(fetcher: PageFetcher, budget: float = 20) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch("http://good.test/", budget=budget)
    return caught.value


TOO_LARGE = {
    "10 GB announced": flood(HEAD + b"Content-Length: 10737418240\r\n\r\n", b"x" * 65536),
    "10 GB announced, never sent": announces_and_waits(10 * 1024 * MIB),
    "endless, no length": flood(HEAD + b"Connection: close\r\n\r\n", b"x" * 65536),
    "endless chunks": flood(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    ),
    "endless crumbs": flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000),
    "endless chunk extension": flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 65536),
    "endless trailer": flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * 1000),
    "gzip bomb": bomb(),
    "one huge header": flood(HEAD + b"X-Huge: ", b"x" * 65536),
    "endless headers": flood(HEAD, b"X-Many: 1\r\n" * 1000),
    "65 headers": sends(HEAD + b"X-Many: 1\r\n" * 64 + b"Content-Length: 0\r\n\r\n"),
    "endless status line": flood(b"HTTP/1.1 200 ", b"O" * 65536),
    "2 MiB and a byte, no length": sends(
        HEAD + b"Connection: close\r\n\r\n" + b"x" * (2 * MIB + 1)
    ),
    "more interim answers than fit a head": sends(
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3000 + answer("200 OK")
    ),
    "endless interim answers": flood(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1000),
}


@pytest.mark.parametrize("server", TOO_LARGE, ids=str)
async def test_too_large_and_never_in_memory(
    net: Internet, fetcher: PageFetcher, server: str
) -> None:
    net.sites["/"] = TOO_LARGE[server]
    tracemalloc.start()
    try:
        ended = await _ending(fetcher)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert type(ended) is TooLarge
    assert not ended.is_transient
    assert peak < 32 * MIB


async def test_almost_two_mebibytes_fit(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/"] = page(b"x" * (2 * MIB - 200))

    assert len((await fetcher.fetch("http://good.test/")).body) == 2 * MIB - 200


TIMED_OUT = {
    "drips its body": drip(HEAD + b"Content-Length: 5000\r\n\r\n", b"x"),
    "drips compressed": drip(
        HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03",
        b"\0\0\0\xff\xff",
    ),
    "drips its head": drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "drips interim answers": drip(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "says nothing": silence,
}


@pytest.mark.parametrize("server", TIMED_OUT, ids=str)
async def test_slow_servers_end_with_the_budget(
    net: Internet, fetcher: PageFetcher, server: str
) -> None:
    net.sites["/"] = TIMED_OUT[server]

    ended = await _ending(fetcher, budget=0.4)

    assert type(ended) is TimedOut
    assert ended.is_transient


@pytest.mark.parametrize(
    "sent",
    [b"", HEAD, HEAD + b"Content-Length: 10\r\n\r\n", HEAD + b"Content-Length: 10\r\n\r\nabc"],
)
async def test_a_server_that_falls_silent_is_left_before_the_budget_ends(
    net: Internet, names: Names, sent: bytes
) -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await silence(request, writer)

    net.sites["/"] = handler

    assert (
        type(
            await _ending(
                PageFetcher(AddressGuard(), resolve=names, limits=FetchLimits(idle=0.2)), budget=600
            )
        )
        is TimedOut
    )


async def test_a_name_server_that_never_answers(names: Names) -> None:
    async def resolve(_host: str) -> list[object]:
        await asyncio.sleep(60)
        return []

    limits = FetchLimits(connect=0.2)
    # The resolver never returns.
    fetcher = PageFetcher(AddressGuard(), resolve=resolve, limits=limits)  # type: ignore[arg-type]

    assert type(await _ending(fetcher, budget=600)) is TimedOut


UNREACHABLE = {
    "resets in mid-body": reset_after(HEAD + b"Content-Length: 1000\r\n\r\nabc"),
    "resets at once": reset_after(b""),
    "closes at once": sends(b""),
    "closes within the head": sends(HEAD),
    "sends less than announced": sends(HEAD + b"Content-Length: 1000\r\n\r\nabc"),
    "stops between chunks": sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    "stops within gzip": page(gzip.compress(b"hello" * 100)[:-12], Content_Encoding="gzip"),
}


@pytest.mark.parametrize("server", UNREACHABLE, ids=str)
async def test_connections_that_break(net: Internet, fetcher: PageFetcher, server: str) -> None:
    net.sites["/"] = UNREACHABLE[server]

    ended = await _ending(fetcher)

    assert type(ended) is Unreachable
    assert ended.is_transient


BAD_ANSWER = {
    "not HTTP": sends(b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n"),
    "a page without a head": sends(b"<html>hello</html>\r\n\r\n"),
    "two lengths": sends(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    "no number for a length": sends(HEAD + b"Content-Length: -1\r\n\r\n"),
    "a bad chunk": sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n"),
    "NUL in a header": sends(HEAD + b"X-Bad: a\0b\r\n\r\n"),
    "another protocol": sends(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    ),
    "gzip that is none": page(b"plain text", Content_Encoding="gzip"),
    "gzip in gzip": page(
        gzip.compress(gzip.compress(b" " * 100_000)), Content_Encoding="gzip, gzip"
    ),
    "brotli": page(b"\x0b\x02\x80hello\x03", Content_Encoding="br"),
}


@pytest.mark.parametrize("server", BAD_ANSWER, ids=str)
async def test_answers_that_make_no_sense(net: Internet, fetcher: PageFetcher, server: str) -> None:
    net.sites["/"] = BAD_ANSWER[server]

    assert type(await _ending(fetcher)) is BadAnswer


async def test_gzip_in_gzip_is_opened_once(net: Internet, fetcher: PageFetcher) -> None:
    inner = gzip.compress(b" " * 50 * MIB)
    net.sites["/"] = page(gzip.compress(inner), Content_Encoding="gzip")

    assert (await fetcher.fetch("http://good.test/")).body == inner


async def test_a_bomb_is_cut_where_it_is_enough(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/"] = bomb()

    found = await fetcher.fetch("http://good.test/", truncate_at=512 * 1024)

    assert found.truncated
    assert found.body == b" " * 512 * 1024


@pytest.mark.parametrize("server", ["10 GB announced", "endless, no length", "endless chunks"])
async def test_an_endless_page_is_cut_where_it_is_enough(
    net: Internet, fetcher: PageFetcher, server: str
) -> None:
    net.sites["/"] = TOO_LARGE[server]

    found = await fetcher.fetch("http://good.test/", truncate_at=100_000)

    assert (found.truncated, found.body) == (True, b"x" * 100_000)


NOT_A_PAGE = {
    "204": sends(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "205": sends(answer("205 Reset Content")),
    "PDF": page(b"%PDF-1.7", Content_Type="application/pdf"),
    "PDF of 10 GB": sends(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length:"
        b" 10737418240\r\n\r\n%PDF"
    ),
    "image": page(b"\x89PNG", Content_Type="image/png"),
    "JSON": page(b"{}", Content_Type="application/json; charset=utf-8"),
}


@pytest.mark.parametrize("server", NOT_A_PAGE, ids=str)
async def test_not_a_page(net: Internet, fetcher: PageFetcher, server: str) -> None:
    net.sites["/"] = NOT_A_PAGE[server]

    ended = await _ending(fetcher)

    assert type(ended) is NotAPage
    assert not ended.is_transient


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (300, False),
        (304, False),
        (400, False),
        (404, False),
        (410, False),
        (408, True),
        (429, True),
        (500, True),
        (503, True),
    ],
)
async def test_bad_statuses_say_whether_to_try_again(
    net: Internet, fetcher: PageFetcher, status: int, again: bool
) -> None:
    net.sites["/"] = sends(answer(f"{status} Status"))

    ended = await _ending(fetcher)

    assert isinstance(ended, BadStatus)
    assert (ended.status, ended.is_transient) == (status, again)


async def test_a_redirect_that_says_not_where_to(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/"] = sends(answer("302 Found"))

    ended = await _ending(fetcher)

    assert isinstance(ended, BadStatus)
    assert ended.status == 302


async def test_redirects_without_end(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/"] = redirect("/other")
    net.sites["/other"] = redirect("/")

    assert type(await _ending(fetcher)) is TooManyRedirects
    assert len(net.requests) == 6


async def test_a_redirect_with_an_endless_body_is_followed_at_once(
    net: Internet, fetcher: PageFetcher
) -> None:
    net.sites["/"] = flood(b"HTTP/1.1 302 Found\r\nLocation: /page\r\n\r\n", b"x" * 65536)
    net.sites["/page"] = page()

    assert (await fetcher.fetch("http://good.test/")).url == "http://good.test/page"


async def test_nobody_listens(connects: list[str], fetcher: PageFetcher) -> None:
    ended = await _ending(fetcher)

    assert type(ended) is Unreachable
    assert ended.is_transient
    assert connects == ["93.184.215.14"]


async def test_a_name_that_nobody_knows(fetcher: PageFetcher) -> None:
    with pytest.raises(Unreachable) as caught:
        await fetcher.fetch("http://unknown.test/")

    assert type(caught.value) is Unreachable
