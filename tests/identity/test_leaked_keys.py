"""What a leaked key can do.

The finding: a key with the default scopes could delete the account, create further keys that
outlived it, and end sessions; keys never expired, and their use was not traced to a network.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity import keys
from refract.identity.authentication import Caller
from refract.identity.errors import InvalidCredentials
from refract.identity.models import ApiKey, Scope, User
from refract.identity.revocation import RevocationWatcher, WatchedCaller
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.conftest import make_settings

ACCOUNT_ROUTES = (
    ("DELETE", "/api/v1/me"),
    ("GET", "/api/v1/me/sessions"),
    ("DELETE", "/api/v1/me/sessions"),
    ("DELETE", "/api/v1/me/sessions/1"),
    ("GET", "/api/v1/keys"),
    ("POST", "/api/v1/keys"),
    ("DELETE", "/api/v1/keys/1"),
    ("GET", "/app/settings"),
    ("POST", "/app/settings/delete"),
    ("POST", "/app/settings/keys"),
    ("POST", "/app/settings/keys/1/revoke"),
    ("POST", "/app/settings/sessions/end-others"),
    ("POST", "/app/settings/sessions/1/end"),
)


async def _headers(rt: Runtime, user: User, *scopes: Scope) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user, *scopes))


async def _browser(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, user))


async def _make(client: AsyncClient, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    response = await client.post("/api/v1/keys", headers=headers, json={"name": "child", **body})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def _is_gone(standing: RevocationWatcher, watched: WatchedCaller) -> bool:
    await standing.check()
    return watched.revoked


@on_sqlite
@pytest.mark.parametrize(("method", "path"), ACCOUNT_ROUTES)
async def test_a_key_without_the_scope_account_manages_nothing(
    rt: Runtime, client: AsyncClient, method: str, path: str
) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
    headers = await _headers(rt, root, Scope.READ, Scope.WRITE, Scope.ADMIN)
    form = {"confirm": "delete", "name": "child"}
    body: dict[str, Any] = (
        {"json": {"name": "child"}} if path.startswith("/api") else {"data": form}
    )

    refused = await client.request(
        method, path, headers=headers, **({} if method != "POST" else body)
    )

    assert (refused.status_code, refused.json()["code"]) == (403, "MISSING_SCOPE")
    assert '"account"' in refused.json()["detail"]


async def test_a_key_with_the_scope_account_and_a_browser_may(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    for headers in (await _headers(rt, ada, Scope.READ, Scope.ACCOUNT), await _browser(rt, ada)):
        assert (await client.get("/api/v1/keys", headers=headers)).status_code == 200
        assert (await client.get("/api/v1/me/sessions", headers=headers)).status_code == 200
    account = await _headers(rt, ada, Scope.ACCOUNT)
    assert (await client.post("/api/v1/keys", headers=account, json={"name": "wider"})).json()[
        "code"
    ] == "SCOPE_NOT_ALLOWED"
    assert (await client.delete("/api/v1/me", headers=account)).status_code == 204


async def test_revoking_a_key_revokes_those_it_made_and_those_they_made(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    browser = await _browser(rt, ada)
    scopes = ["read", "account"]
    parent = await _make(client, browser, scopes=scopes)
    child = await _make(client, by_key(parent["key"]), scopes=scopes)
    grandchild = await _make(client, by_key(child["key"]), scopes=["read"])
    other = await _make(client, browser, scopes=scopes)

    assert [made["parent_id"] for made in (parent, child, grandchild)] == [
        None,
        parent["id"],
        child["id"],
    ]
    assert (await client.delete(f"/api/v1/keys/{parent['id']}", headers=browser)).status_code == 204

    seen = [
        (await client.get("/api/v1/me", headers=by_key(made["key"]))).status_code
        for made in (parent, child, grandchild, other)
    ]
    assert seen == [401, 401, 401, 200]
    told = (await client.get("/api/v1/keys?include_revoked=true", headers=browser)).json()["items"]
    assert {key["id"]: key["status"] for key in told} == {
        parent["id"]: "revoked", child["id"]: "revoked",
        grandchild["id"]: "revoked", other["id"]: "active",
    }  # fmt: skip


async def test_a_key_that_was_just_revoked_makes_no_child(rt: Runtime, ada: User) -> None:
    """A concurrent request is authenticated before the revocation and writes after it."""
    async with rt.db.write() as session:
        row, _ = await keys.create_key(session, rt, ada, "parent", [Scope.READ, Scope.ACCOUNT])
    async with rt.db.write() as session:
        await keys.revoke_key(session, ada, row.id)
    async with rt.db.write() as session:
        with pytest.raises(InvalidCredentials):
            await keys.create_key(
                session,
                rt,
                ada,
                "child",
                [Scope.READ],
                parent=keys.ParentKey(row.id, frozenset({Scope.READ}), ada.id),
            )


async def test_an_expired_key_is_refused_everywhere_with_a_code_of_its_own(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User
) -> None:
    browser = await _browser(rt, ada)
    ends = clock.now() + timedelta(days=10)
    made = await _make(client, browser, expires_at=ends.isoformat())
    headers = by_key(made["key"])
    standing = RevocationWatcher(rt)
    actor = Caller(ada, frozenset(Scope), key_id=int(made["id"]))
    assert datetime.fromisoformat(made["expires_at"]) == ends
    assert (await client.get("/api/v1/me", headers=headers)).status_code == 200
    async with standing.watch(actor) as watched:
        await standing.close()  # it would look by itself meanwhile
        seen = [await _is_gone(standing, watched)]
        clock.advance(timedelta(days=10).total_seconds())
        seen.append(await _is_gone(standing, watched))
    assert seen == [False, True]
    refused = await client.get("/api/v1/me", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "KEY_EXPIRED")
    told = (await client.get("/api/v1/keys", headers=await _browser(rt, ada))).json()["items"]
    assert [key["status"] for key in told] == ["expired"]


@on_sqlite
@pytest.mark.parametrize(
    "ends", ["2026-05-31T00:00:00Z", "2026-07-01T00:00:00", "2040-01-01T00:00:00Z"]
)
async def test_an_end_that_is_past_without_a_zone_or_far_away_is_refused(
    rt: Runtime, client: AsyncClient, ada: User, ends: str
) -> None:
    refused = await client.post(
        "/api/v1/keys", headers=await _browser(rt, ada), json={"name": "x", "expires_at": ends}
    )

    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "expires_at")


async def test_a_child_ends_no_later_than_its_parent(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User
) -> None:
    ends = (clock.now() + timedelta(days=30)).isoformat()
    parent = await _make(
        client, await _browser(rt, ada), scopes=["read", "account"], expires_at=ends
    )
    forever = await _make(client, by_key(parent["key"]), scopes=["read"])
    sooner = (clock.now() + timedelta(days=3)).isoformat()
    short = await _make(client, by_key(parent["key"]), scopes=["read"], expires_at=sooner)

    assert forever["expires_at"] == parent["expires_at"]
    assert datetime.fromisoformat(short["expires_at"]) == clock.now() + timedelta(days=3)


class TestNetworks:
    """The network is that of the client behind our proxies, without the host part."""

    @pytest.fixture
    def settings(self, database: str, tmp_path: Any) -> Settings:
        return make_settings(
            tmp_path / "data", database_url=database, trusted_proxies="127.0.0.1/32"
        )

    @pytest.mark.parametrize(
        ("address", "network"),
        [
            ("203.0.113.77", "203.0.113.0/24"),
            ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
            ("nonsense", "127.0.0.0/24"),
        ],
    )
    async def test_the_last_network_is_kept_anonymised_and_in_batches(
        self, rt: Runtime, app: WebNode, client: AsyncClient, ada: User, address: str, network: str
    ) -> None:
        headers = await _headers(rt, ada)
        await client.get("/api/v1/me", headers=headers | {"X-Forwarded-For": address})
        async with rt.db.read() as session:
            assert (await session.scalars(select(ApiKey.last_used_network))).one() is None
        await app.api.state.key_usage.flush()

        told = (await client.get("/api/v1/keys", headers=await _browser(rt, ada))).json()["items"][
            0
        ]
        assert (told["last_used_network"], told["usage_count"]) == (network, 1)


@on_sqlite
async def test_the_page_offers_ninety_days_and_reminds_of_what_ends_soon(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User
) -> None:
    browser = await _browser(rt, ada) | {"Accept": "text/html"}
    page = await client.get("/app/settings", headers=browser)
    assert '<option value="90" selected>' in page.text
    made = await client.post(
        "/app/settings/keys",
        headers=browser,
        data={"name": "script", "scopes": ["read"], "days": "90"},
    )
    assert made.status_code == 200
    await client.post(
        "/app/settings/keys",
        headers=browser,
        data={"name": "old", "scopes": ["read"], "days": "never"},
    )
    odd = await client.post(
        "/app/settings/keys", headers=browser, data={"name": "odd", "scopes": ["read"], "days": "x"}
    )
    assert (odd.status_code, "field-error" in odd.text) == (422, True)
    async with rt.db.read() as session:
        ends = {row.name: row.expires_at for row in await session.scalars(select(ApiKey))}
    assert ends == {"script": clock.now() + timedelta(days=90), "old": None}

    assert "Expires soon" not in (await client.get("/app/settings", headers=browser)).text
    clock.advance(timedelta(days=77).total_seconds())
    browser = await _browser(rt, ada) | {"Accept": "text/html"}
    assert (await client.get("/app/settings", headers=browser)).text.count("Expires soon") == 1
