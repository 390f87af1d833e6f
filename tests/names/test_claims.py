"""Claiming and releasing names."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.errors import RefractError
from refract.core.ids import (
    SnowflakeGenerator,
    decode_base62,
    encode_base62,
    get_creation_time,
    get_min_id,
)
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.models import Link
from refract.names import queries, service
from refract.names.enums import NameTarget
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.names.grammar import name_key
from refract.names.models import Name
from refract.names.service import Namespace
from tests import make


async def _held(rt: Runtime) -> dict[str, tuple[str, int]]:
    async with rt.db.read() as session:
        return {
            name.name: (name.kind, name.target_id) for name in await session.scalars(select(Name))
        }


async def test_a_name_belongs_to_whoever_took_it(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await service.claim_names_for(
            session, make.space(rt), NameTarget.LINK, 1, ["Road-Map", "plans"]
        )

    assert await _held(rt) == {"Road-Map": ("link", 1), "plans": ("link", 1)}


@pytest.mark.parametrize(
    ("kind", "same"),
    [
        (NameTarget.LINK, "Road-Map"),
        (NameTarget.LINK, "road_map"),
        (NameTarget.LINK, "ROAD-MAP"),
        (NameTarget.LIST, "road-map"),
    ],
)
async def test_seed_001_a_name_is_unique_for_links_and_lists_together(
    rt: Runtime, kind: NameTarget, same: str
) -> None:
    async with rt.db.write() as session:
        await service.claim_names_for(session, make.space(rt), NameTarget.LINK, 1, ["Road-Map"])

    with pytest.raises(SlugTaken) as refused:
        async with rt.db.write() as session:
            await service.claim_names_for(session, make.space(rt), kind, 2, [same])

    assert refused.value.status == 409
    assert await _held(rt) == {"Road-Map": ("link", 1)}


async def test_all_names_of_a_target_or_none(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await service.claim_names_for(session, make.space(rt), NameTarget.LINK, 1, ["taken"])
    async with rt.db.write() as session:
        refused = await service.claim_names(
            session,
            make.space(rt),
            NameTarget.LINK,
            {2: ["free", "taken"], 3: ["free"], 4: ["admin"], 5: ["no good"], 6: []},
        )

    assert {target: type(error) for target, error in refused.items()} == {
        2: SlugTaken,
        4: SlugReserved,
        5: InvalidSlug,
    }
    assert await _held(rt) == {"taken": ("link", 1), "free": ("link", 3)}


async def test_targets_that_want_the_same_name_are_served_in_order(rt: Runtime) -> None:
    async with rt.db.write() as session:
        wishes = {1: ["plans", "zeta"], 2: ["Plans"], 3: ["zeta"], 4: ["ZETA_"], 5: ["new"]}
        refused = await service.claim_names(session, make.space(rt), NameTarget.LINK, wishes)

    assert set(refused) == {2, 3}
    assert await _held(rt) == {
        "plans": ("link", 1),
        "zeta": ("link", 1),
        "ZETA_": ("link", 4),
        "new": ("link", 5),
    }


async def test_a_name_that_fell_free_within_the_call_goes_to_the_next_in_line_as_they_typed_it(
    rt: Runtime,
) -> None:
    async with rt.db.write() as session:
        await service.claim_names_for(session, make.space(rt), NameTarget.LINK, 9, ["taken"])
    async with rt.db.write() as session:
        refused = await service.claim_names(
            session, make.space(rt), NameTarget.LINK, {1: ["Plans", "taken"], 2: ["pLANS"]}
        )

    assert set(refused) == {1}
    assert await _held(rt) == {"taken": ("link", 9), "pLANS": ("link", 2)}


async def test_one_name_typed_twice_is_one_name_and_the_order_is_kept(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await service.claim_names_for(
            session, make.space(rt), NameTarget.LINK, 1, ["zeta", "Alpha", "ZETA", "mid"]
        )
    async with rt.db.read() as session:
        assert await queries.list_names(session, NameTarget.LINK, [1, 2]) == {
            1: ["zeta", "Alpha", "mid"],
            2: [],
        }


async def test_a_released_name_is_free_for_anybody(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await service.claim_names_for(session, make.space(rt), NameTarget.LINK, 1, ["one", "two"])
    async with rt.db.write() as session:
        assert await service.release_names(session, NameTarget.LINK, 2, ["one"]) == 0  # not theirs
        assert await service.release_names(session, NameTarget.LIST, 1, ["one"]) == 0
        assert await service.release_names(session, NameTarget.LINK, 1, ["one"]) == 1
        await service.claim_names_for(session, make.space(rt), NameTarget.LIST, 7, ["one"])

    assert await _held(rt) == {"one": ("list", 7), "two": ("link", 1)}


async def test_seed_003_availability_gives_the_reason(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="Road-Map")
    async with rt.db.read() as session:
        answers = [
            await service.check_availability(session, make.space(rt), name, kind)
            for name, kind in [
                ("road_map", NameTarget.LINK),
                ("Health", NameTarget.LINK),
                ("a b", NameTarget.LINK),
                ("ab", NameTarget.LIST),
                ("ab", NameTarget.LINK),
            ]
        ]

    assert [(one.available, one.reason) for one in answers] == [
        (False, "SLUG_TAKEN"),
        (False, "SLUG_RESERVED"),
        (False, "INVALID_SLUG"),
        (False, "INVALID_SLUG"),
        (True, None),
    ]
    assert all((one.detail is None) == one.available for one in answers)


# -- names and codes


async def _code_of_a_link(rt: Runtime, ada: User) -> str:
    async with rt.db.write() as session:
        return encode_base62((await make.link(session, rt, ada)).id)


@pytest.mark.parametrize("twist", [str, str.lower, str.upper, str.swapcase])
async def test_seed_001_a_name_cannot_be_the_code_of_a_link_in_any_case(
    rt: Runtime, clock: ManualClock, ada: User, twist: type[str]
) -> None:
    code = await _code_of_a_link(rt, ada)
    clock.advance(86_400 * 30)

    with pytest.raises(SlugTaken):
        async with rt.db.write() as session:
            await service.claim_names_for(
                session, make.space(rt), NameTarget.LINK, 1, [twist(code)]
            )
    async with rt.db.read() as session:
        assert (
            await service.check_availability(session, make.space(rt), twist(code), NameTarget.LINK)
        ).reason == "SLUG_TAKEN"


@pytest.mark.parametrize("seconds", [-59, 0, 59])
async def test_a_name_that_reads_as_a_code_of_about_now_is_refused_though_no_link_has_it(
    rt: Runtime, clock: ManualClock, seconds: int
) -> None:
    code = encode_base62(get_min_id(clock.now() + timedelta(seconds=seconds)) | 77)

    with pytest.raises(SlugTaken):
        async with rt.db.write() as session:
            await service.claim_names_for(session, make.space(rt), NameTarget.LINK, 1, [code])


@pytest.mark.parametrize("days", [-30, 30, 3000])
async def test_a_name_that_reads_as_a_code_of_another_day_is_free(
    rt: Runtime, clock: ManualClock, ada: User, days: int
) -> None:
    await _code_of_a_link(rt, ada)
    code = encode_base62(get_min_id(clock.now() + timedelta(days=days)) | 77)

    async with rt.db.write() as session:
        await service.claim_names_for(session, make.space(rt), NameTarget.LINK, 1, [code])


async def test_onboarding_is_a_code_of_june_2026_and_can_still_be_a_name(
    rt: Runtime, ada: User
) -> None:
    number = decode_base62("onboarding")
    assert number is not None
    assert get_creation_time(number).year == 2026
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="onboarding")
    assert link.id != number


async def test_a_code_whose_folded_form_is_a_name_is_skipped(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        mine = await make.link(session, rt, ada)
        ahead = (
            get_min_id(clock.now() + timedelta(hours=1)) | SnowflakeGenerator(1, clock).worker << 12
        )
        wanted = [encode_base62(ahead), encode_base62(ahead + 2)]
        await service.claim_names_for(
            session, make.space(rt), NameTarget.LINK, mine.id, [name.swapcase() for name in wanted]
        )
    clock.advance(3600)
    async with rt.db.write() as session:
        ids = await service.allocate_ids(session, make.space(rt), 3)

    assert ids == [ahead + 1, ahead + 3, ahead + 4]


async def test_seed_003_a_code_that_is_a_reserved_word_is_skipped(
    rt: Runtime, clock: ManualClock
) -> None:
    first = get_min_id(clock.now()) | SnowflakeGenerator(1, clock).worker << 12
    space = Namespace(
        rt.ids, rt.clock, reserved=frozenset({name_key(encode_base62(first).upper())})
    )
    async with rt.db.write() as session:
        assert await service.allocate_ids(session, space, 2) == [first + 1, first + 2]


async def test_ids_that_differ_only_in_case_are_both_good(rt: Runtime) -> None:
    """Codes are case-sensitive; bulk creation needs a thousand of one millisecond at once."""
    async with rt.db.write() as session:
        assert len(set(await service.allocate_ids(session, make.space(rt), 1000))) == 1000


async def test_a_claim_asks_a_bounded_number_of_questions(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada)
    asked: list[str] = []
    stop = count_statements(rt.db.engine, asked.append)
    async with rt.db.write() as session:
        refused = await service.claim_names(
            session,
            make.space(rt),
            NameTarget.LINK,
            {number: [f"name-{number}"] for number in range(1, 501)},
        )
    stop()

    assert refused == {}
    assert len([statement for statement in asked if "names" in statement]) == 2
    assert len(asked) <= 6


async def test_errors_are_values_that_can_be_shown(rt: Runtime) -> None:
    async with rt.db.write() as session:
        refused = await service.claim_names(
            session, make.space(rt), NameTarget.LINK, {1: ["admin"]}
        )
    assert isinstance(refused[1], RefractError)
    assert refused[1].status == 422
    async with rt.db.read() as session:
        assert (await session.scalars(select(Link))).all() == []
