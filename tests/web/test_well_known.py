"""`/.well-known/security.txt` and `gpc.json` (security finding 19: both were 404)."""

from datetime import datetime, timedelta

import pytest
from httpx import ASGITransport, AsyncClient
from pydantic import ValidationError

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
async def test_nothing_is_published_unless_somebody_is_named(client: AsyncClient) -> None:
    assert (await client.get("/.well-known/security.txt")).status_code == 404


@on_sqlite
async def test_security_txt_is_as_rfc_9116_has_it(rt: Runtime) -> None:
    given = {
        "security_contact": "mailto:security@example.com",
        "security_policy": "https://example.com/policy",
    }
    rt.settings = rt.settings.model_copy(update=given)
    app = WebNode(rt)
    async with AsyncClient(transport=ASGITransport(app), base_url="http://go.test") as client:
        answer = await client.get("/.well-known/security.txt")
    assert app.engine is not None
    app.engine.spool.close()

    assert (answer.status_code, answer.headers["content-type"]) == (
        200,
        "text/plain; charset=utf-8",
    )
    fields = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert fields["Contact"] == "mailto:security@example.com"
    assert fields["Policy"] == "https://example.com/policy"
    assert fields["Canonical"] == "http://go.test/.well-known/security.txt"
    left = datetime.fromisoformat(fields["Expires"]) - rt.clock.now()
    assert timedelta(days=30) < left < timedelta(days=365)


@on_sqlite
async def test_global_privacy_control_is_declared(client: AsyncClient) -> None:
    answer = await client.get("/.well-known/gpc.json")

    assert answer.json()["gpc"] is True
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "contact",
    [
        "security@example.com",
        "mailto:a@b\nContact: mailto:x@y",
        "http://example.com",
        "https://exämple.com",
    ],
)
def test_a_contact_is_an_address_and_one_line(contact: str) -> None:
    with pytest.raises(ValidationError, match="mailto:"):
        Settings(security_contact=contact)
