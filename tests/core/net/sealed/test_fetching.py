"""Fetching of ordinary pages."""

import asyncio
import gzip

import pytest

from refract import __version__
from refract.core.net import (
    ANY_TYPE,
    AddressGuard,
    FetchLimits,
    NotAPage,
    PageFetcher,
    RefusedAddress,
    TimedOut,
)
from tests.core.net.corpus import PUBLIC
from tests.core.net.sealed.internet import (
    PUBLIC6,
    Internet,
    Names,
    Request,
    answer,
    page,
    redirect,
    sends,
)


async def test_a_page_and_what_is_known_about_it(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/a"] = page(
        "<title>Grüße</title>".encode("latin-1"),
        Content_Type="text/html; charset=ISO-8859-1",
        X_Two="1",
    )

    found = await fetcher.fetch("http://good.test/a?b=c d#e")

    assert (found.url, found.status, found.truncated) == (
        "http://good.test/a?b=c%20d#e",
        200,
        False,
    )
    assert (found.content_type, found.headers["x-two"]) == ("text/html", "1")
    assert found.text == "<title>Grüße</title>"


async def test_what_the_server_sees(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/a"] = page()

    await fetcher.fetch("http://good.test/a?b=c#secret")

    assert net.requests == [
        Request(
            target="/a?b=c",
            headers={
                "host": "good.test",
                "user-agent": f"mozilla/5.0 (compatible; refract/{__version__})",
                "accept": "text/html, application/xhtml+xml, */*;q=0.1",
                "accept-encoding": "gzip, identity",
                "connection": "close",
            },
            reached=PUBLIC,
        )
    ]


@pytest.mark.parametrize(
    ("url", "host", "reached"),
    [
        ("http://good.test:443/", "good.test:443", PUBLIC),
        ("http://six.test/", "six.test", PUBLIC6),
        (f"http://[{PUBLIC6}]/", f"[{PUBLIC6}]", PUBLIC6),
        ("http://0x5db8d70e/", PUBLIC, PUBLIC),
        (f"http://[::ffff:{PUBLIC}]/", "[::ffff:5db8:d70e]", PUBLIC),
        (f"http://[64:ff9b::{PUBLIC}]/", "[64:ff9b::5db8:d70e]", "64:ff9b::5db8:d70e"),
    ],
)
async def test_every_public_address_is_reached_under_its_own_name(
    net: Internet, fetcher: PageFetcher, url: str, host: str, reached: str
) -> None:
    await net.listen(443)
    net.sites["/"] = page()

    await fetcher.fetch(url)

    assert [(request.headers["host"], request.reached) for request in net.requests] == [
        (host, reached)
    ]


async def test_compressed_and_in_chunks(net: Internet, fetcher: PageFetcher) -> None:
    text = "<title>Hello</title>" + "word " * 10_000
    packed = gzip.compress(text.encode())
    chunks = (
        b"".join(
            b"%x\r\n%s\r\n" % (len(packed[at : at + 10]), packed[at : at + 10])
            for at in range(0, len(packed), 10)
        )
        + b"0\r\n\r\n"
    )
    net.sites["/"] = sends(
        answer("200 OK", Content_Length="", Content_Encoding="GZIP", Transfer_Encoding="chunked")
        + chunks
    )

    assert (await fetcher.fetch("http://good.test/")).text == text


async def test_an_old_server_that_ends_its_page_by_closing(
    net: Internet, fetcher: PageFetcher
) -> None:
    net.sites["/"] = sends(b"HTTP/1.0 200 OK\r\n\r\n<title>Old</title>")

    found = await fetcher.fetch("http://good.test/")

    assert (found.text, found.content_type) == ("<title>Old</title>", "")


async def test_five_redirects_are_followed_and_their_end_is_known(
    net: Internet, fetcher: PageFetcher
) -> None:
    net.sites |= {
        "/0": redirect("/1", "301 Moved"),
        "/1": redirect("2?x=ü", "302 Found"),
        "/2": redirect("http://other.test/3", "303 See Other"),
        "/3": redirect("//good.test/4", "307 Temporary"),
        "/4": redirect("http:\\\\other.test\\5", "308 Permanent"),
        "/5": page(b"there"),
    }

    found = await fetcher.fetch("http://good.test/0")

    assert (found.url, found.body) == ("http://other.test/5", b"there")
    assert net.requests[2].target == "/2?x=%C3%BC"


async def test_only_what_is_of_use_is_read(net: Internet, fetcher: PageFetcher) -> None:
    net.sites["/"] = page(b"\x89PNG", Content_Type="Image/PNG")

    assert (await fetcher.fetch("http://good.test/", accept=("image/*",))).body == b"\x89PNG"
    assert (await fetcher.fetch("http://good.test/", accept=ANY_TYPE)).content_type == "image/png"
    with pytest.raises(NotAPage):
        await fetcher.fetch("http://good.test/", accept=("image/gif", "text/*"))


async def test_what_a_page_refers_to_is_found_as_a_browser_finds_it(
    net: Internet, fetcher: PageFetcher
) -> None:
    net.sites["/a/b"] = page()

    found = await fetcher.fetch("http://good.test/a/b")

    assert found.resolve_url(" ../icon.png ") == "http://good.test/icon.png"
    assert found.resolve_url("//other.test/ü") == "http://other.test/%C3%BC"
    for refused in (
        "data:image/png;base64,xx",
        "javascript:alert(1)",
        "http://user@other.test/",
        "http://[",
        "\ud800://x",
    ):
        with pytest.raises(RefusedAddress):
            found.resolve_url(refused)


async def test_the_next_address_is_tried_when_the_first_is_dead(
    net: Internet, connects: list[str]
) -> None:
    await net.listen(443, hosts=["0.0.0.0"])  # noqa: S104 - the sealed network
    net.sites["/"] = page()
    fetcher = PageFetcher(AddressGuard(), resolve=Names(both_test=[f"{PUBLIC6} {PUBLIC}"]))

    assert (await fetcher.fetch("http://both.test:443/")).status == 200
    assert connects == [PUBLIC6, PUBLIC]


async def test_no_host_is_asked_for_more_than_two_pages_at_a_time(
    net: Internet, fetcher: PageFetcher
) -> None:
    busy: dict[str, int] = {}
    most: dict[str, int] = {}

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        host = request.headers["host"].rstrip(".")
        busy[host] = busy.get(host, 0) + 1
        most[host] = max(most.get(host, 0), busy[host])
        await asyncio.sleep(0.02)
        busy[host] -= 1
        writer.write(answer("200 OK"))

    net.sites["/"] = handler
    fetcher = PageFetcher(
        AddressGuard(),
        resolve=Names(good_test=[PUBLIC], good_test_=[PUBLIC], other_test=["1.0.0.1"]),
    )
    urls = ["http://good.test/", "http://good.test./", "http://other.test/"] * 4

    pages = await asyncio.gather(*(fetcher.fetch(url) for url in urls))

    assert [found.status for found in pages] == [200] * 12
    assert most == {"good.test": 2, "other.test": 2}
    assert len(fetcher._slots) == 0


async def test_waiting_for_a_turn_counts_and_a_turn_is_given_back(
    net: Internet, names: Names
) -> None:
    asked = asyncio.Event()

    async def handler(_request: Request, _writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.sleep(30)

    net.sites |= {"/slow": handler, "/": page()}
    fetcher = PageFetcher(AddressGuard(), resolve=names, limits=FetchLimits(per_host=1))

    slow = asyncio.create_task(fetcher.fetch("http://good.test/slow"))
    await asked.wait()
    with pytest.raises(TimedOut):
        await fetcher.fetch("http://good.test/", budget=0.05)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow

    assert (await fetcher.fetch("http://good.test/")).status == 200


async def test_hosts_that_redirect_to_each_other_do_not_block_each_other(
    net: Internet, names: Names
) -> None:
    net.sites |= {
        "/to-other": redirect("http://other.test/"),
        "/to-good": redirect("http://good.test/"),
        "/": page(),
    }
    fetcher = PageFetcher(AddressGuard(), resolve=names, limits=FetchLimits(per_host=1))

    pages = await asyncio.gather(
        *(
            fetcher.fetch(url)
            for url in ["http://good.test/to-other", "http://other.test/to-good"] * 5
        )
    )

    assert len(pages) == 10
