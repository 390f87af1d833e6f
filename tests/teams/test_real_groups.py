"""Groups at the real, certified OpenID provider: added, removed and renamed there."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.identity.models import User
from refract.teams import groups
from refract.teams.queries import TeamCaller
from tests import make
from tests.client import by_key, client_of
from tests.identity.browser import Browser
from tests.identity.real_clock import runtime_by_real_clock
from tests.services_plugin import address_of
from tests.waiting import PATIENCE


@pytest.fixture
async def rt(database: str, tmp_path: Path) -> AsyncIterator[Runtime]:
    """By the real clock: the provider has one of its own."""
    issuer = Issuer(
        url=address_of("oidc"),
        client_id="refract",
        client_secret="the secret of the test client",  # type: ignore[arg-type]
        groups_claim="groups",
    )
    async with runtime_by_real_clock(database, tmp_path, issuer) as runtime:
        yield runtime


@pytest.fixture
async def elsewhere(rt: Runtime) -> AsyncIterator[AsyncClient]:
    """Return another process on the same database: its own connections and memory."""
    other = Runtime(
        settings=rt.settings,
        db=Database(rt.settings),
        clock=rt.clock,
        ids=SnowflakeGenerator(2, rt.clock),
        secret=rt.secret,
    )
    app = WebNode(other)
    async with client_of(app) as client:
        yield client
    assert app.engine is not None
    app.engine.spool.close()
    await other.close()
    await other.db.close()


async def _set_groups(name: str, *found: str) -> None:
    async with AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        url = f"{address_of('oidc')}/groups/{name}"
        assert (await client.put(url, json=list(found))).status_code == 204


async def _sign_in(app: WebNode, name: str) -> Browser:
    browser = Browser(app)
    landed = await browser.sign_in(name)
    assert urlsplit(str(landed.url)).netloc == "go.test", landed.text
    return browser


async def _status(client: Browser | AsyncClient, link_id: int, **given: dict[str, str]) -> int:
    path = f"/api/v1/links/{link_id}"
    response: httpx.Response = await client.get(path, **given)  # type: ignore[arg-type]
    return response.status_code


async def test_groups_of_the_provider_decide_at_the_next_sign_in_everywhere(
    rt: Runtime, app: WebNode, client: AsyncClient, elsewhere: AsyncClient
) -> None:
    name = f"grace-{secrets.token_hex(4)}"
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        team = await make.team(session, rt, root)
        link_id = (await make.link(session, rt, root, team=team.slug)).id
        boss = TeamCaller(root.id, is_admin=True)
        await groups.bind_group(session, rt, boss, team.id, "work", "engineers")

    await _set_groups(name, "sales")
    browser = await _sign_in(app, name)
    assert await _status(browser, link_id) == 404
    me = int((await browser.get("/api/v1/me")).json()["id"])
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, await session.get_one(User, me)))

    await _set_groups(name, "sales", "engineers")
    assert await _status(browser, link_id) == 404  # groups count at the next sign-in
    again = await _sign_in(app, name)
    for place in (client, elsewhere):
        assert await _status(place, link_id, headers=key) == 200
    assert await _status(browser, link_id) == 200  # and then in open sessions too

    await _set_groups(name, "sales")
    last = await _sign_in(app, name)
    for place in (client, elsewhere):
        assert await _status(place, link_id, headers=key) == 404
    for open_session in (browser, again, last):
        assert await _status(open_session, link_id) == 404

    await _set_groups(name, "builders")  # the group was renamed at the provider, then here
    async with rt.db.write() as session:
        await groups.bind_group(session, rt, boss, team.id, "work", "builders")
    assert await _status(client, link_id, headers=key) == 404
    renamed = await _sign_in(app, name)
    assert await _status(client, link_id, headers=key) == 200
    for each in (browser, again, last, renamed):
        await each.close()
