"""Who may create teams: administrators, unless the setting says everyone."""

from pathlib import Path

import pytest
from httpx import AsyncClient

from refract.core.settings.model import Settings
from tests.client import on_sqlite
from tests.conftest import make_settings
from tests.people import Headers

pytestmark = on_sqlite


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database)


async def test_only_administrators_create_teams_by_default(
    client: AsyncClient, as_ada: Headers, as_root: Headers
) -> None:
    refused = await client.post("/api/v1/teams", headers=as_ada, json={"name": "Crew"})
    made = await client.post("/api/v1/teams", headers=as_root, json={"name": "Crew"})

    assert refused.json()["code"] == "TEAM_CREATION_FORBIDDEN"
    assert made.status_code == 201


async def test_the_page_offers_what_one_may_do(
    client: AsyncClient, as_ada: Headers, as_root: Headers
) -> None:
    ours = (await client.get("/app/teams", headers=as_ada)).text
    theirs = (await client.get("/app/teams", headers=as_root)).text

    assert "Ask an administrator" in ours
    assert "Create team" not in ours
    assert "Create team" in theirs
