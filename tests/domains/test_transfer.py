"""Domains in backups, moved databases, and exports and deletions of accounts."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from refract import migrations
from refract.clicks import stats
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.stats import StatsQuery
from refract.clicks.verify import reconcile
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.users import ensure_owner
from refract.links import service
from refract.lists import service as lists
from refract.lists.access import ListCaller
from refract.transfer.backup import create_backup
from refract.transfer.move import move_database
from tests import make
from tests.clicks.counting import FIREFOX
from tests.client import by_key, on_sqlite
from tests.conftest import make_settings
from tests.redirect.nodes import open_place
from tests.transfer.backups import NOW, restore_backup, silent
from tests.transfer.conftest import elsewhere

__all__ = ["elsewhere"]
HOSTS = ("", "sho.rt", "two.test")
PATHS = ("plan", "extra", "gone", "nothing", "", "Reading", "READING.rss")
Answers = dict[tuple[str, str], tuple[int, str | None]]


async def fill(rt: Runtime, owner: User) -> None:
    """The same name on three domains, one more name, a deleted link, and a list on a domain."""
    lost = "https://lost.example/"
    async with rt.db.write() as session:
        await make.domain(session, rt, "sho.rt", gone_destination="https://gone.example/")
        await make.domain(session, rt, "two.test", unknown_destination=lost)
        who, space = make.who(owner), make.space(rt)
        links = [
            await make.link(
                session, rt, owner, f"https://{host or 'default'}.example/plan",
                name="plan", domain=host,
            )
            for host in HOSTS
        ]  # fmt: skip
        await service.add_name(session, space, who, links[-1].id, "extra", host="sho.rt")
        gone = await make.link(session, rt, owner, name="gone", domain="sho.rt")
        await service.delete_link(session, who, gone.id, rt.clock.now())
        maker = ListCaller(owner.id)
        draft = await make.list_of(session, rt, maker, "https://example.com/", domain="sho.rt")
        await lists.set_draft_slug(session, space, maker, draft.id, "reading")
        await lists.publish_list(session, space, maker, draft.id)


async def follow(rt: Runtime) -> Answers:
    """Follow every address on every domain, as a new process."""
    found: Answers = {}
    async with open_place(rt) as place:
        for host in HOSTS:
            for path in PATHS:
                headers = {"Host": host or "go.test", "User-Agent": FIREFOX}
                answer = await place.get(f"/{path}", headers=headers)
                found[host, path] = answer.status_code, answer.headers.get("location")
    return found


async def count_clicks(rt: Runtime, owner: User) -> tuple[dict[str, int], list[Any]]:
    """Return the clicks by domain, and what `refract verify` finds."""
    await Ingester(rt).apply_all()
    async with rt.db.read() as session:
        found = await stats.get_overview_breakdown(
            session, owner.id, "domains", StatsQuery(), rt.clock.now()
        )
    return {item.value: item.clicks for item in found.items}, (await reconcile(rt)).drift


def on(rt: Runtime, db: Database, settings: Any) -> Runtime:
    return Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)


async def test_a_restored_backup_answers_on_every_domain(
    rt: Runtime, ada: User, elsewhere: tuple[Any, Database], tmp_path: Path
) -> None:
    await fill(rt, ada)
    before = await follow(rt)
    assert before["sho.rt", "plan"] == (302, "https://sho.rt.example/plan")
    assert before["sho.rt", "extra"] == (302, "https://two.test.example/plan")
    assert before["sho.rt", "gone"] == (302, "https://gone.example/")
    assert before["two.test", "gone"] == (302, "https://lost.example/")
    assert before["", "extra"][0] == before["", "Reading"][0] == 404
    counted = await count_clicks(rt, ada)
    assert counted == ({"/": 1, "sho.rt": 2, "two.test": 1}, [])
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)

    settings, db = elsewhere
    await restore_backup(settings, db, file)

    other = on(rt, db, settings)
    assert await count_clicks(other, ada) == counted
    assert await follow(other) == before


@pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
async def test_a_moved_database_answers_on_every_domain(rt: Runtime, tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "old")
    db = Database(settings)
    await migrations.upgrade(db)
    old = on(rt, db, settings)
    async with db.write() as session:
        owner, _ = await ensure_owner(session, old)
    await fill(old, owner)
    before, counted = await follow(old), await count_clicks(old, owner)

    await move_database(db, rt.db, silent)

    await db.close()
    assert await count_clicks(rt, owner) == counted
    assert await follow(rt) == before


@on_sqlite
async def test_a_deleted_account_leaves_domains_to_others(
    rt: Runtime,
    client: httpx.AsyncClient,
    ada: User,
    bob: User,
) -> None:
    await fill(rt, ada)
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada, *make.OWN))
        await make.link(session, rt, bob, "https://bob.example/", name="bobs", domain="sho.rt")
    document = (await client.get("/api/v1/me/export", headers=key)).json()
    exported = [
        (link["domain"], link["names"], link["other_names"])
        for link in document["links"]
        if link["status"] == "active"
    ]
    assert exported == [
        (None, ["plan"], []),
        ("sho.rt", ["plan"], []),
        ("two.test", ["plan"], ["sho.rt/extra"]),
    ]
    assert [found["domain"] for found in document["lists"]] == ["sho.rt"]

    assert (await client.delete("/api/v1/me", headers=key)).status_code == 204

    found = await follow(rt)
    for host in HOSTS:
        assert found[host, "plan"][0] in (404, 410) or found[host, "plan"][1] in (
            "https://gone.example/",
            "https://lost.example/",
        )
    async with open_place(rt) as place:
        kept = await place.get("/bobs", headers={"Host": "sho.rt"})
        assert kept.headers["location"] == "https://bob.example/"
