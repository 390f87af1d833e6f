"""Links with rules, cards, passwords and QR styles work after a backup and a move as before."""

from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract import migrations
from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.links.campaigns.queries import list_templates
from refract.links.campaigns.schemas import UtmTemplateCreate
from refract.links.campaigns.service import create_template
from refract.transfer.backup import create_backup
from refract.transfer.move import move_database
from tests import make
from tests.transfer.backups import NOW, restore_backup, silent

PHONE = {"User-Agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Mobile/15E148"}
CRAWLER = {"User-Agent": "Twitterbot/1.0"}
GIVEN: dict[str, Any] = {
    "rules": [
        {
            "destination": "https://phone.example/{1=x}",
            "conditions": {"devices": ["mobile"], "before": "2090-01-01T00:00:00Z"},
        }
    ],
    "preview_card": {"title": "Pläne ‹2027›", "image_url": "https://cdn.example/plans.png"},
    "qr_style": {"color": "#1d4ed8", "shape": "dots"},
}
NEWS = {"utm_source": "newsletter", "utm_medium": "Grüße & more"}


async def _plant(settings: Settings, db: Database) -> None:
    await migrations.upgrade(db)
    async with open_runtime(settings, db=db) as rt, rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        await make.link(session, rt, ada, "https://desk.example/", name="open", **GIVEN)
        await make.link(
            session, rt, ada, "https://desk.example/", name="locked", password="sesame!", **GIVEN
        )
        crew = await make.team(session, rt, ada)
        for team in (None, crew.slug):
            new = UtmTemplateCreate(name="News", team=team, **NEWS)
            await create_template(session, ada, new, rt.clock.now())


@pytest.mark.parametrize(
    ("database", "way"),
    [
        ("sqlite", "backup"),
        *((server, way) for server in ("postgresql", "mysql") for way in ("backup", "move")),
    ],
    indirect=["database"],
)
async def test_links_decide_as_before(
    way: str,
    rt: Runtime,
    client: AsyncClient,
    elsewhere: tuple[Settings, Database],
    tmp_path: Path,
) -> None:
    settings, db = elsewhere
    await _plant(settings, db)
    if way == "backup":
        file = tmp_path / "backup.zip"
        await create_backup(settings, db, file, NOW, silent)
        await restore_backup(rt.settings, rt.db, file)
    else:
        await move_database(db, rt.db, silent)

    assert (await client.get("/open", headers=PHONE)).headers["location"] == (
        "https://phone.example/x"
    )
    assert (await client.get("/open")).headers["location"] == "https://desk.example/"
    assert "Pläne ‹2027›" in (await client.get("/open", headers=CRAWLER)).text
    assert "#1d4ed8" in (await client.get("/open.qr")).text
    async with rt.db.read() as session:
        ada = await session.scalar(select(User.id).where(User.email == "ada@example.com"))
        templates = await list_templates(session, ada or 0)
    assert [(found.team is None, found.values) for found in templates] == [
        (True, NEWS),
        (False, NEWS),
    ]
    for headers in (PHONE, CRAWLER):
        asked = await client.get("/locked", headers=headers)
        assert (asked.status_code, asked.json()["code"]) == (403, "LINK_PASSWORD_REQUIRED")
    wrong = await client.post("/locked", data={"password": "sesame"})
    assert wrong.json()["code"] == "WRONG_LINK_PASSWORD"
    right = await client.post("/locked", data={"password": "sesame!"}, headers=PHONE)
    assert right.json()["destination"] == "https://phone.example/x"
