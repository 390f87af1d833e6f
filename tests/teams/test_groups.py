"""Teams follow the groups of an identity provider: added, removed, renamed, missing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.links import queries, service
from refract.teams.groups import read_groups
from refract.teams.models import Team, TeamMember
from tests import make
from tests.conftest import make_settings
from tests.identity.browser import Browser
from tests.identity.issuer import CLIENT, Provider, provider_at_work, sign
from tests.people import Headers


@pytest.fixture
async def provider(clock: ManualClock) -> AsyncIterator[Provider]:
    async with provider_at_work(clock.now) as started:
        yield started


@pytest.fixture
def settings(database: str, tmp_path: Path, provider: Provider) -> Settings:
    issuers = {
        "work": Issuer(url=provider.url, client_id=CLIENT, groups_claim="groups"),
        "plain": Issuer(url=f"{provider.url}/plain", client_id=CLIENT),
    }
    return make_settings(tmp_path / "data", database_url=database, issuers=issuers)


@pytest.fixture
async def rt(rt: Runtime) -> AsyncIterator[Runtime]:
    yield rt
    await rt.close()


@pytest.fixture
async def crew(client: AsyncClient, rt: Runtime, root: User, as_root: Headers) -> Team:
    """A team that follows the group of engineers, and owns a link."""
    async with rt.db.write() as session:
        team = await make.team(session, rt, root)
        link = await make.link(session, rt, root, name="plan")
        who = make.who(root)
        await service.add_team(session, who, link.id, "crew", rt.clock.now(), primary=True)
    bound = await client.put(
        f"/api/v1/teams/{team.id}/group",
        headers=as_root,
        json={"issuer": "work", "group": "engineers"},
    )
    assert (bound.status_code, bound.json()["group"]) == (200, "engineers")
    return team


async def _sign_in(
    app: WebNode, provider: Provider, *, in_token: bool = False, **claims: Any
) -> None:
    """Sign in with claims in the ID token, or at the provider's userinfo endpoint."""
    browser = Browser(app)
    in_profile = {} if in_token else claims
    provider.profile = {"sub": "ada", "email": "ada@id.test", "email_verified": True, **in_profile}
    provider.id_token = lambda body: sign(body | (claims if in_token else {}), typ="JWT")
    try:
        sent = await browser.get("/auth/oidc/work", stop_at=provider.url)
        asked = parse_qs(urlsplit(sent.headers["location"]).query)
        provider.nonce = asked["nonce"][0]
        landed = await browser.get(f"/auth/oidc/work/callback?code=c&state={asked['state'][0]}")
        assert str(landed.url) == "http://go.test/"
    finally:
        await browser.close()


async def _state(rt: Runtime, provider: Provider) -> tuple[list[str], bool]:
    """Return the roles of the user in teams, and whether they own the link of the team."""
    async with rt.db.read() as session:
        user = (await session.scalars(select(User).where(User.issuer == provider.url))).one()
        mine = select(TeamMember.role).where(TeamMember.user_id == user.id)
        found = await queries.resolve_name(session, "plan")
        assert found is not None
        owns = await queries.is_owned_or_shared(session, found.target_id, user.id)
        return list(await session.scalars(mine)), owns


@pytest.mark.parametrize("in_token", [True, False], ids=["token", "userinfo"])
async def test_a_user_joins_and_leaves_with_the_claim(
    app: WebNode, rt: Runtime, provider: Provider, crew: Team, in_token: bool
) -> None:
    for groups, state in (
        (["sales"], ([], False)),
        (["sales", "engineers"], (["member"], True)),
        (["engineers"], (["member"], True)),
        (["Engineers"], ([], False)),
    ):
        await _sign_in(app, provider, in_token=in_token, groups=groups)
        assert await _state(rt, provider) == state


async def test_a_missing_claim_has_no_groups(
    app: WebNode, rt: Runtime, provider: Provider, crew: Team
) -> None:
    await _sign_in(app, provider, groups="engineers")
    assert await _state(rt, provider) == (["member"], True)
    await _sign_in(app, provider)
    assert await _state(rt, provider) == ([], False)


async def test_a_renamed_group_and_one_that_is_followed_no_longer(
    app: WebNode,
    client: AsyncClient,
    rt: Runtime,
    provider: Provider,
    crew: Team,
    as_root: Headers,
) -> None:
    path = f"/api/v1/teams/{crew.id}/group"
    await _sign_in(app, provider, groups=["engineers"])
    renamed = {"issuer": "work", "group": "builders"}
    assert (await client.put(path, headers=as_root, json=renamed)).status_code == 200
    await _sign_in(app, provider, groups=["engineers"])
    assert await _state(rt, provider) == ([], False)
    await _sign_in(app, provider, groups=["builders"])
    assert await _state(rt, provider) == (["member"], True)

    assert (await client.delete(path, headers=as_root)).status_code == 204
    await _sign_in(app, provider, groups=[])
    assert await _state(rt, provider) == (["member"], True)


@pytest.mark.parametrize("issuer", ["plain", "unknown"])
async def test_a_provider_without_groups_cannot_be_followed(
    client: AsyncClient, crew: Team, as_root: Headers, issuer: str
) -> None:
    response = await client.put(
        f"/api/v1/teams/{crew.id}/group", headers=as_root, json={"issuer": issuer, "group": "x"}
    )
    assert (response.status_code, response.json()["code"]) == (409, "UNKNOWN_GROUP_ISSUER")


@pytest.mark.parametrize(
    ("claim", "groups"),
    [
        (["a", "b", 3, None, ["c"]], {"a", "b"}),
        ("a", {"a"}),
        ({"a": {"1": "x"}, "b": {}}, {"a", "b"}),
        (None, set()),
        (7, set()),
    ],
)
def test_a_claim_is_read_in_every_shape(claim: Any, groups: set[str]) -> None:
    assert read_groups(claim) == groups
