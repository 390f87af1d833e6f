"""The fetcher never asks this installation: it would tell which short links exist."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network

import pytest

from refract.core.net import AddressGuard, PageFetcher
from refract.core.net.errors import RefusedAddress

PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 17\r\n\r\n<title>Hi</title>"


@asynccontextmanager
async def web_server(response: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve one response to every request; yield the URL and the request lines."""
    requests: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(response)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


def make_fetcher(*ports: int, own_url: str | None = None) -> PageFetcher:
    guard = AddressGuard(allow=(ip_network("127.0.0.1/32"),), ports=frozenset(ports))
    return PageFetcher(guard, own_url=own_url)


def get_port(url: str) -> int:
    return int(url.rpartition(":")[2])


async def test_our_own_url_is_refused_without_a_request_also_behind_a_redirect() -> None:
    """A stranger let the server follow redirects to guessed codes, and read the pages' titles."""
    async with web_server(PAGE) as (own_url, own_requests):
        head = f"HTTP/1.1 302 Found\r\nlocation: {own_url}/Q1w2E3r4T5\r\ncontent-length: 0\r\n\r\n"
        async with web_server(head.encode()) as (foreign_url, foreign_requests):
            ports = get_port(own_url), get_port(foreign_url)
            fetcher = make_fetcher(*ports, own_url=own_url)
            for url in (foreign_url, f"{own_url}/Q1w2E3r4T5"):
                with pytest.raises(RefusedAddress):
                    await fetcher.fetch(url)
            assert (len(foreign_requests), own_requests) == (1, [])

            page = await make_fetcher(*ports).fetch(foreign_url)
            assert page.url == f"{own_url}/Q1w2E3r4T5"
