"""The states of a link: active ⇄ disabled, expired by time, soft-deleted; and undo."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.errors import InvalidStateTransition, NothingToUndo, RefractError, VersionMismatch
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.changes import CHANGES_TOPIC, TargetChange
from refract.links.enums import LinkState
from refract.links.errors import ChangedByAdmin, ExpiryInPast, LinkNotFound, RenewalRequired
from refract.links.models import Link, LinkChange
from refract.links.schemas import LinkPatch
from refract.links.service import LockedLink
from refract.names.enums import NameTarget
from refract.names.queries import list_names
from refract.tags.models import Tag
from tests import make

HOUR = timedelta(hours=1)


async def _do(
    rt: Runtime, user: User, action: str, link: Link, *args: Any, admin: bool = False
) -> LockedLink:
    """Run a call in its own transaction, and check that its change was published."""
    verbs: dict[str, Callable[..., Awaitable[LockedLink]]] = {
        "disable": service.disable_link,
        "enable": service.enable_link,
        "renew": service.renew_link,
        "delete": service.delete_link,
    }
    who = make.who(user, admin=admin)
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            before = (await session.get_one(Link, link.id)).version
            if action == "undo":
                held = await service.undo_link(session, make.space(rt), who, link.id)
            elif action == "edit":
                held = await service.edit_link(session, make.space(rt), who, link.id, *args)
            else:
                held = await verbs[action](session, who, link.id, rt.clock.now(), *args)
    told = [(change.target_id, change.version) for change in heard]
    assert told == ([(link.id, held.link.version)] if held.link.version != before else [])
    return held


async def _state(rt: Runtime, link: Link) -> LinkState:
    async with rt.db.read() as session:
        return (await session.get_one(Link, link.id)).state_at(rt.clock.now())


async def _link(rt: Runtime, owner: User, **given: Any) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, owner, **given)


async def test_seed_001_active_and_disabled_go_both_ways(rt: Runtime, ada: User) -> None:
    link = await _link(rt, ada)

    await _do(rt, ada, "disable", link)
    assert await _state(rt, link) is LinkState.DISABLED
    await _do(rt, ada, "enable", link)
    assert await _state(rt, link) is LinkState.ACTIVE


async def test_seed_001_expiry_is_a_matter_of_time_alone(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    link = await _link(rt, ada, expires_at=clock.now() + HOUR)

    clock.advance(3599)
    assert await _state(rt, link) is LinkState.ACTIVE
    clock.advance(1)
    assert await _state(rt, link) is LinkState.EXPIRED
    async with rt.db.read() as session:
        assert (await session.get_one(Link, link.id)).status == "active"  # no job has run


@pytest.mark.parametrize("state", list(LinkState))
async def test_seed_001_any_state_can_be_deleted(
    rt: Runtime, clock: ManualClock, ada: User, state: LinkState
) -> None:
    link = await _link(
        rt, ada, name="kept", expires_at=clock.now() + HOUR if state is LinkState.EXPIRED else None
    )
    if state is LinkState.DISABLED:
        await _do(rt, ada, "disable", link)
    if state is LinkState.DELETED:
        await _do(rt, ada, "delete", link)
    clock.advance(3600)

    await _do(rt, ada, "delete", link)

    assert await _state(rt, link) is LinkState.DELETED
    async with rt.db.read() as session:
        assert await list_names(session, NameTarget.LINK, [link.id]) == {
            link.id: ["kept"]
        }  # until released or purged


@pytest.mark.parametrize(
    ("state", "wish", "error"),
    [
        (LinkState.ACTIVE, "enable", InvalidStateTransition),
        (LinkState.DISABLED, "disable", InvalidStateTransition),
        (LinkState.EXPIRED, "disable", InvalidStateTransition),
        (LinkState.EXPIRED, "enable", InvalidStateTransition),
        (LinkState.DELETED, "disable", InvalidStateTransition),
        (LinkState.DELETED, "enable", InvalidStateTransition),
        (LinkState.DELETED, "renew", InvalidStateTransition),
        (LinkState.DELETED, "edit", InvalidStateTransition),
    ],
)
async def test_other_changes_of_state_are_refused_naming_the_state_and_what_is_allowed(
    rt: Runtime,
    clock: ManualClock,
    ada: User,
    state: LinkState,
    wish: str,
    error: type[RefractError],
) -> None:
    link = await _link(
        rt, ada, expires_at=clock.now() + HOUR if state is LinkState.EXPIRED else None
    )
    if state is LinkState.DISABLED:
        await _do(rt, ada, "disable", link)
    if state is LinkState.DELETED:
        await _do(rt, ada, "delete", link)
    clock.advance(3600)

    with pytest.raises(error) as refused:
        await _do(rt, ada, wish, link, *([LinkPatch(title="x")] if wish == "edit" else []))

    assert refused.value.status == 409
    assert f"The link is {state} and" in refused.value.message
    assert "Allowed now: " in refused.value.message
    assert await _state(rt, link) is state


async def test_disabled_and_past_expiry_is_disabled_and_must_be_renewed_before_it_is_enabled(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    link = await _link(rt, ada, expires_at=clock.now() + HOUR)
    await _do(rt, ada, "disable", link)
    clock.advance(3600)
    assert await _state(rt, link) is LinkState.DISABLED

    with pytest.raises(RenewalRequired):
        await _do(rt, ada, "enable", link)
    await _do(rt, ada, "renew", link, clock.now() + HOUR)
    assert await _state(rt, link) is LinkState.DISABLED
    await _do(rt, ada, "enable", link)
    assert await _state(rt, link) is LinkState.ACTIVE


async def test_seed_002_renewing_clears_the_expiry_and_doing_it_again_changes_nothing(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    link = await _link(rt, ada, expires_at=clock.now() + HOUR)
    clock.advance(7200)

    first = await _do(rt, ada, "renew", link)
    second = await _do(rt, ada, "renew", link)

    assert await _state(rt, link) is LinkState.ACTIVE
    assert (first.link.version, second.link.version, second.link.expires_at) == (2, 2, None)
    with pytest.raises(ExpiryInPast):
        await _do(rt, ada, "renew", link, clock.now())


async def test_a_row_marked_as_expired_wakes_up_when_it_is_renewed(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    link = await _link(rt, ada, expires_at=clock.now() + HOUR)
    clock.advance(3600)
    async with rt.db.write() as session:
        assert await service.mark_expired(session, clock.now()) == 1

    await _do(rt, ada, "edit", link, LinkPatch(expires_at=clock.now() + HOUR))

    assert await _state(rt, link) is LinkState.ACTIVE
    clock.advance(3600)
    assert await _state(rt, link) is LinkState.EXPIRED


async def test_what_an_administrator_disabled_only_an_administrator_enables(
    rt: Runtime, ada: User, root: User
) -> None:
    link = await _link(rt, ada)
    await _do(rt, root, "disable", link, admin=True)

    with pytest.raises(ChangedByAdmin):
        await _do(rt, ada, "enable", link)
    with pytest.raises(ChangedByAdmin):
        await _do(rt, ada, "undo", link)
    assert await _state(rt, link) is LinkState.DISABLED

    await _do(rt, ada, "edit", link, LinkPatch(title="still mine"))
    with pytest.raises(ChangedByAdmin):
        await _do(rt, ada, "enable", link)
    await _do(rt, root, "enable", link, admin=True)
    assert await _state(rt, link) is LinkState.ACTIVE


async def test_an_administrator_can_close_what_its_owner_has_disabled(
    rt: Runtime, ada: User, root: User
) -> None:
    link = await _link(rt, ada)
    await _do(rt, ada, "disable", link)
    await _do(rt, root, "disable", link, admin=True)

    with pytest.raises(ChangedByAdmin):
        await _do(rt, ada, "enable", link)
    with pytest.raises(InvalidStateTransition):
        await _do(rt, root, "disable", link, admin=True)


async def test_deleting_and_undoing_cannot_free_what_an_administrator_disabled(
    rt: Runtime, ada: User, root: User
) -> None:
    link = await _link(rt, ada)
    await _do(rt, root, "disable", link, admin=True)
    await _do(rt, ada, "delete", link)
    await _do(rt, ada, "undo", link)

    assert await _state(rt, link) is LinkState.DISABLED
    with pytest.raises(ChangedByAdmin):
        await _do(rt, ada, "enable", link)


# -- undo


@pytest.mark.parametrize("action", ["delete", "disable", "edit"])
async def test_the_latest_delete_disable_or_edit_can_be_undone(
    rt: Runtime, clock: ManualClock, ada: User, action: str
) -> None:
    link = await _link(
        rt,
        ada,
        name="roadmap",
        tags=["Alpha", "beta"],
        title="Old",
        expires_at=clock.now() + 10 * HOUR,
    )
    patch = LinkPatch(title="New", tags=["gamma"], redirect_status=301, expires_at=None)
    await _do(rt, ada, action, link, *([patch] if action == "edit" else []))
    clock.advance(3600)

    held = await _do(rt, ada, "undo", link)

    async with rt.db.read() as session:
        shown = (await queries.load_card(session, await session.get_one(Link, link.id))).to_schema(
            "", clock.now()
        )
        uses = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
    assert (shown.title, shown.tags, shown.redirect_status, shown.status) == (
        "Old",
        ["Alpha", "beta"],
        302,
        LinkState.ACTIVE,
    )
    assert shown.expires_at == link.expires_at
    assert held.link.version == 3
    assert {name: count for name, count in uses.items() if count} == {"Alpha": 1, "beta": 1}


async def test_undo_is_honoured_for_24_hours(rt: Runtime, clock: ManualClock, ada: User) -> None:
    link = await _link(rt, ada)
    await _do(rt, ada, "delete", link)
    clock.advance(86_401)

    with pytest.raises(NothingToUndo):
        await _do(rt, ada, "undo", link)
    clock.advance(-1)
    await _do(rt, ada, "undo", link)
    assert await _state(rt, link) is LinkState.ACTIVE


async def test_undo_reaches_only_the_latest_change_and_only_once(rt: Runtime, ada: User) -> None:
    link = await _link(rt, ada, name="one")
    with pytest.raises(NothingToUndo):
        await _do(rt, ada, "undo", link)
    await _do(rt, ada, "edit", link, LinkPatch(title="a"))
    await _do(rt, ada, "edit", link, LinkPatch(title="b"))
    held = await _do(rt, ada, "undo", link)
    assert held.link.title == "a"
    with pytest.raises(NothingToUndo):
        await _do(rt, ada, "undo", link)

    await _do(rt, ada, "delete", link)
    async with rt.db.write() as session:
        await service.release_name(session, make.space(rt), make.who(ada), link.id, "one")
    with pytest.raises(NothingToUndo):  # the name may be taken by now
        await _do(rt, ada, "undo", link)


async def test_what_an_administrator_deleted_its_owner_cannot_bring_back(
    rt: Runtime, ada: User, root: User
) -> None:
    link = await _link(rt, ada)
    await _do(rt, root, "delete", link, admin=True)

    with pytest.raises(ChangedByAdmin):
        await _do(rt, ada, "undo", link)
    await _do(rt, root, "undo", link, admin=True)
    assert await _state(rt, link) is LinkState.ACTIVE


async def test_undoing_a_renewal_by_edit_brings_back_the_expired_state(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    link = await _link(rt, ada, expires_at=clock.now() + HOUR)
    clock.advance(3600)
    await _do(rt, ada, "edit", link, LinkPatch(expires_at=None))
    assert await _state(rt, link) is LinkState.ACTIVE

    await _do(rt, ada, "undo", link)

    assert await _state(rt, link) is LinkState.EXPIRED


async def test_a_change_can_be_meant_for_one_version(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    link = await _link(rt, ada)
    for verb in (
        service.disable_link,
        service.renew_link,
        service.delete_link,
        service.enable_link,
    ):
        with pytest.raises(VersionMismatch) as refused:
            async with rt.db.write() as session:
                await verb(session, make.who(ada), link.id, clock.now(), version=frozenset({2}))
        assert refused.value.status == 412
    async with rt.db.write() as session:
        await service.disable_link(
            session, make.who(ada), link.id, clock.now(), version=frozenset({1})
        )
    assert await _state(rt, link) is LinkState.DISABLED


async def test_foreign_links_are_not_there(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    link = await _link(rt, ada)
    absent = Link(id=link.id + 1)
    for action in ("disable", "enable", "renew", "delete"):
        with pytest.raises(LinkNotFound) as foreign:
            await _do(rt, bob, action, link)
        with pytest.raises(LinkNotFound) as missing:
            async with rt.db.write() as session:
                await service.delete_link(session, make.who(bob), absent.id, clock.now())
        assert (foreign.value.code, foreign.value.message) == (
            missing.value.code,
            missing.value.message,
        )


async def test_every_change_is_a_version_of_the_history(
    rt: Runtime, clock: ManualClock, ada: User, root: User
) -> None:
    link = await _link(rt, ada, title="Old")
    clock.advance(60)
    await _do(rt, ada, "edit", link, LinkPatch(title="New"))
    await _do(rt, root, "disable", link, admin=True)
    async with rt.db.read() as session:
        rows = await queries.list_versions(session, link.id, 10)

    assert [(row.version, row.action, row.actor_id, row.as_admin) for row in rows] == [
        (3, "disabled", root.id, True), (2, "edited", ada.id, False), (1, "created", ada.id, False),
    ]  # fmt: skip
    assert rows[1].changes == {"title": {"from": "Old", "to": "New"}}
    assert rows[0].changes == {"status": {"from": "active", "to": "disabled"}}
    assert rows[1].at == clock.now()
    async with rt.db.read() as session:
        assert len((await session.scalars(select(LinkChange))).all()) == 3


async def test_the_first_version_is_read_before_it_is_written_and_stays_what_it_was(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    link = await _link(rt, ada, name="one", title="Old", tags=["Alpha"])
    async with rt.db.read() as session:
        assert (await session.scalars(select(LinkChange))).all() == []
        (unwritten,) = await queries.list_versions(session, link.id, 10)
        alone = await queries.get_version(session, link.id, 1)
        card = await queries.load_card(session, await session.get_one(Link, link.id))
        (shown,) = await queries.list_versions(session, link.id, 10, card=card)
        assert (shown.at, shown.actor_id) == (unwritten.at, ada.id)
        assert shown.snapshot == unwritten.snapshot
        assert shown.snapshot["tags"]
        assert await queries.list_versions(session, link.id, 10, before=1) == []
    clock.advance(60)
    async with rt.db.write() as session:
        await service.transfer_link(session, make.who(ada), link.id, bob.email, clock.now())
    await _do(rt, bob, "edit", link, LinkPatch(title="New", tags=[]))
    async with rt.db.read() as session:
        written = await queries.get_version(session, link.id, 1)
        rows = await queries.list_versions(session, link.id, 10)

    for one in (unwritten, alone, written):
        assert (one.version, one.action, one.actor_id, one.at) == (
            1,
            "created",
            ada.id,
            link.created_at,
        )
        assert (
            one.snapshot["title"],
            one.snapshot["names"],
            list(one.snapshot["tags"].values()),
        ) == ("Old", ["one"], ["Alpha"])
    assert [row.action for row in rows] == ["edited", "transferred", "created"]
