"""Owners' rows repeat columns of links; totals and tags repeat the primary owner."""

from datetime import timedelta

from sqlalchemy import select, update

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.links import service
from refract.links.enums import Visibility
from refract.links.jobs import AssignOwners, RepairCopies, assign_owners, repair_copies
from refract.links.models import COPIED_COLUMNS, NO_OWNER, Link, LinkOwner, LinkTag, LinkTotals
from refract.links.schemas import LinkPatch
from tests import make


async def _differing(rt: Runtime) -> set[int]:
    """Return the links of which an owner's row has something else."""
    query = select(Link, LinkOwner).join(LinkOwner, LinkOwner.link_id == Link.id)
    async with rt.db.read() as session:
        return {
            link.id
            for link, owner in await session.execute(query)
            if any(getattr(link, name) != getattr(owner, name) for name in COPIED_COLUMNS)
        }


async def test_copies_follow_every_change(rt: Runtime, clock: ManualClock) -> None:
    async with rt.db.write() as session:
        ada, bob = [await make.person(session, rt, name) for name in ("ada", "bob")]
        soon = clock.now() + timedelta(hours=1)
        links = [
            await make.link(session, rt, ada, f"https://example.com/{name}", expires_at=expires)
            for name, expires in (("edited", None), ("ended", soon), ("deleted", None))
        ]
        edited, _, deleted = [link.id for link in links]
    assert await _differing(rt) == set()

    clock.advance(5)
    async with rt.db.write() as session:
        session.add(make.co_owner(links[0], bob, clock.now()))
        patch = LinkPatch(visibility=Visibility.SECURE, title="New")
        await service.edit_link(session, make.space(rt), make.who(ada), edited, patch)
        await service.disable_link(session, make.who(ada), edited, clock.now())
        await service.delete_link(session, make.who(ada), deleted, clock.now())
    assert await _differing(rt) == set()

    clock.advance(3600)
    async with rt.db.write() as session:
        assert await service.mark_expired(session, clock.now()) == 1
    assert await _differing(rt) == set()
    async with rt.db.read() as session:
        of_bob = select(LinkOwner.status).where(LinkOwner.user_id == bob.id)
        assert list(await session.scalars(of_bob)) == ["disabled"]


async def test_a_job_repairs_copies_that_an_older_version_did_not_write(rt: Runtime) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        links = [
            await make.link(session, rt, ada, f"https://example.com/{number}")
            for number in range(5)
        ]
        first, second = links[0].id, links[3].id
        blank = update(LinkOwner).where(LinkOwner.link_id == first)
        await session.execute(blank.values(dict.fromkeys(COPIED_COLUMNS)))
        other = update(Link).where(Link.id == second).execution_options(synchronize_session=False)
        await session.execute(other.values(status="disabled"))
    assert await _differing(rt) == {first, second}

    async with rt.db.write() as session:
        assert await service.repair_copies(session, 0, limit=2) == links[1].id
    assert await _differing(rt) == {second}
    await repair_copies(rt, RepairCopies())
    assert await _differing(rt) == set()


async def _owners(rt: Runtime, link_id: int) -> tuple[set[int | None], set[int | None]]:
    """Return the owners that the totals and the tags of a link repeat."""
    async with rt.db.read() as session:
        found = [
            set(await session.scalars(select(model.owner_id).where(model.link_id == link_id)))
            for model in (LinkTotals, LinkTag)
        ]
    return found[0], found[1]


async def test_totals_and_tags_follow_the_primary_owner(rt: Runtime, clock: ManualClock) -> None:
    async with rt.db.write() as session:
        ada, bob = [await make.person(session, rt, name) for name in ("ada", "bob")]
        link = await make.link(session, rt, ada, tags=["x"])
        session.add(LinkTotals(link_id=link.id, total_clicks=3, bot_clicks=0))
    assert await _owners(rt, link.id) == ({None}, {ada.id})  # the ingester knows no owners
    await assign_owners(rt, AssignOwners())
    assert await _owners(rt, link.id) == ({ada.id}, {ada.id})

    async with rt.db.write() as session:
        await service.transfer_link(session, make.who(ada), link.id, bob.email, clock.now())
        patch = LinkPatch(tags=["y"])
        await service.edit_link(session, make.space(rt), make.who(bob), link.id, patch)
    assert await _owners(rt, link.id) == ({bob.id}, {bob.id})

    async with rt.db.write() as session:
        await service.hand_over_links(session, bob, clock.now())
    assert await _owners(rt, link.id) == ({ada.id}, {ada.id})

    async with rt.db.write() as session:
        await service.delete_link(session, make.who(ada), link.id, clock.now())
        clock.advance(3600)
        assert await service.purge_links(session, clock.now(), timedelta(minutes=1)) == 1
    assert await _owners(rt, link.id) == ({NO_OWNER}, set())


async def test_a_job_repairs_owners_that_an_older_version_did_not_write(rt: Runtime) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        missing, wrong = [await make.link(session, rt, ada, tags=["x"]) for _ in range(2)]
        session.add(LinkTotals(link_id=wrong.id, owner_id=7, total_clicks=3, bot_clicks=0))
        for link, owner_id in ((missing, None), (wrong, 7)):
            rows = update(LinkTag).where(LinkTag.link_id == link.id)
            await session.execute(rows.values(owner_id=owner_id))
    await assign_owners(rt, AssignOwners())
    assert await _owners(rt, missing.id) == (set(), {ada.id})
    assert await _owners(rt, wrong.id) == ({7}, {7})
    await repair_copies(rt, RepairCopies())
    assert await _owners(rt, wrong.id) == ({ada.id}, {ada.id})
