"""Revision 0039 keeps every address of the default domain, there and back."""

from sqlalchemy import text

from refract import migrations
from refract.core.runtime import Runtime
from refract.lists import service as lists
from refract.lists.access import ListCaller
from tests import make
from tests.redirect.nodes import open_place

READ = text("SELECT name, kind, target_id, head, held_until, generated FROM names ORDER BY name")


async def _read(rt: Runtime) -> list[tuple[object, ...]]:
    async with rt.db.engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(READ)]


async def test_every_address_stays(rt: Runtime) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        links = [
            await make.link(session, rt, ada, f"https://example.com/{name}", name=name)
            for name in ("Road_Map", "a", "x" * 50)
        ]
        links.append(await make.link(session, rt, ada))
        who = ListCaller(ada.id)
        found = await make.list_of(session, rt, who, "https://example.com/")
        await lists.set_draft_slug(session, make.space(rt), who, found.id, "reading")
        await lists.publish_list(session, make.space(rt), who, found.id)
    before = await _read(rt)
    async with rt.db.write() as session:
        await make.domain(session, rt)
        await make.link(session, rt, ada, name="Road_Map", domain="sho.rt")
    assert len(await _read(rt)) == len(before) + 1

    await migrations.downgrade(rt.db, "0038")
    assert await _read(rt) == before
    await migrations.upgrade(rt.db)

    assert await _read(rt) == before
    async with open_place(rt) as place:
        for path in ("/road-map", "/A", f"/{'x' * 50}", f"/{links[-1].code}"):
            assert (await place.get(path)).status_code == 302, path
        assert (await place.get("/reading")).status_code == 200
        assert (await place.get("/road-map", headers={"Host": "sho.rt"})).status_code == 421
