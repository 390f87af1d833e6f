"""Sessions and accounts of people who leave.

The finding: sessions slid to 90 days without asking the issuer again, so people who had left the
company stayed signed in; and a deleted account was created again by the next sign-in, or by the
next call with a still valid token.
"""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select, update

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.errors import AccountBarred
from refract.identity.models import AccountTombstone, BrowserSession, User, UserRole
from refract.identity.oidc.accounts import sync_account
from refract.identity.users import create_local_user
from tests import make
from tests.access.identities import ISSUERS
from tests.client import by_cookie, by_key, on_sqlite
from tests.conftest import make_settings
from tests.dump import dump
from tests.identity.issuer import CLIENT, bearer, claims, publish, sign


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        issuers=ISSUERS,
        signin_links="on",
        session_max_days=7,
    )


@pytest.fixture
async def rt(rt: Runtime) -> Runtime:
    await publish(rt)
    return rt


async def test_somebody_of_a_provider_signs_in_again_after_seven_days_however_often_they_come(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        local = await create_local_user(
            session, rt, "l@example.com", subject="l", role=UserRole.USER
        )
        cookies = [await make.cookie(session, rt, user) for user in (ada, local)]
    seen = []
    for _ in range(8):
        clock.advance(timedelta(days=1).total_seconds() - 1)
        seen.append(
            [
                (await client.get("/api/v1/me", headers=by_cookie(rt, cookie))).status_code
                for cookie in cookies
            ]
        )

    assert seen == [[200, 200]] * 7 + [[401, 200]]


async def test_a_session_from_before_the_setting_ends_by_it(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    """An older release stored an expiry in a month; the current limit applies to each request."""
    async with rt.db.write() as session:
        cookie = await make.cookie(session, rt, await make.person(session, rt, "ada"))
        await session.execute(
            update(BrowserSession).values(
                expires_at=clock.now() + timedelta(days=30),
                created_at=clock.now() - timedelta(days=8),
            )
        )

    assert (await client.get("/api/v1/me", headers=by_cookie(rt, cookie))).status_code == 401


async def _delete(rt: Runtime, client: AsyncClient, name: str = "ada") -> User:
    async with rt.db.write() as session:
        user = await make.person(session, rt, name)
        cookie = await make.cookie(session, rt, user)
    assert (await client.delete("/api/v1/me", headers=by_cookie(rt, cookie))).status_code == 204
    return user


async def test_a_deleted_account_does_not_come_back_by_token_or_sign_in(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    await _delete(rt, client)
    token = bearer(sign(claims(clock.now(), aud=CLIENT)))

    assert (await client.get("/api/v1/me", headers=token)).status_code == 401
    async with rt.db.write() as session:
        with pytest.raises(AccountBarred):
            await sync_account(session, rt, ISSUERS["work"], {"sub": "ada"})
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(User)) == 1
    kept = await dump(rt)
    assert not re.search(r"\bada\b", kept)  # within a digest the letters may stand by chance


async def test_an_administrator_lists_and_allows(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    gone = await _delete(rt, client)
    async with rt.db.write() as session:
        root = by_key(await make.key(session, rt, await make.admin(session, rt), *make.ALL))
    async with rt.db.write() as session:
        with pytest.raises(AccountBarred) as refused:
            await sync_account(session, rt, ISSUERS["work"], {"sub": "ada"})
    (listed,) = (await client.get("/api/v1/admin/barred", headers=root)).json()["items"]
    assert (listed["user_id"], listed["reference"] in refused.value.message) == (str(gone.id), True)

    assert (
        await client.delete(f"/api/v1/admin/barred/{listed['id']}", headers=root)
    ).status_code == 204

    assert (
        await client.delete(f"/api/v1/admin/barred/{listed['id']}", headers=root)
    ).status_code == 404
    assert (await client.get("/api/v1/admin/barred", headers=root)).json()["items"] == []
    token = bearer(sign(claims(clock.now(), aud=CLIENT)))
    assert (await client.get("/api/v1/me", headers=token)).status_code == 200
    log = (await client.get("/api/v1/admin/audit", headers=root)).json()["items"]
    assert "account.allowed" in [line["action"] for line in log]


@on_sqlite
async def test_an_administrator_allows_in_the_browser(rt: Runtime, client: AsyncClient) -> None:
    await _delete(rt, client)
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.admin(session, rt))) | {
            "Accept": "text/html"
        }
        (row,) = await session.scalars(select(AccountTombstone))
    page = await client.get("/app/admin/barred", headers=browser)
    assert (page.status_code, row.digest[:12] in page.text) == (200, True)

    assert (
        await client.post(f"/app/admin/barred/{row.id}/allow", headers=browser)
    ).status_code == 303

    assert row.digest[:12] not in (await client.get("/app/admin/barred", headers=browser)).text


async def test_deleting_twice_keeps_one_tombstone(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    """Allowed to return, and gone again."""
    for _ in range(2):
        async with rt.db.write() as session:
            for row in await session.scalars(select(AccountTombstone)):
                await session.delete(row)
        await _delete(rt, client)
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(AccountTombstone)) == 1


async def test_an_account_of_the_terminal_leaves_no_tombstone(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        local = await create_local_user(
            session, rt, "l@example.com", subject="l", role=UserRole.USER
        )
        cookie = await make.cookie(session, rt, local)
    assert (await client.delete("/api/v1/me", headers=by_cookie(rt, cookie))).status_code == 204

    async with rt.db.read() as session:
        assert await session.scalar(select(AccountTombstone)) is None
