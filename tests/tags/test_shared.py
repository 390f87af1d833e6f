"""The shared vocabulary."""

import asyncio

import pytest
from sqlalchemy import select

from refract.core.errors import StoreBusy
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.tags import queries, service
from refract.tags.errors import InvalidTag, TagExists
from refract.tags.grammar import check_color, check_shared, slugify
from refract.tags.models import DEFAULT_COLOR, Tag
from tests import make


async def _tags(rt: Runtime) -> list[Tag]:
    async with rt.db.read() as session:
        return list(await session.scalars(select(Tag).order_by(Tag.key)))


@pytest.mark.parametrize(
    "same",
    [
        "Engineering Tools",
        "engineering tools",
        "ENGINEERING_TOOLS",
        "Engineering-Tools",
        " engineering  tools ",
    ],
)
def test_seed_002_the_slug_says_which_names_are_the_same_tag(same: str) -> None:
    assert slugify(check_shared(same)) == "engineering-tools"


@pytest.mark.parametrize("name", ["a", "7 wonders", "Über uns", "技术", "हिन्दी", "x_y-z", "a" * 50])
def test_seed_002_tags_are_letters_digits_spaces_hyphens_and_underscores(name: str) -> None:
    assert check_shared(name) == name


def test_tags_with_signs_are_tags_of_their_own() -> None:
    names = ["C", "C++", "C#", ".NET", "R&D", "Q&A", "Node.js", "Rock 'n' roll"]
    assert [check_shared(name) for name in names] == names
    assert len({slugify(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "-a",
        "_a",
        ".",
        "..",
        ".+",
        "+",
        "a" * 51,
        "a/b",
        "<b>",
        "a\nb",
        "a\x00",
        "#tag",
        "a,b",
        "\u202eabc",
        "😀",
        "\u0301a",
    ],
)
def test_a_refused_tag_says_why(name: str) -> None:
    with pytest.raises(InvalidTag) as refused:
        check_shared(name)
    assert refused.value.status == 422
    assert refused.value.message.isprintable()


def test_colours_are_six_hexadecimal_digits() -> None:
    assert check_color("#6b7280") == "#6B7280"
    for wrong in ("6B7280", "#6B728", "red", "#6B72800", "#GGGGGG"):
        with pytest.raises(InvalidTag):
            check_color(wrong)


async def test_seed_002_a_tag_is_made_once_and_keeps_the_name_it_was_first_given(
    rt: Runtime,
) -> None:
    async with rt.db.write() as session:
        first = await service.ensure_shared_tags(
            session, rt.ids, ["Engineering Tools", "Zeta"], rt.clock.now()
        )
    async with rt.db.write() as session:
        second = await service.ensure_shared_tags(
            session, rt.ids, ["engineering tools", "ENGINEERING_TOOLS"], rt.clock.now()
        )

    assert {tag.id for tag in second.values()} == {first["Engineering Tools"].id}
    assert [
        (tag.name, tag.key, tag.scope, tag.color, tag.usage_count) for tag in await _tags(rt)
    ] == [
        ("Engineering Tools", "engineering-tools", "shared", DEFAULT_COLOR, 0),
        ("Zeta", "zeta", "shared", DEFAULT_COLOR, 0),
    ]


async def test_many_who_make_the_same_tag_get_one(rt: Runtime) -> None:
    async def make_it(name: str) -> int:
        for _ in range(20):
            try:
                async with rt.db.write() as session:
                    return (
                        await service.ensure_shared_tags(
                            session, rt.ids, [name, "other"], rt.clock.now()
                        )
                    )[name].id
            except StoreBusy:
                continue
        raise AssertionError

    found = await asyncio.gather(
        *(make_it(["Team", "team", "TEAM"][number % 3]) for number in range(12))
    )

    assert len(set(found)) == 1
    assert [tag.key for tag in await _tags(rt)] == ["other", "team"]


async def test_seed_002_a_tag_can_be_renamed_and_its_slug_stays(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, tags=["Alpha"])
        tag = (await service.ensure_shared_tags(session, rt.ids, ["Alpha"], rt.clock.now()))[
            "Alpha"
        ]
        await service.change_shared_tag(
            session, tag, by=None, at=rt.clock.now(), name="Beta Team", color="#aabbcc"
        )
    async with rt.db.write() as session:
        typed_anew = await service.ensure_shared_tags(
            session, rt.ids, ["beta team", "ALPHA"], rt.clock.now()
        )

    assert {one.id for one in typed_anew.values()} == {tag.id}
    assert [(one.name, one.key, one.color) for one in await _tags(rt)] == [
        ("Beta Team", "alpha", "#AABBCC")
    ]
    assert link.id


async def test_a_tag_cannot_take_the_name_of_another(rt: Runtime) -> None:
    async with rt.db.write() as session:
        tags = await service.ensure_shared_tags(session, rt.ids, ["Alpha", "Beta"], rt.clock.now())
        await service.change_shared_tag(
            session, tags["Beta"], by=None, at=rt.clock.now(), name="Gamma"
        )
    for taken in ("beta", "GAMMA"):
        with pytest.raises(TagExists):
            async with rt.db.write() as session:
                alpha = (await queries.find_shared_tags(session, ["alpha"]))["alpha"]
                await service.change_shared_tag(
                    session, alpha, by=None, at=rt.clock.now(), name=taken
                )
    async with rt.db.write() as session:
        alpha = (await queries.find_shared_tags(session, ["alpha"]))["alpha"]
        await service.change_shared_tag(session, alpha, by=None, at=rt.clock.now(), name="ALPHA")
    assert {tag.name for tag in await _tags(rt)} == {"ALPHA", "Gamma"}


async def test_a_deleted_tag_is_revived_under_the_same_id(rt: Runtime) -> None:
    async with rt.db.write() as session:
        tag = (await service.ensure_shared_tags(session, rt.ids, ["Alpha"], rt.clock.now()))[
            "Alpha"
        ]
        tag.deleted_at = rt.clock.now()
    async with rt.db.write() as session:
        again = (await service.ensure_shared_tags(session, rt.ids, ["alpha"], rt.clock.now()))[
            "alpha"
        ]

    assert again.id == tag.id
    assert [one.deleted_at for one in await _tags(rt)] == [None]


async def test_names_that_folding_lengthens_fit_the_key(rt: Runtime) -> None:
    longest = "ΐ" * 50  # three characters each when folded
    async with rt.db.write() as session:
        tags = await service.ensure_shared_tags(
            session, rt.ids, [check_shared(longest)], rt.clock.now()
        )
    assert [tag.id for tag in await _tags(rt)] == [tag.id for tag in tags.values()]
