"""The same rules for API, pages, browsers and keys."""

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import ApiKey
from tests import make
from tests.client import by_cookie, by_key


@pytest.mark.parametrize("path", ["/api/v1/keys", "/app/settings/keys"])
async def test_a_key_never_makes_a_stronger_key_through_any_door(
    rt: Runtime, client: AsyncClient, path: str
) -> None:
    async with rt.db.write() as session:
        weak = await make.key(session, rt, await make.admin(session, rt))
    wish = {"name": "climber", "scopes": ["admin"]}

    body = {"json": wish} if path.startswith("/api") else {"data": wish}
    response = await client.post(path, headers=by_key(weak), **body)  # type: ignore[arg-type]

    assert response.status_code == 403
    async with rt.db.read() as session:
        assert await session.scalar(select(ApiKey).where(ApiKey.name == "climber")) is None


async def test_a_repeated_post_is_one_change_even_when_the_session_was_seen_long_ago(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    """Extending the session writes before the endpoint; the response still belongs to the user."""
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))
    clock.advance(3600)

    asked = {"headers": browser | {"Idempotency-Key": "once"}, "json": {"name": "only one"}}
    first, second = [
        await client.post("/api/v1/keys", **asked)  # type: ignore[arg-type]
        for _ in range(2)
    ]

    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["key"] is None


async def test_a_key_without_permissions_is_refused(rt: Runtime, client: AsyncClient) -> None:
    """Finding: an empty list of scopes gave a key with `read` and `write`."""
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))

    wish = {"name": "nothing", "scopes": []}
    refused = await client.post("/api/v1/keys", headers=browser, json=wish)

    assert refused.status_code == 422
    async with rt.db.read() as session:
        assert await session.scalar(select(ApiKey).where(ApiKey.name == "nothing")) is None
