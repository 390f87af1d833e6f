"""Bad input gets a 4xx and a message, on every route and database."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient, Response

from refract.app import WebNode
from refract.core.runtime import Runtime
from tests import make
from tests.client import by_cookie, by_key, client_of, on_sqlite

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def ada(rt: Runtime) -> dict[str, str]:
    """Return headers of a user who may write, also to their account."""
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, await make.person(session, rt), *make.OWN))


def _problem(response: Response, status: int, code: str) -> dict[str, Any]:
    """Check that the response is a complete problem document, and return it."""
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert response.headers["content-type"] == "application/problem+json"
    assert body["detail"].endswith((".", "?", "!")), body["detail"]
    assert body["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    return body


@on_sqlite
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "line 1"),
        (b'{"name": "x",}', "line 1"),
        (b'{"name": NaN}', "NaN isn't a JSON value"),
        (b'{"name": "x", "extra": -Infinity}', "-Infinity isn't a JSON value"),
        (b"\xff\xfe{}", "isn't UTF-8"),
        (b'{"name": "\xed\xa0\x80"}', "isn't UTF-8"),
        (rb'{"name": "a\u0000b"}', "U+0000"),
        (rb'{"a\u0000b": 1}', "U+0000"),
        (rb'{"name": "\ud800"}', "surrogate"),
        (b'{"name": ' + b"[" * 40 + b"]" * 40 + b"}", "deeper than 32"),
        (b"[" * 60_000, "deeper than 32"),
        (b'{"name": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
async def test_a_body_that_is_no_json_is_malformed_and_says_why(
    client: AsyncClient, ada: dict[str, str], body: bytes, reason: str
) -> None:
    response = await client.post("/api/v1/keys", headers=ada | JSON, content=body)

    assert reason in _problem(response, 400, "MALFORMED_BODY")["detail"]


@on_sqlite
@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "name", "required"),
        ({"name": "x", "colour": "red"}, "colour", "unknown"),
        ({"name": ""}, "name", "required"),
        ({"name": "x" * 101}, "name", "at most 100 characters"),
        ({"name": "x", "scopes": ["fly"]}, "scopes.0", "'read', 'write', 'admin', 'account'"),
        ([], "body", "object"),
        ("text", "body", "object"),
        (None, "body", "object"),
    ],
)
async def test_a_wrong_value_is_named_with_what_would_be_right(
    client: AsyncClient, ada: dict[str, str], body: object, field: str, words: str
) -> None:
    response = await client.post(
        "/api/v1/keys", headers=ada | JSON, content=json.dumps(body).encode()
    )

    errors = _problem(response, 422, "VALIDATION_FAILED")["errors"]
    assert [one["field"] for one in errors] == [field]
    assert words in errors[0]["message"]


@on_sqlite
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        None,
    ],
)
async def test_a_body_of_another_type_is_refused_as_such(
    client: AsyncClient, ada: dict[str, str], kind: str | None
) -> None:
    headers = ada | ({"Content-Type": kind} if kind else {})

    _problem(
        await client.post("/api/v1/keys", headers=headers, content=b'{"name": "x"}'),
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    )


@on_sqlite
@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"]
)
async def test_any_spelling_of_json_is_json(
    client: AsyncClient, ada: dict[str, str], kind: str
) -> None:
    response = await client.post(
        "/api/v1/keys", headers=ada | {"Content-Type": kind}, content=b'{"name": "x"}'
    )

    assert response.status_code == 201, response.text


async def _chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 65_536 + 1):
        yield b"&name=" + b"x" * 65_536


@on_sqlite
@pytest.mark.parametrize("path", ["/api/v1/keys", "/app/settings/keys", "/auth/sign-out"])
async def test_a_body_that_is_too_large_is_not_read_whether_announced_or_not(
    rt: Runtime, app: WebNode, path: str
) -> None:
    limit = rt.settings.max_json_bytes
    async with rt.db.write() as session:
        user = await make.person(session, rt)
        headers = (
            by_cookie(rt, await make.cookie(session, rt, user)) if path.startswith("/a") else {}
        )
    form = (
        {"Content-Type": "application/x-www-form-urlencoded"}
        if not path.startswith("/api")
        else JSON
    )
    async with client_of(app) as client:
        announced = await client.post(path, headers=headers | form, content=b"x" * (limit + 1))
        chunked = await client.post(
            path, headers=headers | form | {"Transfer-Encoding": "chunked"}, content=_chunks(limit)
        )

    assert str(limit) in _problem(announced, 413, "BODY_TOO_LARGE")["detail"]
    if path != "/auth/sign-out":  # it reads no body
        assert str(limit) in _problem(chunked, 413, "BODY_TOO_LARGE")["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/keys/%00",
        "/api/v1/keys?include_revoked=%00",
        "/app/%00/x",
        "/static/x/%00.css",
        "/a%00b",
    ],
)
@on_sqlite
async def test_u0000_in_an_address_is_refused(
    client: AsyncClient, ada: dict[str, str], path: str
) -> None:
    _problem(await client.get(path, headers=ada), 400, "MALFORMED_URL")


async def test_u0000_in_a_form_is_refused_before_a_database_sees_it(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    response = await client.post(
        "/app/settings/keys", headers=browser | form, content=b"name=a%00b&scopes=read"
    )

    assert "U+0000" in _problem(response, 400, "MALFORMED_BODY")["detail"]


@pytest.mark.parametrize(
    "word",
    [
        "%ff%fe",
        "%ed%a0%80",
        "٣",
        "-1",
        "1e3",
        "99999999999999999999",
        "0x10",
        "1;2",
        "%F0%9F%92%A9",
    ],
)
async def test_an_id_that_is_none_is_an_answer_not_an_accident(
    client: AsyncClient, ada: dict[str, str], word: str
) -> None:
    response = await client.delete(f"/api/v1/keys/{word}", headers=ada)

    assert response.status_code in (404, 422), response.text
    _problem(response, response.status_code, response.json()["code"])


@on_sqlite
@pytest.mark.parametrize(
    "header", ["X-API-Key", "Authorization", "Cookie", "Idempotency-Key", "Origin", "X-CSRF-Token"]
)
@pytest.mark.parametrize(
    "value",
    [b"\xff\xfe", b"Bearer \xe9", b"refract=\xe9; refract=", b"a" * 9000, b"null", b"http://[::1"],
)
async def test_odd_headers_never_break_anything(
    client: AsyncClient, header: str, value: bytes
) -> None:
    headers = {header.encode(): value, b"Content-Type": b"application/json"}

    response = await client.post("/api/v1/keys", headers=headers, content=b'{"name": "x"}')

    assert response.status_code in (401, 403, 422), response.text


@on_sqlite
@pytest.mark.parametrize(
    ("cursor", "status"),
    [("x", 400), ("", 200), ("A" * 512, 400), ("A" * 513, 422), ("é", 400), ("e30.e30", 400)],
)
async def test_a_cursor_that_is_not_ours_is_malformed(
    client: AsyncClient, rt: Runtime, cursor: str, status: int
) -> None:
    async with rt.db.write() as session:
        root = by_key(await make.key(session, rt, await make.admin(session, rt), *make.ALL))

    response = await client.get("/api/v1/admin/audit", headers=root, params={"cursor": cursor})

    assert response.status_code == status, response.text


@on_sqlite
@pytest.mark.parametrize(
    "path",
    ["/api/v1/no", "/api/no", "/app/no", "/static/x/no.css", "/static/x/..%2fx.py"],
)
async def test_an_address_that_leads_nowhere_says_so(client: AsyncClient, path: str) -> None:
    _problem(await client.get(path), 404, "PAGE_NOT_FOUND")


@on_sqlite
@pytest.mark.parametrize(
    "path", ["/nothing-here", "/static/x/../../secret", "/..%2f..%2fetc%2fpasswd"]
)
async def test_a_name_that_nobody_has_says_so(client: AsyncClient, path: str) -> None:
    _problem(await client.get(path), 404, "SHORT_LINK_NOT_FOUND")


@on_sqlite
async def test_a_method_that_is_not_known_comes_with_those_that_are(client: AsyncClient) -> None:
    response = await client.put("/api/v1/keys", json={})

    _problem(response, 405, "METHOD_NOT_ALLOWED")
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


@on_sqlite
@pytest.mark.parametrize(
    "moment",
    [
        "0.5",
        "1767225600",
        "tomorrow",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "0001-01-01T00:00:00+23:59",
    ],
)
async def test_a_time_is_written_out_with_its_offset(
    client: AsyncClient, ada: dict[str, str], moment: str
) -> None:
    asked = await client.get("/api/v1/links", headers=ada, params={"created_after": moment})
    body = await client.post(
        "/api/v1/links",
        headers=ada,
        json={"destination": "https://example.com/", "expires_at": moment},
    )

    for response, field in ((asked, "created_after"), (body, "expires_at")):
        assert [one["field"] for one in _problem(response, 422, "VALIDATION_FAILED")["errors"]] == [
            field
        ]


@pytest.mark.parametrize(
    "moment",
    [
        "9135-05-27T19:47:32-20:40",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
    ],
)
async def test_a_far_moment_is_a_moment(
    client: AsyncClient, ada: dict[str, str], moment: str
) -> None:
    """Ids contain times of this century; a query about another one works all the same."""
    for name in ("created_after", "created_before"):
        response = await client.get("/api/v1/links", headers=ada, params={name: moment})
        assert response.status_code == 200, response.text
