from refract.core.runtime import Runtime
from refract.core.page import Cursors
from refract.links import service, queries
from refract.links.schemas import LinkPatch
from tests import make

async def test_smoke(rt: Runtime) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        bob = await make.person(session, rt, "bob")
        link = await make.link(session, rt, ada, names=["Road_Map", "rm"], tags=["Engineering Tools", "x"], title="T")
    async with rt.db.write() as session:
        held = await service.edit_link(session, make.space(rt), make.who(ada), link.id, LinkPatch(title="New", tags=["y"]))
        await service.add_owner(session, make.who(ada), link.id, "bob@example.com", rt.clock.now())
        await service.add_name(session, make.space(rt), make.who(ada), link.id, "other")
        card = await queries.card_of(session, held.link)
        print(card.shown("http://go.test", rt.clock.now()).model_dump_json(indent=1))
    async with rt.db.read() as session:
        for sort in queries.Sort:
            page = await queries.page_of_links(session, Cursors(rt.secret), make.who(ada), queries.LinkQuestion(sort=sort, q="road"), rt.clock.now(), limit=2, cursor=None)
            assert len(page.items) == 1
        print(await queries.did_you_mean(session, "roadmp", make.who(ada), rt.clock.now()))
        print(await queries.resolve(session, "road-map."))
    async with rt.db.write() as session:
        await service.hand_over_links(session, ada, rt.clock.now())
