"""All operations of all dialects against strangers, cookies, weak keys and large pages."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import structlog
from sqlalchemy import event, func, select

from refract.app import WebNode
from refract.compat.app import DIALECTS
from refract.compat.dialect import Operation
from refract.compat.kutt.shapes import build_uuid
from refract.compat.pagination import BATCH_SIZE
from refract.core.runtime import Runtime
from refract.identity.key_usage import KeyUsageTracker
from refract.identity.models import AuditEntry, Scope, User
from refract.links import service
from refract.links.models import Link
from tests import make
from tests.client import by_cookie, on_sqlite

pytestmark = on_sqlite
FOREIGN_NAME = "foreign"


def _list_calls() -> Iterator[tuple[str, str, Operation]]:
    """Yield dialect, path and operation of everything that needs a key."""
    for dialect in (made() for made in DIALECTS):
        left_out = dialect.roots[0][1]
        for operation in dialect.operations:
            if operation.scope is not None:
                yield dialect.name, left_out + operation.path, operation


CALLS = list(_list_calls())
IDS = [f"{operation.method} {path}" for _, path, operation in CALLS]


def _fill(path: str, uuid: str, number: int = 1) -> str:
    values = {
        "{code}": FOREIGN_NAME, "{tag}": "secret-tag", "{domain}": "DEFAULT", "{uuid}": uuid,
        "{number:int}": str(number), "{asset:int}": "1", "{bookmark}": str(number),
        "{list}": str(number), "{highlight}": str(number), "{asset}": str(number),
    }  # fmt: skip
    for name, value in values.items():
        path = path.replace(name, value)
    return path


def _prove(name: str, key: str) -> dict[str, str]:
    match name:
        case "linkding":
            return {"Authorization": f"Token {key}"}
        case "karakeep":
            return {"Authorization": f"Bearer {key}"}
    return {"X-Api-Key": key}


@pytest.fixture
async def foreign(rt: Runtime, bob: User) -> str:
    """The UUID of somebody else's link, which has a name and a tag."""
    async with rt.db.write() as session:
        link = await make.link(session, rt, bob, name=FOREIGN_NAME, tags=["secret-tag"])
    return build_uuid(link.id)


async def _snapshot(rt: Runtime) -> tuple[Any, ...]:
    async with rt.db.read() as session:
        links = await session.execute(select(Link.id, Link.version, Link.status).order_by(Link.id))
        entries = await session.scalar(select(func.count()).select_from(AuditEntry))
        return [tuple(row) for row in links], entries


async def test_a_cookie_alone_authorizes_nothing(
    rt: Runtime, http: httpx.AsyncClient, bob: User, foreign: str
) -> None:
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, bob))
    before = await _snapshot(rt)

    for _, path, operation in CALLS:
        for headers in ({}, cookie):
            response = await http.request(operation.method, _fill(path, foreign), headers=headers)
            assert response.status_code == 401, (operation.method, path)
            assert "set-cookie" not in response.headers
    for method in ("GET", "POST"):
        action = {"action": "shorturl", "url": "https://example.com/"}
        response = await http.request(method, "/yourls-api.php", params=action, headers=cookie)
        assert response.status_code == 403

    assert await _snapshot(rt) == before


async def test_a_key_without_the_scope_changes_nothing(
    rt: Runtime, http: httpx.AsyncClient, read_key: str, foreign: str
) -> None:
    before = await _snapshot(rt)

    for name, path, operation in CALLS:
        if operation.scope == Scope.WRITE:
            target = _fill(path, foreign)
            response = await http.request(operation.method, target, headers=_prove(name, read_key))
            assert response.status_code == 403, (operation.method, path)
    signed = {"username": "u", "password": read_key, "format": "json"}
    refused = await http.get(
        "/yourls-api.php", params={**signed, "action": "shorturl", "url": "https://example.com/"}
    )

    assert refused.status_code == 403
    assert await _snapshot(rt) == before


async def test_what_is_foreign_does_not_exist(
    rt: Runtime, http: httpx.AsyncClient, key: str, other_key: str, foreign: str
) -> None:
    bookmark = await http.post(
        "/api/bookmarks/",
        json={"url": "https://example.com/", "title": "T", "tag_names": ["t"]},
        headers=_prove("linkding", other_key),
    )
    await http.get("/api/tags/", headers=_prove("linkding", other_key))
    assert bookmark.json()["id"] == 1
    before = await _snapshot(rt)

    parts = ("{code}", "{tag}", "{uuid}", "{number", "{bookmark}")
    body = {"tags": [], "name": "x"}  # complete where required
    for name, path, operation in CALLS:
        if not any(part in path for part in parts):
            continue
        if any(part in path for part in ("domains", "bundles", "upload", "{bookmark}/assets")):
            continue  # refused before anything is looked up
        for number in (1, 2, 2**31, 10**30):
            response = await http.request(
                operation.method,
                _fill(path, foreign, number),
                headers=_prove(name, key),
                json=body if name == "karakeep" else None,
            )
            assert response.status_code == 404, (operation.method, path, response.text)

    assert await _snapshot(rt) == before


async def test_changes_of_an_administrator_are_audited(
    rt: Runtime, http: httpx.AsyncClient, admin_key: str, foreign: str, root: User
) -> None:
    """Each change goes through the service that writes the entry."""
    headers = _prove("shlink", admin_key)
    changes: list[tuple[str, str, Any]] = [
        ("PATCH", f"/rest/v3/short-urls/{FOREIGN_NAME}", {"title": "x"}),
        ("PATCH", f"/api/v2/links/{foreign}", {"description": "x"}),
        ("PATCH", f"/api/v2/links/{foreign}", {"address": "renamed"}),
        ("PUT", "/rest/v3/tags", {"oldName": "secret-tag", "newName": "open"}),
        ("DELETE", "/rest/v3/tags?tags[]=open", None),
        ("DELETE", f"/api/v2/links/{foreign}", None),
    ]
    for method, path, body in changes:
        before = (await _snapshot(rt))[1]
        response = await http.request(method, path, json=body, headers=headers)
        assert response.status_code < 300, response.text
        assert (await _snapshot(rt))[1] > before, (method, path)
    async with rt.db.read() as session:
        actors = set(await session.scalars(select(AuditEntry.actor_id)))
    assert root.id in actors


async def test_any_origin_may_ask_without_cookies(http: httpx.AsyncClient, key: str) -> None:
    asked = {"Origin": "https://app.shlink.io", "Access-Control-Request-Method": "PATCH"}
    asked["Access-Control-Request-Headers"] = "content-type,x-api-key"

    preflight = await http.options("/rest/v3/short-urls/x", headers=asked)
    plain = await http.get("/rest/v3/tags", headers={"X-Api-Key": key, **asked})
    refused = await http.get("/api/bookmarks/", headers=asked)

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-headers"] == "content-type,x-api-key"
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    assert preflight.headers["access-control-max-age"] == "3600"
    for response in (preflight, plain, refused):
        assert response.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in response.headers


async def test_bodies_are_read_by_what_they_are(http: httpx.AsyncClient, key: str) -> None:
    async def create(body: bytes, kind: str) -> httpx.Response:
        headers = {"X-Api-Key": key, "Content-Type": kind}
        return await http.post("/rest/v3/short-urls", content=body, headers=headers)

    fields = json.dumps({"longUrl": "https://example.com/", "unknown": 1, "title": None}).encode()
    for kind in ("text/plain", "application/octet-stream", "application/x-www-form-urlencoded"):
        assert (await create(fields, kind)).status_code == 200, kind
    form = await create(
        b"longUrl=https://example.com/&tags[]=a", "application/x-www-form-urlencoded"
    )
    assert form.json()["tags"] == ["a"]
    for body in (b"{", b"[]", b'{"longUrl": NaN}', b"\xff", b"[" * 50_000):
        response = await create(body, "application/json")
        assert response.status_code == 400, body[:20]
        assert response.json()["type"].endswith("/malformed-request-body")
    large = await create(b" " * 5_000_000, "application/json")
    assert large.status_code == 413


async def test_a_key_in_an_address_is_in_no_log(
    rt: Runtime, http: httpx.AsyncClient, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the server fails, and in no error message."""

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    lines: list[str] = []

    def keep(_logger: object, _method: str, entry: Any) -> Any:
        lines.append(repr(entry))
        return entry

    addresses = [
        f"/yourls-api.php?action=shorturl&url=https://example.com/&username=u&password={key}",
        f"/yourls-api.php?action=version&signature={key}",
        f"/rest/v3/short-urls/shorten?apiKey={key}&longUrl=https://example.com/",
        f"/rest/v3/short-urls/shorten?apiKey={key}x&longUrl=https://example.com/",
    ]
    processors = structlog.get_config()["processors"]
    structlog.configure(processors=[*processors[:-1], keep, processors[-1]])
    try:
        monkeypatch.setattr(service, "create_link", fail)
        answers = [await http.get(address) for address in addresses]
    finally:
        structlog.configure(processors=processors)
    await rt.singleton(KeyUsageTracker).flush()
    async with rt.db.read() as session:
        entries = [
            f"{entry.target} {entry.detail}" for entry in await session.scalars(select(AuditEntry))
        ]

    assert [answer.status_code for answer in answers] == [500, 403, 500, 401]
    assert any("request_failed" in line for line in lines)
    for text in (*lines, *entries, *(answer.text for answer in answers)):
        assert key not in text


@contextmanager
def _counting(rt: Runtime) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(*given: Any) -> None:
        statements.append(given[2])

    engines = {rt.db.read_engine.sync_engine, rt.db.engine.sync_engine}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield statements
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


async def test_large_pages_are_sent_in_batches(
    rt: Runtime, http: httpx.AsyncClient, ada: User, key: str
) -> None:
    """The number of queries grows by batches, not by rows, and no query returns all rows."""
    total = 2 * BATCH_SIZE + 1
    new = [await make.new_link(rt, f"https://example.com/{place}") for place in range(3)]
    async with rt.db.write() as session:
        for begin in range(0, total, 1_000):
            rows = [new[place % 3] for place in range(begin, min(total, begin + 1_000))]
            await service.create_links(session, rt, ada, rows, charged=False)
    headers = {"X-Api-Key": key}

    counts = {}
    for size in (1, 10, BATCH_SIZE, -1):
        with _counting(rt) as statements:
            response = await http.get(
                "/rest/v3/short-urls", params={"itemsPerPage": size}, headers=headers
            )
        listed = response.json()["shortUrls"]
        assert len(listed["data"]) == (total if size < 0 else size)
        assert listed["pagination"]["totalItems"] == total
        counts[size] = len(statements)
        assert all("LIMIT" in text.upper() for text in statements if "ORDER BY links" in text)

    assert counts[1] == counts[10] == counts[BATCH_SIZE]
    batches = -(-total // BATCH_SIZE)
    assert counts[-1] <= batches * counts[1]


async def test_nothing_is_mounted_unless_enabled(rt: Runtime) -> None:
    plain = rt.settings.model_copy(update={"compat": ()})
    rt.settings = plain
    node = WebNode(rt)
    transport = httpx.ASGITransport(app=node)
    async with httpx.AsyncClient(transport=transport, base_url=plain.public_url) as client:
        for path in (
            "/rest/v3/health",
            "/api/bookmarks/",
            "/api/v2/links",
            "/yourls-api.php",
            "/karakeep/api/health",
        ):
            assert (await client.get(path)).status_code == 404, path
        health = await client.get("/health", headers={"Authorization": "Token x"})
        assert health.json() == {"status": "ok"}
    if node.engine is not None:
        node.engine.spool.close()


async def test_dialects_are_not_in_the_openapi_document(app: WebNode) -> None:
    paths = app.api.openapi()["paths"]

    assert not [
        path
        for path in paths
        if path.startswith(("/rest", "/api/v2", "/api/bookmarks", "/karakeep"))
    ]


async def test_unknown_paths_and_methods_have_the_shape_of_the_dialect(
    http: httpx.AsyncClient, key: str
) -> None:
    absent = await http.get("/rest/v3/nothing", headers={"X-Api-Key": key})
    method = await http.put("/rest/v3/domains", headers={"X-Api-Key": key})
    head = await http.head("/rest/health")
    slash = await http.get("/api/tags", headers=_prove("linkding", key))

    assert absent.json()["type"] == "https://shlink.io/api/error/not-found"
    assert (method.status_code, method.headers["allow"]) == (405, "GET")
    assert (head.status_code, head.content) == (200, b"")
    assert slash.status_code == 200


async def test_a_key_of_a_team_has_no_bookmarks(
    rt: Runtime, http: httpx.AsyncClient, bob: User
) -> None:
    async with rt.db.write() as session:
        key = await make.team_key(session, rt, await make.team(session, rt, bob), bob)

    bookmarks = await http.get("/api/bookmarks/", headers=_prove("linkding", key))
    links = await http.get("/rest/v3/short-urls", headers=_prove("shlink", key))

    assert bookmarks.status_code == 403
    assert links.status_code == 200


async def test_dialects_are_spoken_on_the_default_domain_only(
    app: WebNode, rt: Runtime, http: httpx.AsyncClient, bob: User
) -> None:
    async with rt.db.write() as session:
        headers = _prove("shlink", await make.key(session, rt, bob))
        await make.domain(session, rt, "sho.rt")
    assert app.engine is not None

    async with app.engine.run():  # which learns of the domain
        own = await http.get("/rest/v3/short-urls", headers=headers)
        other = await http.get("/rest/v3/short-urls", headers=headers | {"Host": "sho.rt"})

    assert own.status_code == 200
    assert other.status_code == 404
    assert "shortUrls" not in other.text
