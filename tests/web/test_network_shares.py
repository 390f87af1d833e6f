"""Limits of open requests and streams per client network."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from refract.core.runtime import Runtime
from refract.limits.errors import TooManyNetworkStreams
from refract.limits.network_shares import NetworkShares
from refract.web.middleware import RequestMiddleware
from refract.web.networks import check_stream
from tests.client import on_sqlite
from tests.waiting import eventually

pytestmark = on_sqlite


class Slow:
    """An application that responds on command, as a stream or at once."""

    def __init__(self) -> None:
        self.waiting = 0
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        if scope["path"] == "/stream":
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(b"content-type", b"text/event-stream")],
                }
            )
        self.waiting += 1
        await self.go_on.wait()
        if scope["path"] != "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


def asking(rt: Runtime, app: Any, peer: str, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=(peer, 1)),
        base_url=rt.settings.public_url,
        headers=headers,
    )


@contextmanager
def limits(rt: Runtime, **given: Any) -> Iterator[tuple[Slow, RequestMiddleware]]:
    rt.settings = rt.settings.model_copy(update=given)
    slow = Slow()
    yield slow, RequestMiddleware(slow, rt)


async def held(slow: Slow, number: int) -> None:
    await eventually(lambda: slow.waiting >= number)


async def test_a_network_has_so_many_requests_open_and_others_are_not_touched(rt: Runtime) -> None:
    with limits(rt, open_requests_per_network=2) as (slow, app):
        async with (
            asking(rt, app, "203.0.113.7") as one,
            asking(rt, app, "203.0.114.7") as other,
            asking(rt, app, "127.0.0.1") as here,
        ):
            open_ones = [
                asyncio.create_task(client.get("/"))
                for client in (one, one, other, here, here, here)
            ]
            await held(slow, 6)
            refused = await one.get("/")
            slow.go_on.set()
            answers = await asyncio.gather(*open_ones)
            again = await one.get("/")

    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (
        429,
        "TOO_MANY_OPEN_REQUESTS",
        "1",
    )
    assert {answer.status_code for answer in answers} == {200}
    assert again.status_code == 200
    assert rt.singleton(NetworkShares).requests == {}
    assert 'refract_refused_total{reason="open_requests"} 1.0' in rt.metrics.render().decode()


async def test_behind_a_trusted_proxy_its_client_counts(rt: Runtime) -> None:
    with limits(rt, open_requests_per_network=1, trusted_proxies=(ip_network("10.0.0.1/32"),)) as (
        slow,
        app,
    ):
        async with (
            asking(rt, app, "10.0.0.1", **{"X-Forwarded-For": "198.51.100.1"}) as one,
            asking(rt, app, "10.0.0.1", **{"X-Forwarded-For": "203.0.113.9"}) as other,
        ):
            open_ones = [asyncio.create_task(client.get("/")) for client in (one, other)]
            await held(slow, 2)
            refused = await one.get("/")
            slow.go_on.set()
            await asyncio.gather(*open_ones)

    assert refused.status_code == 429


async def test_a_stream_counts_as_a_stream_and_holds_up_no_request(rt: Runtime) -> None:
    with limits(rt, open_requests_per_network=1, streams_per_network=1) as (slow, app):
        shares = rt.singleton(NetworkShares)
        async with asking(rt, app, "203.0.113.7") as client:
            stream = asyncio.create_task(client.get("/stream"))
            await held(slow, 1)
            assert (shares.requests.total(), shares.streams.total()) == (0, 1)
            scope: dict[str, Any] = {
                "type": "http",
                "client": ("203.0.113.8", 1),
                "headers": [],
                "state": {},
            }
            with pytest.raises(TooManyNetworkStreams):
                check_stream(Request(scope), rt)
            assert scope["state"] == {"refusal": "streams"}
            check_stream(Request(scope | {"client": ("127.0.0.1", 1)}), rt)
            slow.go_on.set()
            assert (await client.get("/")).status_code == 200
            await stream
    assert shares.streams == {}


async def test_unlimited_is_unlimited(rt: Runtime) -> None:
    with limits(rt, open_requests_per_network=None, streams_per_network=None) as (slow, app):
        async with asking(rt, app, "203.0.113.7") as client:
            open_ones = [asyncio.create_task(client.get("/")) for _ in range(300)]
            await held(slow, 300)
            slow.go_on.set()
            assert {answer.status_code for answer in await asyncio.gather(*open_ones)} == {200}
