"""Editing, reverting and naming links."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.errors import InvalidStateTransition, VersionMismatch
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.changes import CHANGES_TOPIC, TargetChange
from refract.links.enums import LinkState
from refract.links.errors import (
    ExpiryInPast,
    LinkNotFound,
    NameNotFound,
    NotOwner,
    TooManyNames,
    VersionNotFound,
)
from refract.links.models import Link
from refract.links.safety.service import check_destination
from refract.links.schemas import MAX_NAMES, LinkOut, LinkPatch
from refract.links.service import LockedLink
from refract.names.enums import NameTarget
from refract.names.errors import SlugReserved, SlugTaken
from refract.names.queries import list_names
from refract.tags.models import Tag
from tests import make


async def _edit(
    rt: Runtime, user: User, link: Link, *, version: int | None = None, **changes: Any
) -> LockedLink:
    patch = LinkPatch(**changes)
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as session:
        return await service.edit_link(
            session,
            make.space(rt),
            make.who(user),
            link.id,
            patch,
            checked,
            version=None if version is None else frozenset({version}),
        )


async def _shown(rt: Runtime, link: Link) -> LinkOut:
    async with rt.db.read() as session:
        return (await queries.load_card(session, await session.get_one(Link, link.id))).to_schema(
            "", rt.clock.now()
        )


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(
            session, rt, ada, name="roadmap", title="Old", notes="Some", tags=["Alpha", "beta"]
        )


async def test_only_what_is_named_changes(
    rt: Runtime, clock: ManualClock, ada: User, link: Link
) -> None:
    clock.advance(60)
    before = await _shown(rt, link)

    await _edit(rt, ada, link, title=None, redirect_status=307)

    after = await _shown(rt, link)
    expected = {"title": None, "redirect_status": 307, "version": 2, "updated_at": clock.now()}
    assert after == before.model_copy(update=expected)


async def test_everything_that_may_change_can(
    rt: Runtime, clock: ManualClock, ada: User, link: Link
) -> None:
    changes: dict[str, Any] = {
        "destination": "https://Example.org/Ä",
        "title": "New",
        "notes": "Other",
        "tags": ["gamma", "ALPHA"],
        "redirect_status": 308,
        "visibility": "public",
        "forward_query": True,
        "expires_at": clock.now() + timedelta(days=1),
    }
    await _edit(rt, ada, link, **changes)

    shown = (await _shown(rt, link)).model_dump()
    assert {field: shown[field] for field in changes} == changes | {"tags": ["Alpha", "gamma"]}
    async with rt.db.read() as session:
        row = await session.get_one(Link, link.id)
        uses = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
    assert (row.href, row.href_digest, row.destination_host) == (
        "https://example.org/%C3%84", service.digest("https://example.org/%C3%84"), "example.org",
    )  # fmt: skip
    assert uses == {"Alpha": 1, "beta": 0, "gamma": 1}


async def test_an_edit_that_changes_nothing_makes_no_version(
    rt: Runtime, clock: ManualClock, ada: User, link: Link
) -> None:
    clock.advance(60)
    await _edit(
        rt,
        ada,
        link,
        title="Old",
        destination=make.DESTINATION,
        tags=["beta", "alpha"],
        redirect_status=302,
    )

    shown = await _shown(rt, link)
    assert (shown.version, shown.updated_at) == (1, link.updated_at)


async def test_seed_001_the_id_never_changes_and_seed_002_neither_do_names(
    rt: Runtime, link: Link
) -> None:
    assert not {"id", "code", "names", "short_url", "owners", "version"} & set(
        LinkPatch.model_fields
    )


async def test_an_edit_can_be_meant_for_one_version(rt: Runtime, ada: User, link: Link) -> None:
    await _edit(rt, ada, link, title="A", version=1)
    with pytest.raises(VersionMismatch):
        await _edit(rt, ada, link, title="B", version=1)
    await _edit(rt, ada, link, title="B", version=2)
    assert (await _shown(rt, link)).title == "B"


async def test_seed_003_an_expired_link_stays_editable_and_only_a_new_past_expiry_is_refused(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    expiry = clock.now() + timedelta(hours=1)
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, expires_at=expiry)
    clock.advance(7200)

    await _edit(rt, ada, link, title="Still mine", expires_at=expiry)
    with pytest.raises(ExpiryInPast):
        await _edit(rt, ada, link, expires_at=expiry + timedelta(seconds=1))
    await _edit(rt, ada, link, expires_at=clock.now() + timedelta(hours=1))

    assert (await _shown(rt, link)).status is LinkState.ACTIVE


async def test_recipients_and_readers_may_look_but_not_edit(
    rt: Runtime, ada: User, bob: User, cleo: User, link: Link
) -> None:
    with pytest.raises(LinkNotFound):
        await _edit(rt, bob, link, title="x")
    async with rt.db.write() as session:
        await service.share_link(session, make.who(ada), link.id, bob.email, rt.clock.now())
    with pytest.raises(NotOwner):
        await _edit(rt, bob, link, title="x")
    await _edit(rt, ada, link, visibility="public")
    with pytest.raises(NotOwner):
        await _edit(rt, cleo, link, title="x")


async def test_the_folded_text_for_searches_follows_every_change(
    rt: Runtime, ada: User, link: Link
) -> None:
    await _edit(rt, ada, link, title="ÜBER Uns")
    async with rt.db.write() as session:
        held = await service.add_name(session, make.space(rt), make.who(ada), link.id, "Team_Page")

    words = held.link.search_text.split("\n")
    assert words == [
        "roadmap",
        "team-page",
        "team_page",
        "über uns",
        "uber uns",
        "some",
        "https://example.com/",
    ]


# -- revert


async def test_an_earlier_version_can_be_brought_back(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, link: Link
) -> None:
    await _edit(
        rt,
        ada,
        link,
        destination="https://example.org/",
        title="New",
        tags=["gamma"],
        visibility="public",
    )
    async with rt.db.write() as session:
        await service.add_name(session, make.space(rt), make.who(ada), link.id, "second")
        await service.add_owner(session, make.who(ada), link.id, bob.email, clock.now())
        await service.disable_link(session, make.who(bob), link.id, clock.now())
    async with rt.db.write() as session:
        destination = (await queries.get_version(session, link.id, 1)).snapshot["destination"]
        await service.revert_link(
            session,
            make.space(rt),
            make.who(bob),
            link.id,
            1,
            await check_destination(rt, destination),
        )

    shown = await _shown(rt, link)
    assert (shown.destination, shown.title, shown.tags, shown.visibility) == (
        make.DESTINATION,
        "Old",
        ["Alpha", "beta"],
        "unlisted",
    )
    assert (shown.names, len(shown.owners), shown.status) == (
        ["roadmap", "second"],
        2,
        LinkState.DISABLED,
    )
    assert shown.version == 6


async def test_an_expiry_that_has_passed_does_not_come_back(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(
            session, rt, ada, title="Old", expires_at=clock.now() + timedelta(hours=1)
        )
    await _edit(rt, ada, link, title="New", expires_at=None)
    clock.advance(7200)
    async with rt.db.write() as session:
        await service.revert_link(
            session,
            make.space(rt),
            make.who(ada),
            link.id,
            1,
            await check_destination(rt, make.DESTINATION),
        )

    shown = await _shown(rt, link)
    assert (shown.title, shown.expires_at, shown.status) == ("Old", None, LinkState.ACTIVE)


async def test_only_a_version_that_was_can_be_brought_back(
    rt: Runtime, ada: User, link: Link
) -> None:
    for version in (0, 2, 99):
        with pytest.raises(VersionNotFound):
            async with rt.db.write() as session:
                await service.revert_link(
                    session,
                    make.space(rt),
                    make.who(ada),
                    link.id,
                    version,
                    await check_destination(rt, make.DESTINATION),
                )


# -- names


async def test_a_link_can_take_more_names(rt: Runtime, ada: User, link: Link) -> None:
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            held = await service.add_name(
                session, make.space(rt), make.who(ada), link.id, "Second_Name"
            )
    assert heard == [TargetChange(link.id, 2, ("roadmap", "Second_Name"))]

    assert held.names == ["roadmap", "Second_Name"]
    assert (await _shown(rt, link)).version == 2


@pytest.mark.parametrize(
    ("name", "error"), [("ROADMAP", SlugTaken), ("other", SlugTaken), ("app", SlugReserved)]
)
async def test_a_name_that_cannot_be_had_changes_nothing(
    rt: Runtime, ada: User, link: Link, name: str, error: type[Exception]
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="other")
    with pytest.raises(error):
        async with rt.db.write() as session:
            await service.add_name(session, make.space(rt), make.who(ada), link.id, name)

    shown = await _shown(rt, link)
    assert (shown.names, shown.version) == (["roadmap"], 1)


async def test_a_released_name_is_told_of_and_can_be_taken_by_another(
    rt: Runtime, ada: User, bob: User, link: Link
) -> None:
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            held = await service.release_name(
                session, make.space(rt), make.who(ada), link.id, "RoadMap"
            )
    assert heard == [TargetChange(link.id, 2, ("roadmap",))]
    assert held.names == []
    async with rt.db.write() as session:
        other = await make.link(session, rt, bob, name="roadmap")
        assert await list_names(session, NameTarget.LINK, [link.id, other.id]) == {
            link.id: [],
            other.id: ["roadmap"],
        }
    with pytest.raises(NameNotFound):
        async with rt.db.write() as session:
            await service.release_name(session, make.space(rt), make.who(ada), link.id, "roadmap")


async def test_a_deleted_link_takes_no_name_but_gives_its_own_back(
    rt: Runtime, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await service.delete_link(session, make.who(ada), link.id, rt.clock.now())
    with pytest.raises(InvalidStateTransition):
        async with rt.db.write() as session:
            await service.add_name(session, make.space(rt), make.who(ada), link.id, "more")
    async with rt.db.write() as session:
        await service.release_name(session, make.space(rt), make.who(ada), link.id, "roadmap")
        await make.link(session, rt, ada, name="roadmap")


async def test_a_link_has_at_most_50_names(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        link = await make.link(
            session, rt, ada, names=[f"name-{number}" for number in range(MAX_NAMES)]
        )
    with pytest.raises(TooManyNames):
        async with rt.db.write() as session:
            await service.add_name(session, make.space(rt), make.who(ada), link.id, "one-more")
