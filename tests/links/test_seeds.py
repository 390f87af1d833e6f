"""Rules of the seeds that no other file here names."""

from typing import Any

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import DBAPIError

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.models import Link, LinkOwner, LinkTag, LinkTotals
from refract.links.schemas import LinkPatch
from refract.tags.models import Tag
from tests import make


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, tags=["Alpha"])


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (Link, {"status": "archived"}),
        (Link, {"visibility": "private"}),
        (Link, {"redirect_status": 303}),
        (User, {"status": "gone"}),
        (User, {"role": "owner"}),
    ],
)
async def test_seed_001_the_schema_itself_refuses_words_that_are_no_status(
    rt: Runtime, link: Link, model: Any, values: dict[str, Any]
) -> None:
    with pytest.raises(DBAPIError):
        async with rt.db.write() as session:
            await session.execute(update(model).values(**values))


@pytest.mark.parametrize("field", ["destination", "status", "created_at", "updated_at"])
async def test_seed_001_what_a_link_cannot_be_without_cannot_be_null(
    rt: Runtime, link: Link, field: str
) -> None:
    with pytest.raises(DBAPIError):
        async with rt.db.write() as session:
            await session.execute(update(Link).values(**{field: None}))


async def test_seed_002_references_are_enforced_on_every_database(
    rt: Runtime, ada: User, link: Link
) -> None:
    wrong: list[Any] = [
        insert(LinkOwner).values(link_id=link.id, user_id=99, created_at=rt.clock.now()),
        insert(LinkOwner).values(link_id=99, user_id=ada.id, created_at=rt.clock.now()),
        insert(LinkTag).values(link_id=link.id, tag_id=99),
    ]
    for statement in wrong:
        with pytest.raises(DBAPIError):
            async with rt.db.write() as session:
                await session.execute(statement)


async def test_seed_001_updated_at_moves_with_edits_and_never_with_clicks(
    rt: Runtime, clock: ManualClock, ada: User, link: Link
) -> None:
    clock.advance(60)
    async with rt.db.write() as session:
        session.add(
            LinkTotals(link_id=link.id, total_clicks=1, bot_clicks=0, last_clicked_at=clock.now())
        )
    async with rt.db.read() as session:
        assert (await session.get_one(Link, link.id)).updated_at == link.created_at
    async with rt.db.write() as session:
        held = await service.edit_link(
            session, make.space(rt), make.who(ada), link.id, LinkPatch(title="x")
        )
    assert held.link.updated_at == clock.now()
    assert held.link.created_at == link.created_at


async def test_seed_001_many_links_may_lead_to_the_same_destination(
    rt: Runtime, ada: User, bob: User, link: Link
) -> None:
    async with rt.db.write() as session:
        others = [await make.link(session, rt, user) for user in (ada, ada, bob)]
    assert len({one.id for one in (link, *others)}) == 4


async def _visible(rt: Runtime, user: User, *, admin: bool = False) -> set[str]:
    async with rt.db.read() as session:
        return set(
            await session.scalars(
                select(Tag.name).where(queries.is_visible_tag(make.who(user, admin=admin)))
            )
        )


async def test_seed_002_a_tag_is_shown_only_to_those_who_can_see_a_link_with_it(
    rt: Runtime, ada: User, bob: User, cleo: User, root: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, tags=["public"], visibility="public")
        secure = await make.link(session, rt, ada, tags=["secret project"], visibility="secure")
        await make.link(session, rt, bob, tags=["hers"])
        await service.share_link(session, make.who(ada), secure.id, cleo.email, rt.clock.now())

    assert await _visible(rt, ada) == {"Alpha", "public", "secret project"}
    assert await _visible(rt, bob) == {"public", "hers"}
    assert await _visible(rt, cleo) == {"public", "secret project"}
    assert await _visible(rt, root, admin=True) == {"Alpha", "public", "secret project", "hers"}


async def test_seed_002_a_tag_without_links_does_no_harm_and_is_hidden(
    rt: Runtime, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await service.edit_link(session, make.space(rt), make.who(ada), link.id, LinkPatch(tags=[]))
    assert await _visible(rt, ada) == set()
    async with rt.db.write() as session:
        await make.link(session, rt, ada, tags=["ALPHA"])
        await service.delete_link(session, make.who(ada), link.id, rt.clock.now())
    assert await _visible(rt, ada) == {"Alpha"}


async def test_seed_002_tags_are_one_vocabulary_for_everybody(
    rt: Runtime, ada: User, bob: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, bob, tags=["alpha"])
    async with rt.db.read() as session:
        assert [
            (tag.name, tag.usage_count, tag.owner_id) for tag in await session.scalars(select(Tag))
        ] == [("Alpha", 2, None)]
