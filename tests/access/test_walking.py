"""Codes of unlisted links cannot be walked: every door counts what does not exist, by user and by network.

Security finding 8: `POST /resolve` had no limit in a browser session; 434 tries found a link. `GET /public/lists/…` had none at all.
"""

from pathlib import Path

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.conftest import make_settings
from tests.people import ada, bob

__all__ = ["ada", "bob"]
pytestmark = on_sqlite
ALLOWED = 5
PAGE = {"Accept": "text/html"}
DOORS = {
    "resolve": ("POST", "/api/v1/resolve", {}),
    "follow": ("GET", "/nothing{}", {}),
    "preview": ("GET", "/nothing{}+", PAGE),
    "qr": ("GET", "/nothing{}.qr", {}),
    "names": ("GET", "/api/v1/names/nothing{}", {}),
    "list names": ("GET", "/app/lists/availability?slug=nothing{}", {}),
    "public lists": ("GET", "/api/v1/public/lists/nothing{}", {}),
    "omnibox": ("POST", "/app/omnibox", {}),
    "go": ("GET", "/app/go?q=nothing{}", {}),
}
FOR_STRANGERS = [door for door in DOORS if door not in ("resolve", "omnibox", "go")]
FOR_USERS = [door for door in DOORS if door not in ("list names", "public lists")]


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        misses_per_minute=ALLOWED,
        trusted_proxies=["127.0.0.0/8"],
    )


async def _knock(
    client: AsyncClient, door: str, number: int, headers: dict[str, str], *, network: int = 0
) -> int:
    method, path, more = DOORS[door]
    sent = (
        {"json": {"path": f"nothing{number}"}}
        if door == "resolve"
        else {"data": {"q": f"nothing{number}"}}
        if method == "POST"
        else {}
    )
    told = headers | more | {"X-Forwarded-For": f"198.51.{network}.7"}
    return (await client.request(method, path.format(number), headers=told, **sent)).status_code  # type: ignore[arg-type]


@pytest.mark.parametrize("door", FOR_STRANGERS)
async def test_a_network_of_strangers_is_stopped(client: AsyncClient, door: str) -> None:
    statuses = [await _knock(client, door, number, {}) for number in range(ALLOWED + 1)]

    assert 429 not in statuses[:ALLOWED]
    assert statuses[ALLOWED] == 429
    assert await _knock(client, door, 0, {}, network=1) != 429


@pytest.mark.parametrize("door", FOR_USERS)
async def test_a_browser_session_is_stopped_from_wherever_it_asks(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, door: str
) -> None:
    async with rt.db.write() as session:
        mine, other = [
            by_cookie(rt, await make.cookie(session, rt, person)) for person in (ada, bob)
        ]

    statuses = [
        await _knock(client, door, number, mine, network=number) for number in range(ALLOWED + 1)
    ]

    assert 429 not in statuses[:ALLOWED]
    assert statuses[ALLOWED] == 429
    assert await _knock(client, door, 0, other, network=100) != 429


async def test_all_doors_share_one_budget_and_what_exists_is_answered(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        await make.link(session, rt, ada, name="real")

    statuses = [await _knock(client, door, 0, mine) for door in FOR_USERS]
    assert statuses.count(429) == len(FOR_USERS) - ALLOWED
    assert (await client.get("/real")).status_code == 302
    assert (await client.post("/api/v1/resolve", headers=mine, json={"path": "real"})).json()[
        "outcome"
    ] == "redirect"


async def test_looking_up_addresses_is_limited(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    """Security finding 15: sharing told anybody, without a limit, which addresses have an account."""
    async with rt.db.write() as session:
        mine = by_cookie(rt, await make.cookie(session, rt, ada))
        link = await make.link(session, rt, ada)
    doors = [f"/api/v1/links/{link.id}/{door}" for door in ("shares", "owners", "transfer")]

    statuses = [
        (
            await client.post(doors[n % 3], headers=mine, json={"email": f"nobody{n}@example.com"})
        ).status_code
        for n in range(101)
    ]
    assert set(statuses[:100]) == {404}
    assert statuses[100] == 429
    for door in (*doors, f"/app/links/{link.id}/shares"):
        known = (
            await client.post(door, headers=mine, json={"email": bob.email})
            if "api" in door
            else None
        )
        known = known or await client.post(door, headers=mine, data={"email": bob.email})
        assert known.status_code == 429
