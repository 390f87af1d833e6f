"""Resolving names, and suggesting similar ones."""

from datetime import timedelta

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.access import LinkCaller
from refract.links.models import Link
from refract.names import service as names
from refract.names.enums import NameTarget
from tests import make


async def _resolve(rt: Runtime, typed: str) -> tuple[NameTarget, int, str] | None:
    asked: list[str] = []
    stop = count_statements(rt.db.read_engine, asked.append)
    async with rt.db.read() as session:
        found = await queries.resolve_name(session, typed)
    stop()
    assert len([statement for statement in asked if statement.startswith("SELECT")]) <= 2
    return None if found is None else (found.kind, found.target_id, found.how)


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, name="Road-Map")


@pytest.mark.parametrize("typed", ["Road-Map", "road_map", "ROAD-MAP"])
async def test_seed_002_names_are_found_in_any_case_and_with_either_stroke(
    rt: Runtime, link: Link, typed: str
) -> None:
    assert await _resolve(rt, typed) == (NameTarget.LINK, link.id, "name")


async def test_a_code_is_found_only_as_it_is_written(rt: Runtime, link: Link) -> None:
    code = encode_base62(link.id)

    assert await _resolve(rt, code) == (NameTarget.LINK, link.id, "code")
    for wrong in (code.swapcase(), f"0{code}", f"{code}0", code[:-1], encode_base62(link.id + 1)):
        assert await _resolve(rt, wrong) is None


@pytest.mark.parametrize("mark", [*".,;:!?)", ").", "!!!"])
async def test_seed_002_punctuation_that_clings_to_an_address_is_forgiven(
    rt: Runtime, link: Link, mark: str
) -> None:
    assert await _resolve(rt, f"road-map{mark}") == (NameTarget.LINK, link.id, "forgiven")
    assert await _resolve(rt, f"{encode_base62(link.id)}{mark}") == (
        NameTarget.LINK,
        link.id,
        "forgiven",
    )


@pytest.mark.parametrize(
    "typed",
    [
        "",
        ".",
        "???",
        "road map",
        "road-map(",
        "(road-map",
        "road-map'",
        "x" * 5000,
        "\x00",
        "\ud800",
        "naïve",
    ],
)
async def test_anything_else_is_nobody(rt: Runtime, link: Link, typed: str) -> None:
    assert await _resolve(rt, typed) is None


async def test_a_list_is_found_by_its_name_too(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await names.claim_names_for(session, make.space(rt), NameTarget.LIST, 42, ["my-list"])

    assert await _resolve(rt, "My-List") == (NameTarget.LIST, 42, "name")


async def test_deleted_and_disabled_links_are_still_found_so_that_the_visitor_can_be_told(
    rt: Runtime, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        await service.delete_link(session, make.who(ada), link.id, rt.clock.now())

    assert await _resolve(rt, "road-map") == (NameTarget.LINK, link.id, "name")


# -- did you mean


async def _meant(rt: Runtime, typed: str, user: User | None = None) -> list[str]:
    """Return suggestions for a user, or for a colleague who owns nothing."""
    async with rt.db.read() as session:
        return await queries.suggest_similar_names(
            session, typed, LinkCaller(user.id if user else 0), rt.clock.now()
        )


async def _public(rt: Runtime, owner: User, *taken: str, **given: object) -> Link:
    async with rt.db.write() as session:
        return await make.link(
            session,
            rt,
            owner,
            names=list(taken),
            **{"visibility": "public", **given},  # type: ignore[arg-type]
        )


async def test_seed_002_up_to_three_names_within_two_edits_nearest_first_then_by_name(
    rt: Runtime, ada: User
) -> None:
    await _public(rt, ada, "roadmap", "roadmaps", "Roadmaq", "ro-admap2", "broadmap", "railway")

    assert await _meant(rt, "roadmpa") == [
        "roadmap",
        "roadmaps",
        "Roadmaq",
    ]  # two letters changed places: two edits
    assert await _meant(rt, "roadma") == ["roadmap", "Roadmaq", "broadmap"]
    assert await _meant(rt, "roadmapss") == ["roadmaps", "roadmap"]


async def test_seed_002_the_failed_name_itself_is_never_offered(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    await _public(rt, ada, "roadmap")
    await _public(rt, ada, "roadmap2")

    assert await _meant(rt, "Road_Map") == ["roadmap", "roadmap2"]
    assert await _meant(rt, "ROADMAP") == ["roadmap2"]


@pytest.mark.parametrize("typed", ["", "a", "x" * 60, "\x00\x00", "日本", "\ud800\ud800"])
async def test_too_short_too_long_or_strange_texts_get_no_suggestion(
    rt: Runtime, ada: User, typed: str
) -> None:
    await _public(rt, ada, "a", "ab", "abc")

    assert await _meant(rt, typed) == []


async def test_characters_that_no_name_has_count_as_wrong_ones(rt: Runtime, ada: User) -> None:
    await _public(rt, ada, "naive", "abc")

    assert await _meant(rt, "Naïve") == ["naive"]
    assert await _meant(rt, "ab\x00") == ["abc"]
    assert await _meant(rt, "ab\ud800") == ["abc"]


async def test_something_must_have_been_typed_right(rt: Runtime, ada: User) -> None:
    await _public(rt, ada, "xy", "ay", "z")

    assert await _meant(rt, "ab") == ["ay"]


async def test_seed_002_only_names_that_the_visitor_may_see_are_offered(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, cleo: User
) -> None:
    await _public(rt, ada, "plan-public")
    await _public(rt, ada, "plan-unlist", visibility="unlisted")
    secure = await _public(rt, ada, "plan-secure", visibility="secure")
    async with rt.db.write() as session:
        await service.share_link(session, make.who(ada), secure.id, bob.email, clock.now())

    assert await _meant(rt, "plan-publi") == ["plan-public"]
    for typed in ("plan-unlis", "plan-secur"):
        assert await _meant(rt, typed) == []
        assert await _meant(rt, typed, cleo) == []
        assert len(await _meant(rt, typed, ada)) == 1
    assert await _meant(rt, "plan-secur", bob) == ["plan-secure"]
    assert await _meant(rt, "plan-unlis", bob) == []
    async with rt.db.read() as session:
        assert await queries.suggest_similar_names(session, "plan-publi", None, clock.now()) == []


async def test_seed_002_what_is_over_is_never_offered(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    await _public(rt, ada, "plan-1", expires_at=clock.now() + timedelta(seconds=1))
    disabled = await _public(rt, ada, "plan-2")
    deleted = await _public(rt, ada, "plan-3")
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), disabled.id, clock.now())
        await service.delete_link(session, make.who(ada), deleted.id, clock.now())
    assert await _meant(rt, "plan", ada) == ["plan-1"]
    clock.advance(1)

    assert await _meant(rt, "plan", ada) == []


async def test_published_lists_are_offered_to_everybody(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await names.claim_names_for(session, make.space(rt), NameTarget.LIST, 42, ["reading-list"])

    assert await _meant(rt, "reading-lst") == ["reading-list"]
