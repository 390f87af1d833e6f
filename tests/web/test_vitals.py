"""Access to metrics and readiness details (security finding "Low"): they were public."""

from ipaddress import ip_network
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.server.node import RedirectOnlyApp, ServerNode
from tests.client import on_sqlite

pytestmark = on_sqlite
TOKEN = "t" * 20
FORWARDED = [
    "Forwarded",
    "Via",
    "X-Real-IP",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
]


def asking(rt: Runtime, peer: str, app: Any) -> AsyncClient:
    return AsyncClient(
        transport=ASGITransport(app, client=(peer, 4711)), base_url=rt.settings.public_url
    )


def change(rt: Runtime, **given: Any) -> None:
    rt.settings = type(rt.settings)(**(rt.settings.model_dump() | given))


async def told(client: AsyncClient, **headers: str) -> tuple[set[str], int]:
    """Return the body of `/ready`, and the status of `/metrics`."""
    ready = await client.get("/ready", headers=headers)
    assert ready.status_code == 200
    return set(ready.json()), (await client.get("/metrics", headers=headers)).status_code


DETAIL = {"status", "version", "dependencies", "problems"}


async def test_this_machine_learns_everything(rt: Runtime, app: WebNode) -> None:
    for peer in ("127.0.0.1", "127.8.0.1", "::1"):
        async with asking(rt, peer, app) as client:
            assert await told(client) == (DETAIL, 200)


async def test_others_learn_whether_it_is_ready_and_no_more(rt: Runtime, app: WebNode) -> None:
    async with asking(rt, "203.0.113.7", app) as client:
        assert await told(client) == ({"status"}, 401)


@pytest.mark.parametrize("name", FORWARDED)
async def test_a_request_that_came_through_a_proxy_is_not_this_machine(
    rt: Runtime, app: WebNode, name: str
) -> None:
    async with asking(rt, "127.0.0.1", app) as client:
        assert await told(client, **{name: "for=127.0.0.1"}) == ({"status"}, 401)


async def test_a_foreign_name_for_this_machine_learns_nothing(rt: Runtime, app: WebNode) -> None:
    """Regression: these paths accept any host, so a rebinding page could read them."""
    async with asking(rt, "127.0.0.1", app) as client:
        for host in ("evil.test", "127.0.0.1.evil.test", "localhost@evil.test", ""):
            assert await told(client, Host=host) == ({"status"}, 401)
        for host in ("127.0.0.1:8000", "localhost", "[::1]:8000"):
            assert await told(client, Host=host) == (DETAIL, 200)


async def test_behind_trusted_proxies_a_token_is_needed(rt: Runtime, app: WebNode) -> None:
    change(rt, trusted_proxies=(ip_network("127.0.0.1/32"),))
    async with asking(rt, "127.0.0.1", app) as client:
        assert await told(client) == ({"status"}, 401)


async def test_with_a_token_nobody_else_learns_anything(rt: Runtime, app: WebNode) -> None:
    change(rt, metrics_token=TOKEN, trusted_proxies=(ip_network("127.0.0.1/32"),))
    for peer in ("127.0.0.1", "203.0.113.7"):
        async with asking(rt, peer, app) as client:
            assert await told(client) == ({"status"}, 401)
            assert await told(client, Authorization="Bearer wrong") == ({"status"}, 401)
            assert await told(client, Authorization=f"Bearer {TOKEN}") == (DETAIL, 200)


async def test_a_role_without_the_web_app_says_as_little(rt: Runtime) -> None:
    node = ServerNode(rt)
    try:
        bare = RedirectOnlyApp(node.vitals, None)
        async with asking(rt, "203.0.113.7", bare) as client:
            assert await told(client) == ({"status"}, 401)
        async with asking(rt, "127.0.0.1", bare) as client:
            assert await told(client) == (DETAIL, 200)
    finally:
        if node.engine is not None:
            node.engine.spool.close()


async def test_health_says_ok_and_nothing_else(
    rt: Runtime, app: WebNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.vitals, "_problems", lambda: ["The disk is full."])
    async with asking(rt, "127.0.0.1", app) as client:
        health, ready = await client.get("/health"), await client.get("/ready")

    assert health.text == '{"status":"ok"}'
    assert ready.json()["status"] == "degraded"
    assert ready.json()["problems"] == ["The disk is full."]
