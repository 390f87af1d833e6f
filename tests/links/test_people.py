"""Owners, shares, and handing over links."""

from typing import Any

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import DBAPIError

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.access import AccessRight
from refract.identity.errors import AmbiguousEmail, UserNotFound
from refract.identity.models import User, UserStatus
from refract.links import queries, service
from refract.links.access import load_access
from refract.links.changes import CHANGES_TOPIC, TargetChange
from refract.links.enums import LinkState
from refract.links.errors import (
    LinkNotFound,
    NotOwner,
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    PrimaryOwnerRequired,
    ShareExists,
    ShareNotFound,
)
from refract.links.models import Link, LinkOwner, LinkShare
from refract.links.schemas import LinkPatch
from refract.tags.models import Tag
from tests import make


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, name="roadmap", tags=["Alpha"])


async def _owners(rt: Runtime, link: Link) -> list[tuple[int, bool]]:
    async with rt.db.read() as session:
        return [
            (user.id, owner.is_primary)
            for owner, user in await queries.list_owners(session, link.id)
        ]


async def _call(
    rt: Runtime, function: Any, user: User, link: Link, value: Any, *, admin: bool = False
) -> None:
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            await function(session, make.who(user, admin=admin), link.id, value, rt.clock.now())
    assert [change.target_id for change in heard] == [link.id]


async def test_seed_002_ownership_lives_in_a_table_of_its_own(
    rt: Runtime, ada: User, link: Link
) -> None:
    assert not [
        column.name
        for column in Link.__table__.columns
        if "owner" in column.name or "user" in column.name
    ]
    assert await _owners(rt, link) == [(ada.id, True)]


async def test_seed_002_a_co_owner_is_added_by_email_and_may_do_everything_but_transfer(
    rt: Runtime, ada: User, bob: User, cleo: User, link: Link
) -> None:
    await _call(rt, service.add_owner, ada, link, " BOB@example.com ")
    await _call(rt, service.add_owner, bob, link, cleo.email)

    assert await _owners(rt, link) == [(ada.id, True), (bob.id, False), (cleo.id, False)]
    async with rt.db.write() as session:
        await service.edit_link(
            session, make.space(rt), make.who(bob), link.id, LinkPatch(title="ours")
        )
        await service.disable_link(session, make.who(cleo), link.id, rt.clock.now())
    with pytest.raises(PrimaryOwnerRequired):
        await _call(rt, service.transfer_link, bob, link, bob.email)


async def test_seed_002_adding_an_owner_twice_is_refused(
    rt: Runtime, ada: User, bob: User, link: Link
) -> None:
    await _call(rt, service.add_owner, ada, link, bob.email)
    for email in (bob.email, ada.email):
        with pytest.raises(OwnerExists) as refused:
            await _call(rt, service.add_owner, ada, link, email)
        assert (refused.value.status, refused.value.code) == (409, "OWNER_EXISTS")


async def test_people_are_found_by_the_verified_address_of_one_active_person(
    rt: Runtime, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await make.person(session, rt, "unverified", email_verified=False)
        await make.person(session, rt, "suspended", status=UserStatus.SUSPENDED)
        await make.person(session, rt, "twin-1", email="twin@example.com")
        await make.person(session, rt, "twin-2", email="Twin@example.com")
    for function in (service.add_owner, service.share_link, service.transfer_link):
        for email in ("unverified@example.com", "suspended@example.com", "nobody@example.com"):
            with pytest.raises(UserNotFound):
                await _call(rt, function, ada, link, email)
        with pytest.raises(AmbiguousEmail):
            await _call(rt, function, ada, link, "twin@example.com")
    assert await _owners(rt, link) == [(ada.id, True)]


async def test_seed_002_the_schema_allows_one_primary_owner_only(
    rt: Runtime, ada: User, bob: User, link: Link
) -> None:
    async with rt.db.write() as session:
        other = await make.link(session, rt, ada)
    for primary in (link.id, other.id):  # a second primary owner; the id of another link
        with pytest.raises(DBAPIError, match="primary_link_id"):
            async with rt.db.write() as session:
                row = {
                    "link_id": link.id,
                    "user_id": bob.id,
                    "primary_link_id": primary,
                    "added_by": None,
                    "created_at": rt.clock.now(),
                }
                await session.execute(insert(LinkOwner).values(**row))


async def test_seed_002_the_primary_owner_cannot_be_removed(
    rt: Runtime, ada: User, bob: User, root: User, link: Link
) -> None:
    await _call(rt, service.add_owner, ada, link, bob.email)
    for user, admin in ((ada, False), (bob, False), (root, True)):
        with pytest.raises(PrimaryOwnerProtected) as refused:
            await _call(rt, service.remove_owner, user, link, ada.id, admin=admin)
        assert refused.value.status == 409
    assert await _owners(rt, link) == [(ada.id, True), (bob.id, False)]


async def test_a_co_owner_can_be_removed_or_step_down(
    rt: Runtime, ada: User, bob: User, cleo: User, link: Link
) -> None:
    await _call(rt, service.add_owner, ada, link, bob.email)
    await _call(rt, service.add_owner, ada, link, cleo.email)
    await _call(rt, service.remove_owner, bob, link, cleo.id)
    await _call(rt, service.remove_owner, bob, link, bob.id)

    assert await _owners(rt, link) == [(ada.id, True)]
    with pytest.raises(OwnerNotFound):
        await _call(rt, service.remove_owner, ada, link, bob.id)
    with pytest.raises(LinkNotFound):
        await _call(rt, service.remove_owner, bob, link, ada.id)


async def test_the_primary_mark_moves_only_by_transfer(
    rt: Runtime, ada: User, bob: User, cleo: User, root: User, link: Link
) -> None:
    await _call(rt, service.transfer_link, ada, link, bob.email)  # to someone who did not own it
    assert await _owners(rt, link) == [(bob.id, True), (ada.id, False)]
    with pytest.raises(OwnerExists):
        await _call(rt, service.transfer_link, bob, link, bob.email)
    await _call(rt, service.transfer_link, bob, link, ada.email)  # to a co-owner
    assert await _owners(rt, link) == [(ada.id, True), (bob.id, False)]
    await _call(rt, service.transfer_link, root, link, cleo.email, admin=True)
    assert await _owners(rt, link) == [(cleo.id, True), (ada.id, False), (bob.id, False)]


async def test_seed_002_a_share_lets_somebody_look_and_nothing_else(
    rt: Runtime, ada: User, bob: User, cleo: User, link: Link
) -> None:
    with pytest.raises(LinkNotFound):
        async with rt.db.read() as session:
            await queries.view_link(session, make.who(bob), link.id)
    await _call(rt, service.share_link, ada, link, bob.email)

    async with rt.db.read() as session:
        _, standing = await queries.view_link(session, make.who(bob), link.id, AccessRight.STATS)
        assert [standing.allows(right) for right in AccessRight] == [
            True,
            True,
            False,
            False,
            False,
        ]
    with pytest.raises(NotOwner):
        await _call(rt, service.share_link, bob, link, cleo.email)
    with pytest.raises(ShareExists):
        await _call(rt, service.share_link, ada, link, bob.email)
    with pytest.raises(OwnerExists):
        await _call(rt, service.share_link, ada, link, ada.email)
    await _call(rt, service.unshare_link, ada, link, bob.id)
    with pytest.raises(ShareNotFound):
        await _call(rt, service.unshare_link, ada, link, bob.id)
    with pytest.raises(LinkNotFound):
        async with rt.db.read() as session:
            await queries.view_link(session, make.who(bob), link.id)


async def test_whoever_becomes_an_owner_needs_no_share_any_more(
    rt: Runtime, ada: User, bob: User, cleo: User, link: Link
) -> None:
    await _call(rt, service.share_link, ada, link, bob.email)
    await _call(rt, service.share_link, ada, link, cleo.email)
    await _call(rt, service.add_owner, ada, link, bob.email)
    await _call(rt, service.transfer_link, ada, link, cleo.email)

    async with rt.db.read() as session:
        assert (await session.scalars(select(LinkShare))).all() == []


async def test_seed_002_the_capability_table(
    rt: Runtime, ada: User, bob: User, cleo: User, root: User, link: Link
) -> None:
    async with rt.db.write() as session:
        other = await make.person(session, rt, "other")
        await service.add_owner(session, make.who(ada), link.id, bob.email, rt.clock.now())
        await service.share_link(session, make.who(ada), link.id, cleo.email, rt.clock.now())
    rights = {}
    async with rt.db.write() as session:
        row = await session.get_one(Link, link.id)
        for visibility in ("unlisted", "secure", "public"):
            row.visibility = visibility
            await session.flush()
            for user in (ada, bob, cleo, other, root):
                standing = await load_access(session, make.who(user, admin=user is root), row)
                rights[visibility, user.display_name] = "".join(
                    right.name[0] for right in AccessRight if standing.allows(right)
                )
    for visibility in ("unlisted", "secure", "public"):
        assert [rights[visibility, name] for name in ("Ada", "Bob", "Cleo", "Root")] == [
            "VSEMT",
            "VSEM",
            "VS",
            "VSEMT",
        ]
    assert [rights[visibility, "Other"] for visibility in ("unlisted", "secure", "public")] == [
        "",
        "",
        "V",
    ]


async def test_an_administrator_without_the_scope_is_like_anybody(
    rt: Runtime, root: User, link: Link
) -> None:
    with pytest.raises(LinkNotFound):
        async with rt.db.read() as session:
            await queries.view_link(session, make.who(root, admin=False), link.id)


# -- leaving


async def test_seed_001_when_somebody_leaves_their_links_pass_on_or_are_deleted(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, cleo: User, link: Link
) -> None:
    async with rt.db.write() as session:
        shared = await make.link(session, rt, ada, name="ours", tags=["Alpha"])
        foreign = await make.link(session, rt, cleo, name="hers")
        clock.advance(1)
        await service.add_owner(session, make.who(ada), shared.id, cleo.email, clock.now())
        clock.advance(1)
        await service.add_owner(session, make.who(ada), shared.id, bob.email, clock.now())
        await service.add_owner(session, make.who(cleo), foreign.id, ada.email, clock.now())
        await service.share_link(session, make.who(cleo), foreign.id, bob.email, clock.now())
    async with rt.db.write() as session:
        received = await make.link(session, rt, bob)
        await service.share_link(session, make.who(bob), received.id, ada.email, clock.now())
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            await service.hand_over_links(session, ada, clock.now())

    assert {change.target_id for change in heard} == {link.id, shared.id, foreign.id}
    assert await _owners(rt, shared) == [(cleo.id, True), (bob.id, False)]
    assert await _owners(rt, foreign) == [(cleo.id, True)]
    assert await _owners(rt, link) == [(ada.id, True)]
    async with rt.db.read() as session:
        states = {row.id: row.state_at(clock.now()) for row in await session.scalars(select(Link))}
        shares = [
            (share.link_id, share.user_id) for share in await session.scalars(select(LinkShare))
        ]
        uses = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
        last = (await queries.list_versions(session, link.id, 1))[0]
    assert states == {
        link.id: LinkState.DELETED,
        shared.id: LinkState.ACTIVE,
        foreign.id: LinkState.ACTIVE,
        received.id: LinkState.ACTIVE,
    }
    assert shares == [(foreign.id, bob.id)]
    assert uses == {"Alpha": 1}
    assert last.action == "deleted"


async def test_seed_002_an_heir_gets_what_would_be_deleted(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, cleo: User, link: Link
) -> None:
    async with rt.db.write() as session:
        shared = await make.link(session, rt, ada)
        await service.add_owner(session, make.who(ada), shared.id, cleo.email, clock.now())
        await service.share_link(session, make.who(ada), link.id, bob.email, clock.now())
        await service.hand_over_links(session, ada, clock.now(), heir=bob)

    assert await _owners(rt, link) == [(bob.id, True)]
    assert await _owners(rt, shared) == [(cleo.id, True)]
    async with rt.db.read() as session:
        assert (await session.get_one(Link, link.id)).state_at(clock.now()) is LinkState.ACTIVE
        assert (await session.scalars(select(LinkShare))).all() == []


async def test_an_heir_keeps_the_shares_of_links_that_pass_to_others(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, cleo: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await service.add_owner(session, make.who(ada), link.id, cleo.email, clock.now())
        await service.share_link(session, make.who(ada), link.id, bob.email, clock.now())
        await service.hand_over_links(session, ada, clock.now(), heir=bob)

    assert await _owners(rt, link) == [(cleo.id, True)]
    async with rt.db.read() as session:
        assert [share.user_id for share in await session.scalars(select(LinkShare))] == [bob.id]


async def test_hundreds_of_links_are_handed_over(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        wishes = [await make.new_link(rt, f"https://example.com/{number}") for number in range(450)]
        await service.create_links(session, rt, ada, wishes, charged=False)
    async with rt.db.write() as session:
        await service.hand_over_links(session, ada, clock.now(), heir=bob)
    async with rt.db.read() as session:
        assert set(await session.scalars(select(LinkOwner.user_id))) == {bob.id}
