"""Creating one or many links."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.errors import RefractError
from refract.core.ids import decode_base62, encode_base62, get_creation_time
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.changes import CHANGES_TOPIC, TargetChange
from refract.links.enums import LinkState
from refract.links.errors import ExpiryInPast, TooManyTags
from refract.links.models import Link, LinkChange, LinkOwner, LinkTag, LinkTotals
from refract.links.service import CreatedLink
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.names.models import Name
from refract.tags.errors import InvalidTag
from refract.tags.models import Tag
from tests import make


async def _count(rt: Runtime, model: type) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


async def test_a_link_has_everything_that_was_asked_for(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    expiry = clock.now() + timedelta(days=3)
    async with rt.db.write() as session:
        made = await make.created(
            session,
            rt,
            ada,
            " https://EXAMPLE.com/Ä?q=1 ".strip(),
            names=["Road_Map", "plans"],
            title="Road map",
            notes="2027\nand on",
            tags=["Engineering Tools", "plan"],
            redirect_status=308,
            visibility="secure",
            forward_query=True,
            expires_at=expiry,
        )
        shown = made.card.to_schema("https://go.test", clock.now())
    async with rt.db.read() as session:
        link = await session.get_one(Link, shown.id)
        read = (await queries.load_card(session, link)).to_schema("https://go.test", clock.now())

    assert read == shown
    assert shown.model_dump(mode="json") == {
        "id": str(link.id),
        "code": shown.code,
        "short_url": "https://go.test/Road_Map",
        "domain": "go.test",
        "names": ["Road_Map", "plans"],
        "addresses": [
            {"domain": "go.test", "name": name, "url": f"https://go.test/{name}", "exact": False}
            for name in ("Road_Map", "plans")
        ],
        "destination": "https://EXAMPLE.com/Ä?q=1",
        "title": "Road map",
        "notes": "2027\nand on",
        "tags": ["Engineering Tools", "plan"],
        "redirect_status": 308,
        "visibility": "secure",
        "status": "active",
        "expires_at": "2026-06-04T12:00:00Z",
        "created_at": "2026-06-01T12:00:00Z",
        "updated_at": "2026-06-01T12:00:00Z",
        "total_clicks": 0,
        "bot_clicks": 0,
        "last_clicked_at": None,
        "flagged": False,
        "flag_reason": None,
        "forward_query": True,
        "noindex": False,
        "starts_at": None,
        "before_destination": None,
        "click_limit": None,
        "clicks_left": None,
        "limit_destination": None,
        "preview_card": None,
        "qr_style": None,
        "expired_destination": None,
        "version": 1,
        "owners": [
            {
                "user_id": str(ada.id),
                "name": "Ada",
                "email": "ada@example.com",
                "primary": True,
                "added_at": "2026-06-01T12:00:00Z",
            }
        ],
        "teams": [],
    }
    assert decode_base62(shown.code) == link.id
    assert link.href == "https://example.com/%C3%84?q=1"
    assert link.destination_host == "example.com"


async def test_seed_003_a_link_redirects_with_302_unless_told_otherwise(
    rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)

    assert (
        link.redirect_status,
        link.visibility,
        link.forward_query,
        link.status,
        link.version,
    ) == (302, "unlisted", False, "active", 1)
    assert (link.title, link.notes, link.expires_at, link.flagged) == (None, None, None, False)


async def test_seed_001_the_id_is_a_snowflake_and_the_code_is_nowhere_stored(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)

    assert get_creation_time(link.id) == link.created_at == link.updated_at == clock.now()
    assert link.random_code is None
    assert link.code == encode_base62(link.id)


async def test_without_a_name_the_code_is_the_address(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        shown = (await make.created(session, rt, ada)).card.to_schema(
            "https://go.test", rt.clock.now()
        )

    assert shown.names == []
    assert shown.short_url == f"https://go.test/{shown.code}"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"names": ["Taken"]}, SlugTaken),
        ({"names": ["free", "taken"]}, SlugTaken),
        ({"names": ["API"]}, SlugReserved),
        ({"names": ["no good"]}, InvalidSlug),
        ({"tags": ["<b>"]}, InvalidTag),
        ({"tags": [f"tag {number}" for number in range(21)]}, TooManyTags),
    ],
)
async def test_a_refused_link_leaves_nothing_behind(
    rt: Runtime, ada: User, given: dict[str, Any], error: type[RefractError]
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="taken")
    with pytest.raises(error):
        async with rt.db.write() as session:
            await make.link(session, rt, ada, **given)

    assert [
        await _count(rt, model) for model in (Link, LinkOwner, LinkChange, LinkTag, Name, Tag)
    ] == [1, 1, 0, 0, 1, 0]


async def test_seed_002_a_link_has_at_most_20_tags_and_the_same_tag_counts_once(
    rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.link(
            session, rt, ada, tags=[f"tag {number}" for number in range(20)] + ["TAG 3", "tag-4"]
        )

    assert await _count(rt, LinkTag) == 20


@pytest.mark.parametrize("seconds", [-1, 0])
async def test_seed_001_an_expiry_lies_in_the_future(
    rt: Runtime, clock: ManualClock, ada: User, seconds: int
) -> None:
    with pytest.raises(ExpiryInPast):
        async with rt.db.write() as session:
            await make.link(session, rt, ada, expires_at=clock.now() + timedelta(seconds=seconds))


async def test_making_a_link_tells_whoever_keeps_answers_ready(rt: Runtime, ada: User) -> None:
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            link = await make.link(session, rt, ada, names=["one", "two"])
    assert heard == [TargetChange(link.id, 1, ("one", "two"))]


# -- many at once


async def test_each_row_has_its_own_result(rt: Runtime, clock: ManualClock, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="taken")
    wishes = [
        await make.new_link(rt, names=["new", "zeta"], tags=["Alpha"]),
        await make.new_link(rt, names=["Taken"]),
        await make.new_link(rt, names=["NEW"]),
        await make.new_link(rt, tags=["alpha", "beta"]),
        await make.new_link(rt, names=["admin"]),
        await make.new_link(rt, expires_at=clock.now() - timedelta(1)),
        await make.new_link(rt, names=["last"], tags=["<i>"]),
        await make.new_link(rt, names=["last"]),
    ]
    async with rt.db.write() as session:
        results = await service.create_links(session, rt, ada, wishes, charged=False)

    kinds = [type(result) for result in results]
    assert kinds == [
        CreatedLink,
        SlugTaken,
        SlugTaken,
        CreatedLink,
        SlugReserved,
        ExpiryInPast,
        InvalidTag,
        CreatedLink,
    ]
    async with rt.db.read() as session:
        names = {name.name: name.target_id for name in await session.scalars(select(Name))}
        uses = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
        ids = set(await session.scalars(select(Link.id)))
    made = [result.card.link.id for result in results if isinstance(result, CreatedLink)]
    assert ids >= set(made)
    assert (names["new"], names["zeta"], names["last"]) == (made[0], made[0], made[2])
    assert len(ids) == 4
    assert uses == {"Alpha": 2, "beta": 1}


async def test_a_thousand_links_take_as_many_statements_as_ten(rt: Runtime, ada: User) -> None:
    counts = []
    for number in (10, 1000):
        wishes = [
            await make.new_link(
                rt, f"https://example.com/{number}/{row}", names=[f"n{number}-{row}"], tags=["x"]
            )
            for row in range(number)
        ]
        asked: list[str] = []
        stop = count_statements(rt.db.engine, asked.append)
        async with rt.db.write() as session:
            results = await service.create_links(session, rt, ada, wishes, charged=False)
        stop()
        assert all(isinstance(result, CreatedLink) for result in results)
        counts.append(len(asked))

    assert counts[0] >= counts[1]
    assert await _count(rt, Link) == await _count(rt, LinkOwner) == await _count(rt, Name) == 1010


# -- find if exists


async def test_a_link_that_exists_is_found_by_the_serialised_destination(
    rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        first = await make.link(
            session, rt, ada, "https://example.com/%C3%84", name="first", tags=["Alpha"]
        )
        await make.link(session, rt, ada, "https://example.com/other")
        found = await make.created(
            session, rt, ada, "HTTPS://EXAMPLE.com:443/Ä", find_if_exists=True
        )

    assert found.found
    assert found.card.link.id == first.id
    assert list(found.card.names) == ["first"]
    assert await _count(rt, Link) == 2


async def test_the_oldest_of_several_is_found(rt: Runtime, clock: ManualClock, ada: User) -> None:
    async with rt.db.write() as session:
        links = []
        for _ in range(3):
            clock.advance(1)
            links.append(await make.link(session, rt, ada))
        found = await make.created(session, rt, ada, find_if_exists=True)

    assert found.card.link.id == links[0].id


async def test_only_my_own_live_links_are_found(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, bob, visibility="public")
        disabled = await make.link(session, rt, ada)
        deleted = await make.link(session, rt, ada)
        await make.link(session, rt, ada, expires_at=clock.now() + timedelta(seconds=1))
        await service.disable_link(session, make.who(ada), disabled.id, clock.now())
        await service.delete_link(session, make.who(ada), deleted.id, clock.now())
    clock.advance(1)
    async with rt.db.write() as session:
        made = await make.created(session, rt, ada, find_if_exists=True)

    assert not made.found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"names": ["ONE"]}, True),
        ({"names": ["two"]}, False),
        ({"tags": ["alpha"]}, True),
        ({"tags": ["alpha", "gamma"]}, False),
        ({"redirect_status": 301}, False),
        ({"redirect_status": 302}, True),
        ({"visibility": "public"}, False),
        ({"forward_query": True}, False),
        ({"title": "Other words"}, True),
    ],
)
async def test_what_is_found_fulfils_the_wish(
    rt: Runtime, ada: User, given: dict[str, Any], found: bool
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="one", tags=["Alpha", "beta"])
    async with rt.db.write() as session:
        made = await make.created(session, rt, ada, find_if_exists=True, **given)

    assert made.found is found


async def test_a_row_finds_what_a_row_before_it_made(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, "https://example.com/old", name="taken")
    wishes = [
        await make.new_link(
            rt, find_if_exists=True, names=["taken"]
        ),  # fails, so the next one creates the link
        await make.new_link(rt, find_if_exists=True),
        await make.new_link(
            rt, find_if_exists=True, tags=["new"]
        ),  # not fulfilled by the one before
        await make.new_link(rt, find_if_exists=True),
    ]
    async with rt.db.write() as session:
        results = await service.create_links(session, rt, ada, wishes, charged=False)

    assert isinstance(results[0], SlugTaken)
    made = [result for result in results if isinstance(result, CreatedLink)]
    assert [one.found for one in made] == [False, False, True]
    assert made[2].card.link.id == made[0].card.link.id
    assert len({one.card.link.id for one in made}) == 2


async def test_seed_001_clicks_are_counted_beside_the_link_and_no_row_means_none(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
        other = await make.link(session, rt, ada)
        session.add(
            LinkTotals(link_id=link.id, total_clicks=7, bot_clicks=2, last_clicked_at=clock.now())
        )
    async with rt.db.read() as session:
        cards = await queries.load_cards(
            session, [await session.get_one(Link, number) for number in (link.id, other.id)]
        )
        shown = [card.to_schema("", clock.now()) for card in cards]
        hidden = cards[0].to_schema("", clock.now(), stats=False, managing=False)

    assert [(one.total_clicks, one.bot_clicks, one.last_clicked_at) for one in shown] == [
        (7, 2, clock.now()),
        (0, 0, None),
    ]
    assert (
        hidden.total_clicks,
        hidden.bot_clicks,
        hidden.last_clicked_at,
        hidden.owners[0].email,
    ) == (None, None, None, None)
    assert shown[0].updated_at == link.created_at
    assert shown[0].status is LinkState.ACTIVE
