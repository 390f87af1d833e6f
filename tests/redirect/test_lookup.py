"""Tiers of the lookup: their results, the number of queries, and that nothing stale is cached."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import WriteSession
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.keys import create_key
from refract.identity.models import Scope, User
from refract.links import service
from refract.links.changes import TargetChange
from refract.links.models import Link
from refract.links.safety.blocked_domains import block_domain, unblock_domain
from refract.links.schemas import LinkPatch
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.models import Name
from refract.redirect.visitors import Visitor
from tests import make
from tests.client import on_sqlite
from tests.conftest import make_settings
from tests.redirect.nodes import Place, open_place


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        role="redirect",
        cached_links=100,
        cached_misses=64,
        misses_per_minute=None,
    )


@pytest.fixture
async def place(rt: Runtime) -> AsyncIterator[Place]:
    async with open_place(rt) as here:
        yield here


async def new_link(
    rt: Runtime, owner: User, destination: str = make.DESTINATION, **given: Any
) -> Link:
    async with rt.db.write() as session:
        link = await make.link(session, rt, owner, destination, **given)
    rt.clock.advance(1)  # type: ignore[attr-defined]
    return link


# -- what is found


async def test_names_in_any_spelling_and_codes_to_the_letter(
    place: Place, rt: Runtime, ada: User
) -> None:
    link = await new_link(rt, ada, "https://example.com/a?b=c", name="Road-Map")
    code = encode_base62(link.id)

    for path in ("/Road-Map", "/road_map", f"/{code}", "/ROAD-MAP.", f"/{code},"):
        answer = await place.get(path)
        assert (answer.status_code, answer.headers["location"]) == (
            302,
            "https://example.com/a?b=c",
        ), path
    assert (await place.get(f"/{code.swapcase()}")).status_code == 404
    assert len(place.reader.asked) == 6  # one question each


async def test_everything_the_answer_needs_comes_with_the_one_question(
    place: Place, rt: Runtime, ada: User
) -> None:
    soon = rt.clock.now() + timedelta(days=1)
    link = await new_link(
        rt,
        ada,
        name="x",
        title="Title",
        redirect_status=308,
        expires_at=soon,
        forward_query=True,
        visibility="secure",
    )

    found = await place.engine.lookup.find("X")

    assert found is not None
    assert (found.id, found.name, found.version, found.title, found.created_at) == (
        link.id,
        "x",
        1,
        "Title",
        link.created_at,
    )
    assert (
        found.redirect_status,
        found.expires_at,
        found.forward_query,
        found.restricted,
        found.status,
    ) == (
        308,
        soon,
        True,
        True,
        "active",
    )
    assert len(place.reader.asked) == 1


async def test_a_list_is_told_from_a_link(place: Place, rt: Runtime) -> None:
    async with rt.db.write() as session:
        session.add(
            Name(
                key="reading",
                name="reading",
                kind="list",
                target_id=7,
                head="",
                middle="",
                tail="",
                created_at=rt.clock.now(),
            )
        )

    found = await place.engine.lookup.find("Reading")

    assert found is not None
    assert (found.kind, found.id, found.name) == ("list", 7, "reading")


async def test_a_blocked_domain_stops_its_links_at_once_and_lets_them_go_again(
    place: Place, rt: Runtime, ada: User
) -> None:
    await new_link(rt, ada, "https://a.bad.example/x", name="x")
    assert (await place.get("/x")).status_code == 302
    assert place.cached == {b"/x"}

    async with rt.db.write() as session:
        await block_domain(session, "bad.example", reason="", by=None, at=rt.clock.now())
    assert not place.cached
    rt.clock.advance(1)  # type: ignore[attr-defined]
    assert (await place.get("/x")).status_code == 410
    assert (await place.get("/x")).json()["code"] == "LINK_BLOCKED"

    async with rt.db.write() as session:
        await unblock_domain(session, "bad.example", by=None, at=rt.clock.now())
    assert (await place.get("/x")).status_code == 302


# -- how often


@on_sqlite  # what is counted lies above the database
async def test_ten_thousand_at_once_on_a_cold_name_are_one_question(
    place: Place, rt: Runtime, ada: User
) -> None:
    await new_link(rt, ada, name="hot")

    answers = await asyncio.gather(*(place.get("/hot") for _ in range(10_000)))

    assert {answer.status_code for answer in answers} == {302}
    assert len(place.reader.asked) == 1
    assert len(place.clicks()) == 10_000


async def test_those_who_come_while_the_answer_is_on_its_way_to_the_table_do_not_ask_again(
    place: Place, rt: Runtime, ada: User
) -> None:
    """A result takes a few turns of the event loop to be cached, with more requests in each."""
    await new_link(rt, ada, name="hot")
    find = place.engine.lookup.find

    coming = [asyncio.create_task(find("hot"))]
    while not coming[0].done():
        await asyncio.sleep(0)
        coming.append(asyncio.create_task(find("hot")))
    for _ in range(2):
        coming.append(asyncio.create_task(find("hot")))
        await asyncio.sleep(0)

    assert len(set(map(id, await asyncio.gather(*coming)))) == 1
    assert len(place.reader.asked) == 1


async def test_what_was_just_read_is_given_to_nobody_after_a_change(
    place: Place, rt: Runtime, ada: User
) -> None:
    link = await new_link(rt, ada, name="hot")
    before = await place.engine.lookup.find("hot")
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), link.id, rt.clock.now())

    after = await place.engine.lookup.find("hot")

    assert before is not None
    assert after is not None
    assert (before.status, after.status) == ("active", "disabled")


async def test_what_was_just_read_is_kept_for_a_moment_only(
    place: Place, rt: Runtime, ada: User
) -> None:
    await new_link(rt, ada, name="hot")
    first = await place.engine.lookup.find("hot")
    for _ in range(20):
        await asyncio.sleep(0)

    assert await place.engine.lookup.find("hot") is not first


async def test_who_gives_up_leaves_the_others_their_answer(
    place: Place, rt: Runtime, ada: User
) -> None:
    await new_link(rt, ada, name="hot")
    place.reader.gate.clear()
    first, second = (asyncio.create_task(place.engine.lookup.find("hot")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    place.reader.gate.set()

    assert (await second) is not None
    assert len(place.reader.asked) == 1


async def test_an_unknown_name_is_asked_for_once_until_it_exists(
    place: Place, rt: Runtime, ada: User
) -> None:
    for _ in range(3):
        assert (await place.get("/later")).status_code == 404
    assert len(place.reader.asked) == 1

    rt.clock.advance(1)  # type: ignore[attr-defined]
    await new_link(rt, ada, name="Later")

    assert (await place.get("/later")).status_code == 302


async def test_an_unknown_code_is_forgotten_when_its_link_is_made(
    place: Place, rt: Runtime, ada: User
) -> None:
    link = await new_link(rt, ada)
    code = encode_base62(link.id)
    place.engine.negative_cache.add(b"c" + code.encode(), rt.clock.monotonic())
    place.engine.negative_cache.add(b"n" + code.lower().encode(), rt.clock.monotonic())
    assert (await place.get(f"/{code}")).status_code == 404

    place.engine.invalidator.apply_changes([TargetChange(link.id, 1, ())])

    assert (await place.get(f"/{code}")).status_code == 302


async def test_a_missing_code_says_nothing_about_the_same_letters_in_another_case(
    place: Place, rt: Runtime, ada: User
) -> None:
    link = await new_link(rt, ada)
    code = encode_base62(link.id)
    assert code.swapcase() != code
    assert (await place.get(f"/{code.swapcase()}")).status_code == 404

    assert (await place.get(f"/{code}")).status_code == 302


async def test_a_negative_entry_lives_for_a_minute_at_most(
    place: Place, rt: Runtime, clock: ManualClock
) -> None:
    await place.get("/later")
    clock.advance(59)
    await place.get("/later")
    assert len(place.reader.asked) == 1
    clock.advance(2)
    await place.get("/later")
    assert len(place.reader.asked) == 2


@on_sqlite  # what is counted lies above the database
async def test_a_flood_of_unknown_names_costs_no_link_its_place(
    place: Place, rt: Runtime, ada: User
) -> None:
    for number in range(100):
        async with rt.db.write() as session:
            await make.link(session, rt, ada, name=f"real-{number}")
    rt.clock.advance(1)  # type: ignore[attr-defined]
    for number in range(100):
        await place.get(f"/real-{number}")
    before = place.cached
    assert len(before) == 100

    for number in range(3_000):
        await place.engine.lookup.find(f"unknown-{number}")

    assert place.cached == before
    assert place.engine.cache.evicted == 0
    assert len(place.engine.negative_cache) <= 64


async def test_a_flood_of_strangers_is_not_helped_to_spell(place: Place, rt: Runtime) -> None:
    async with rt.db.write() as session:
        await names.claim_names_for(session, make.space(rt), NameTarget.LIST, 42, ["roadmap"])
    asked = [(await place.get("/roadmop")).json()["suggestions"] for _ in range(60)]

    assert asked[0] == ["roadmap"]
    assert asked[-1] == []
    rt.clock.advance(1)  # type: ignore[attr-defined]
    assert (await place.get("/roadmop")).json()["suggestions"] == ["roadmap"]


# -- nothing old is kept


async def edited(rt: Runtime, owner: User, link: Link, destination: str) -> None:
    async with rt.db.write() as session:
        checked = await make.checked_changes(rt, destination)
        await service.edit_link(
            session,
            make.space(rt),
            make.who(owner),
            link.id,
            LinkPatch(destination=destination),
            checked,
        )


async def test_what_was_read_before_a_change_is_not_kept_after_it(
    place: Place, rt: Runtime, ada: User
) -> None:
    link = await new_link(rt, ada, "https://example.com/old", name="x")
    place.reader.after.clear()
    before = asyncio.create_task(place.get("/x"))
    await place.reader.read.wait()  # it holds the answer in its hand

    await edited(rt, ada, link, "https://example.com/new")
    place.reader.after.set()

    await before
    assert not place.cached
    assert place.engine.cache.refused == 1


async def test_who_asks_after_a_change_is_not_given_what_others_asked_for_before(
    place: Place, rt: Runtime, ada: User
) -> None:
    link = await new_link(rt, ada, "https://example.com/old", name="x")
    place.reader.after.clear()
    before = asyncio.create_task(place.get("/x"))
    await place.reader.read.wait()

    await edited(rt, ada, link, "https://example.com/new")
    rt.clock.advance(1)  # type: ignore[attr-defined]
    after = asyncio.create_task(place.get("/x"))
    await asyncio.sleep(0.05)
    place.reader.after.set()

    assert (await before).headers["location"] == "https://example.com/old"
    assert (await after).headers["location"] == "https://example.com/new"
    assert place.cached == {b"/x"}


async def test_a_name_that_moves_takes_its_paths_along(
    place: Place, rt: Runtime, ada: User, clock: ManualClock
) -> None:
    first = await new_link(rt, ada, "https://example.com/1", name="x")
    second = await new_link(rt, ada, "https://example.com/2", name="y")
    assert (await place.get("/x")).headers["location"].endswith("1")

    async with rt.db.write() as session:
        await service.release_name(session, make.space(rt), make.who(ada), first.id, "x")
    assert not place.cached
    clock.advance(1)
    assert (await place.get("/x")).status_code == 404
    clock.advance(120)
    async with rt.db.write() as session:
        await service.add_name(session, make.space(rt), make.who(ada), second.id, "X")

    assert (await place.get("/x")).headers["location"].endswith("2")


@pytest.mark.parametrize(("change", "answer"), [("disable", 410), ("delete", 410), ("edit", 302)])
async def test_a_change_is_seen_by_the_next_request(
    place: Place, rt: Runtime, ada: User, change: str, answer: int
) -> None:
    link = await new_link(rt, ada, "https://example.com/old", name="x")
    await place.get("/x")
    assert place.cached

    async with rt.db.write() as session:
        await _change(session, rt, ada, link, change)

    after = await place.get("/x")
    assert after.status_code == answer
    assert after.headers.get("location", "new").endswith("new")


async def _change(session: WriteSession, rt: Runtime, owner: User, link: Link, change: str) -> None:
    if change == "disable":
        await service.disable_link(session, make.who(owner), link.id, rt.clock.now())
    elif change == "delete":
        await service.delete_link(session, make.who(owner), link.id, rt.clock.now())
    else:
        checked = await make.checked_changes(rt, "https://example.com/new")
        patch = LinkPatch(destination="https://example.com/new")
        await service.edit_link(session, make.space(rt), make.who(owner), link.id, patch, checked)


# -- what is never kept


@pytest.mark.parametrize(("visibility", "others"), [("secure", 404), ("signed-in", 302)])
async def test_a_restricted_link_never_enters_the_table(
    place: Place, rt: Runtime, ada: User, bob: User, visibility: str, others: int
) -> None:
    await new_link(rt, ada, name="s", visibility=visibility)
    async with rt.db.write() as session:
        _, mine = await create_key(session, rt, ada, "k", list(Scope)[:2])
        _, other = await create_key(session, rt, bob, "k", list(Scope)[:2])

    assert (await place.get("/s", headers={"x-api-key": mine})).status_code == 302
    assert (await place.get("/s", headers={"x-api-key": other})).status_code == others
    assert (await place.get("/s")).status_code == 401
    assert not place.cached
    assert len(place.clicks()) == (2 if others == 302 else 1)


async def test_a_path_of_any_length_is_answered_but_only_short_ones_are_kept(
    place: Place, rt: Runtime, ada: User
) -> None:
    await new_link(rt, ada, "https://example.com/", name="wiki")

    answer = await place.get("/wiki/" + "a" * 2000)

    assert answer.headers["location"] == "https://example.com/" + "a" * 2000
    assert not place.cached


async def test_spellings_of_one_link_are_bounded(place: Place, rt: Runtime, ada: User) -> None:
    await new_link(rt, ada, "https://example.com/", name="wiki")
    for number in range(50):
        await place.get(f"/wiki/{number}")

    assert len(place.cached) == 16


# -- expiry, to the moment


async def test_expiry_holds_to_the_moment_in_every_tier(
    place: Place, rt: Runtime, ada: User, clock: ManualClock
) -> None:
    ends = clock.now() + timedelta(
        seconds=2, microseconds=250_000
    )  # within what a table is trusted without news
    await new_link(rt, ada, name="x", expires_at=ends)
    async with place.on_the_wire() as wire:
        assert (await wire.get("/x")).status_code == 302
        answered = place.engine.connections.turn.answered
        clock.advance((ends - clock.now()).total_seconds() - 0.000_001)

        assert (await wire.get("/x")).status_code == 302
        assert place.engine.connections.turn.answered == answered + 1  # by the lane, from the table
        assert (await place.get("/x")).status_code == 302
        assert place.engine.find_stale(b"/x", b"", lambda: Visitor(0)) is None
        clock.advance(0.000_001)

        assert (await wire.get("/x")).status_code == 410
        assert (await place.get("/x")).status_code == 410
        assert len(place.clicks()) == 3


async def test_what_is_stale_ends_with_its_expiry_too(
    place: Place, rt: Runtime, ada: User, clock: ManualClock
) -> None:
    ends = clock.now() + timedelta(seconds=100)
    await new_link(rt, ada, name="x", expires_at=ends)
    await place.get("/x")
    place.engine.cache.mark_stale()

    clock.advance((ends - clock.now()).total_seconds() - 0.000_001)
    assert place.engine.find_stale(b"/x", b"", lambda: Visitor(0)) is not None
    clock.advance(0.000_001)
    assert place.engine.find_stale(b"/x", b"", lambda: Visitor(0)) is None
