"""Limits of bodies (security finding 4): an object of unknown keys took 4 s and 410 MB.

Bodies were read and parsed before the caller was known, up to 4 MiB on every route.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import Scope
from refract.web.problems import MAX_FIELD_ERRORS
from refract.web.routing import MAX_MEMBERS, parse_json
from tests import make
from tests.client import by_cookie, by_key, client_of, on_sqlite
from tests.loop_cpu import measure_loop_cpu

pytestmark = on_sqlite
JSON = {"Content-Type": "application/json"}
KIB = 1024


class Sent:
    """A body that counts the bytes that are read."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            self.taken += len(chunk)
            yield chunk


def unknown(number: int) -> bytes:
    return json.dumps({str(at): 1 for at in range(number)}).encode()


@asynccontextmanager
async def asking(app: WebNode) -> AsyncIterator[tuple[httpx.AsyncClient, list[int]]]:
    """A client, and the sizes of the pieces that the application took of bodies."""
    taken: list[int] = []

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def counted() -> Any:
            message = await receive()
            taken.append(len(message.get("body", b"")))
            return message

        await app(scope, counted, send)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(watched), base_url=app.rt.settings.public_url
    ) as client:
        yield client, taken


@pytest.fixture
async def headers(rt: Runtime) -> dict[str, dict[str, str]]:
    async with rt.db.write() as session:
        user = await make.person(session, rt, "ada")
        cookie = await make.cookie(session, rt, user)
        return {
            "nobody": {},
            "wrong key": by_key("refract_wrong"),
            "key that may only read": by_key(await make.key(session, rt, user, Scope.READ)),
            "cookie without proof": by_cookie(rt, cookie, proven=False),
            "key": by_key(await make.key(session, rt, user)),
            "cookie": by_cookie(rt, cookie),
        }


REFUSED = {
    "nobody": 401,
    "wrong key": 401,
    "key that may only read": 403,
    "cookie without proof": 403,
}


@pytest.mark.parametrize("who", REFUSED)
@pytest.mark.parametrize(
    "path", ["/api/v1/links", "/api/v1/links/bulk", "/api/v1/items/bulk", "/api/v1/library/imports"]
)
@pytest.mark.parametrize("more", [{}, {"Idempotency-Key": "k"}, {"Content-Type": "text/plain"}])
async def test_the_credential_is_checked_before_the_body_is_read(
    app: WebNode, headers: dict[str, dict[str, str]], who: str, path: str, more: dict[str, str]
) -> None:
    async with asking(app) as (client, taken):
        answer = await client.post(path, headers=JSON | headers[who] | more, content=unknown(1000))

    assert answer.status_code == REFUSED[who], answer.text
    assert taken == []


async def test_ordinary_bodies_end_at_64_kib(
    app: WebNode, headers: dict[str, dict[str, str]]
) -> None:
    limit = app.rt.settings.max_json_bytes
    assert limit == 64 * KIB
    async with asking(app) as (client, taken):
        for path, who in (
            ("/api/v1/links", "key"),
            ("/api/v1/lists", "nobody"),
            ("/app/settings/profile", "cookie"),
        ):
            kind = (
                {"Content-Type": "application/x-www-form-urlencoded"}
                if path.startswith("/app")
                else JSON
            )
            announced = await client.post(
                path, headers=kind | headers[who], content=b"x" * (limit + 1)
            )
            assert (announced.status_code, str(limit) in announced.text) == (413, True), path
            assert taken == []
            chunked = await client.post(
                path, headers=kind | headers[who], content=Sent(*[b"x" * 16 * KIB] * 20)
            )
            assert chunked.status_code == 413, path
            assert sum(taken) <= limit + 16 * KIB
            taken.clear()


async def test_bulk_routes_read_more_from_people_they_know(
    client: httpx.AsyncClient, headers: dict[str, dict[str, str]]
) -> None:
    links = [{"destination": f"https://example.com/{at}?{'x' * 200}"} for at in range(500)]
    body = json.dumps({"links": links, "dry_run": True}).encode()
    assert len(body) > 100 * KIB

    answer = await client.post("/api/v1/links/bulk", headers=JSON | headers["key"], content=body)

    assert (answer.status_code, len(answer.json()["results"])) == (200, 500)


async def test_strangers_send_no_more_than_64_kib_anywhere(app: WebNode) -> None:
    async with client_of(app) as client:
        made = (await client.post("/api/v1/lists", json={})).json()
        answer = await client.post(
            f"/api/v1/lists/{made['id']}/entries",
            json={"urls": ["https://example.com/" + "x" * 1900] * 100},
        )

    assert answer.status_code == 413


async def test_at_most_20_errors_are_told_and_how_many_there_are(client: httpx.AsyncClient) -> None:
    problem = (await client.post("/api/v1/lists", headers=JSON, content=unknown(57))).json()

    assert (problem["status"], len(problem["errors"])) == (422, MAX_FIELD_ERRORS)
    assert problem["detail"].endswith("See `errors` for the first 20 of 57.")


async def test_a_body_of_unknown_members_is_refused_before_each_of_them_becomes_an_error(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post("/api/v1/lists", headers=JSON, content=unknown(MAX_MEMBERS + 1))

    assert (answer.status_code, answer.json()["code"]) == (400, "MALFORMED_BODY")
    assert len(answer.content) < KIB


async def test_members_are_counted_over_all_objects(rt: Runtime) -> None:
    rows = {"rows": [{str(at): 1 for at in range(100)}] * 11}

    with pytest.raises(Exception, match="more than 1000 members"):
        parse_json(json.dumps(rows).encode(), MAX_MEMBERS)
    assert parse_json(json.dumps({"text": ":" * 5000}).encode(), MAX_MEMBERS) == {
        "text": ":" * 5000
    }


HOSTILE = {
    "unknown keys": unknown(6000)[: 64 * KIB],
    "as many unknown keys as are looked at": unknown(MAX_MEMBERS),
    "keys nested": json.dumps({"a": [{str(at): at} for at in range(900)]}).encode(),
    "deep": b"[" * 30_000 + b"]" * 30_000,
    "long text": json.dumps({"title": "\u00e4\\" * 8_000}).encode(),
    "escapes": b'{"title": "' + rb"\u0041" * 10_000 + b'"}',
    "numbers": b'{"title": [' + b"1," * 30_000 + b"1]}",
    "addresses": json.dumps({"urls": ["x"] * 12_000}).encode(),
}


@pytest.mark.parametrize("shape", HOSTILE)
async def test_no_body_of_a_stranger_holds_the_loop_for_long(app: WebNode, shape: str) -> None:
    async with client_of(app) as client:
        made = (await client.post("/api/v1/lists", json={})).json()
        paths = ["/api/v1/lists", f"/api/v1/lists/{made['id']}/entries", "/api/v1/links"]
        for path in paths:  # what is loaded by the first request is no cost of the second
            await client.post(path, headers=JSON, content=b'{"nothing": 1}')

        with measure_loop_cpu() as cpu:
            # A task for each: nothing is awaited, and three requests would count as one.
            answers = [
                await asyncio.create_task(client.post(path, headers=JSON, content=HOSTILE[shape]))
                for path in paths
            ]

    assert max(len(answer.content) for answer in answers) < 8 * KIB
    statuses = [answer.status_code for answer in answers]
    assert all(400 <= status < 500 for status in statuses)
    cpu.assert_below()


async def test_large_bodies_are_parsed_beside_the_loop(
    app: WebNode, headers: dict[str, dict[str, str]]
) -> None:
    body = json.dumps({"links": [[1, 2, 3]] * 200_000, "dry_run": True}).encode()
    assert len(body) > 2 * KIB * KIB
    async with client_of(app) as client:
        await client.post(
            "/api/v1/links/bulk", headers=JSON | headers["key"], content=b'{"links": []}'
        )
        with measure_loop_cpu() as cpu:
            answer = await asyncio.create_task(
                client.post("/api/v1/links/bulk", headers=JSON | headers["key"], content=body)
            )

    assert answer.status_code == 422
    cpu.assert_below(0.1)  # not a stranger's: what remains is validation


@pytest.mark.parametrize("rows", [0, 200])
async def test_unknown_members_of_large_bodies_are_refused_beside_the_loop(
    app: WebNode, headers: dict[str, dict[str, str]], rows: int
) -> None:
    """Regression: a bulk body of 330,000 unknown members stopped every redirect for 3.8 s."""
    many = {str(at): 1 for at in range(1_000)}
    body = json.dumps({"links": [many] * rows}).encode() if rows else unknown(330_000)
    async with client_of(app) as client:
        await client.post(
            "/api/v1/links/bulk", headers=JSON | headers["key"], content=b'{"links": []}'
        )
        with measure_loop_cpu() as cpu:
            answer = await asyncio.create_task(
                client.post("/api/v1/links/bulk", headers=JSON | headers["key"], content=body)
            )

    assert (answer.status_code, answer.json()["code"]) == (400, "MALFORMED_BODY")
    cpu.assert_below(0.1)


async def test_what_strangers_send_is_counted_by_network(rt: Runtime) -> None:
    rt.settings = rt.settings.model_copy(update={"stranger_bodies_per_minute": 3})
    app = WebNode(rt)
    try:
        async with client_of(app) as client:
            statuses = [
                (await client.post("/api/v1/lists", headers=JSON, content=b"{")).status_code
                for _ in range(4)
            ]
            assert statuses == [400, 400, 400, 429]
            assert (await client.get("/health")).status_code == 200
            assert 'refract_refused_total{reason="rate"} 1.0' in rt.metrics.render().decode()
    finally:
        assert app.engine is not None
        app.engine.spool.close()


async def test_whoever_hangs_up_in_mid_body_is_no_error_of_ours(
    app: WebNode, caplog: pytest.LogCaptureFixture
) -> None:
    """It was logged as an error with a traceback, and counted as status 500."""
    for path in ("/api/v1/lists", "/app/lists"):
        messages = iter(
            [
                {"type": "http.request", "body": b'{"ti', "more_body": True},
                {"type": "http.disconnect"},
            ]
        )
        sent: list[Any] = []

        async def receive(messages: Any = messages) -> Any:
            return next(messages)

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        kind = (
            b"application/json" if path.startswith("/api") else b"application/x-www-form-urlencoded"
        )
        heads = [
            (b"host", b"go.test"),
            (b"content-type", kind),
            (b"origin", b"http://go.test"),
            (b"content-length", b"900"),
        ]
        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
        }
        scope |= {
            "query_string": b"",
            "root_path": "",
            "headers": heads,
            "client": ("127.0.0.1", 1),
            "server": ("go.test", 80),
        }
        await app(scope, receive, send)

    told = app.rt.metrics.render().decode()
    assert 'refract_http_requests_total{method="POST",status="499"} 2.0' in told
    assert 'status="500"' not in told
    assert "Traceback" not in caplog.text
