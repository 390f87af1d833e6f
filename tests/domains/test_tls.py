"""What a reverse proxy asks before it gets a certificate."""

import pytest
from httpx import ASGITransport, AsyncClient

from refract.app import WebNode
from refract.domains.api import TLS_CHECKS_PER_MINUTE
from refract.identity.models import User
from tests.client import on_sqlite
from tests.people import Headers

pytestmark = on_sqlite
PATH = "/api/v1/domains/tls"


@pytest.fixture
async def domains(client: AsyncClient, as_root: Headers) -> None:
    for host in ("sho.rt", "off.example"):
        await client.post("/api/v1/domains", headers=as_root, json={"host": host})
    disabled = {"state": "disabled"}
    await client.patch("/api/v1/domains/off.example", headers=as_root, json=disabled)


async def ask(
    app: WebNode, domain: str, peer: str = "127.0.0.1", headers: Headers | None = None
) -> int:
    """Return the status. The answer never says more."""
    transport = ASGITransport(app, client=(peer, 40_000))
    async with AsyncClient(transport=transport, base_url="http://10.0.0.5:8000") as proxy:
        response = await proxy.get(PATH, params={"domain": domain}, headers=headers)
    if response.status_code != 429:
        assert response.content == b""
    return response.status_code


@pytest.mark.parametrize(
    ("domain", "status"),
    [
        *(("sho.rt", 200), ("SHO.rt", 200), ("go.test", 200)),
        *(("off.example", 404), ("unknown.example", 404), ("", 404), ("x" * 300, 404)),
        *(("x.sho.rt", 404), ("sho.rt/", 404), ("tls", 404), ("%", 404)),
    ],
)
async def test_only_active_domains_get_a_certificate(
    app: WebNode, domains: None, domain: str, status: int
) -> None:
    assert await ask(app, domain) == status


@pytest.mark.parametrize("peer", ["10.1.2.3", "192.168.0.9", "172.18.0.2", "::1", "fd00::1"])
async def test_machines_of_the_private_network_are_answered(
    app: WebNode, domains: None, peer: str
) -> None:
    assert await ask(app, "sho.rt", peer) == 200


@pytest.mark.parametrize("peer", ["203.0.113.7", "8.8.8.8", "2001:db8::7", "172.32.0.1", "unix"])
async def test_others_are_not_answered(app: WebNode, domains: None, peer: str) -> None:
    assert await ask(app, "sho.rt", peer) == 404


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
async def test_a_request_through_a_proxy_is_not_answered(
    app: WebNode, domains: None, header: str
) -> None:
    assert await ask(app, "sho.rt", headers={header: "203.0.113.7"}) == 404


async def test_questions_are_limited(app: WebNode, domains: None, root: User) -> None:
    statuses = {await ask(app, "sho.rt") for _ in range(TLS_CHECKS_PER_MINUTE + 1)}

    assert statuses == {200, 429}
