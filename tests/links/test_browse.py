"""Lists of links: filters, sorting, cursors, search, and the number of queries."""

from datetime import timedelta
from typing import Any

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.pagination import CursorCodec, InvalidCursor
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.enums import LinkState, Visibility
from refract.links.jobs import AssignOwners, assign_owners
from refract.links.models import Link, LinkTotals
from refract.links.queries import LinkFilter, LinkSort, OwnerFilter, candidates, facets
from refract.links.schemas import LinkPatch
from tests import make


@pytest.fixture(params=[candidates.MAX_CANDIDATES, 2], ids=["few", "many"])
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three links be many, so that they are read in order instead of being sorted."""
    monkeypatch.setattr(candidates, "MAX_CANDIDATES", request.param)


async def _all(
    rt: Runtime, user: User, limit: int = 200, *, admin: bool = False, **asked: Any
) -> list[str]:
    """Return the titles of all pages, read page by page."""
    titles: list[str] = []
    cursor = None
    for _ in range(100):
        async with rt.db.read() as session:
            page = await queries.load_links_page(
                session,
                CursorCodec(rt.secret),
                make.who(user, admin=admin),
                LinkFilter(**asked),
                rt.clock.now(),
                limit=limit,
                cursor=cursor,
            )
        assert len(page.items) <= limit
        titles += [link.title or "" for link in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return titles
        assert page.items
    raise AssertionError


async def _links(
    rt: Runtime, owner: User, clock: ManualClock, titles: str, **given: Any
) -> dict[str, Link]:
    made = {}
    for title in titles:
        async with rt.db.write() as session:
            made[title] = await make.link(
                session, rt, owner, f"https://example.com/{title}", title=title, **given
            )
        clock.advance(1)
    return made


async def test_seed_001_my_links_newest_first(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    await _links(rt, ada, clock, "abcde")
    await _links(rt, bob, clock, "xy")

    for limit in (1, 2, 5, 200):
        assert await _all(rt, ada, limit) == list("edcba")


@pytest.mark.usefixtures("bound")
async def test_seed_002_mine_means_owned_or_co_owned(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, cleo: User
) -> None:
    links = await _links(rt, ada, clock, "ab")
    await _links(rt, bob, clock, "c")
    async with rt.db.write() as session:
        await service.add_owner(session, make.who(ada), links["a"].id, bob.email, clock.now())
        await service.share_link(session, make.who(ada), links["b"].id, bob.email, clock.now())

    assert await _all(rt, bob) == ["c", "a"]
    assert await _all(rt, bob, owner=OwnerFilter.SHARED) == ["b"]
    assert await _all(rt, cleo) == []


@pytest.mark.usefixtures("bound")
async def test_everybody_finds_public_links_and_administrators_find_all(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, root: User
) -> None:
    await _links(rt, ada, clock, "a", visibility="public")
    await _links(rt, ada, clock, "b", visibility="secure")
    await _links(rt, bob, clock, "c")

    assert await _all(rt, bob, owner=OwnerFilter.PUBLIC) == ["a"]
    assert await _all(rt, root, owner=OwnerFilter.ALL, admin=True) == list("cba")


@pytest.mark.usefixtures("bound")
async def test_links_of_one_millisecond_are_neither_skipped_nor_repeated(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    """A position without the id as a tie-break would skip rows."""
    async with rt.db.write() as session:
        wishes = [await make.new_link(rt, title=str(number)) for number in range(30)]
        made = await service.create_links(session, rt, ada, wishes, charged=False)
        for number, result in enumerate(made):
            if number % 3:
                assert isinstance(result, service.CreatedLink)
                session.add(
                    LinkTotals(
                        link_id=result.card.link.id,
                        total_clicks=number % 2,
                        bot_clicks=1,
                        last_clicked_at=clock.now(),
                    )
                )
    expected = [str(number) for number in reversed(range(30))]
    for sort in LinkSort:
        found = await _all(rt, ada, 7, sort=sort)
        assert sorted(found) == sorted(expected)
    assert await _all(rt, ada, 7) == expected
    assert await _all(rt, ada, 7, sort=LinkSort.UPDATED) == expected


@pytest.mark.usefixtures("bound")
async def test_orders(rt: Runtime, clock: ManualClock, ada: User, root: User) -> None:
    links = await _links(rt, ada, clock, "abcdef")
    clicks = {"b": (5, 10), "c": (9, 5), "e": (5, 20), "f": (0, None)}
    async with rt.db.write() as session:
        for title, (count, minutes) in clicks.items():
            at = None if minutes is None else clock.now() + timedelta(minutes=minutes)
            session.add(
                LinkTotals(
                    link_id=links[title].id, total_clicks=count, bot_clicks=3, last_clicked_at=at
                )
            )
        await service.edit_link(
            session, make.space(rt), make.who(ada), links["b"].id, LinkPatch(notes="moved")
        )

    for limit in (1, 2, 3, 200):
        every: list[tuple[User, dict[str, Any]]] = [
            (ada, {}),
            (root, {"owner": OwnerFilter.ALL, "admin": True}),
        ]
        for user, asked in every:
            assert await _all(rt, user, limit, sort=LinkSort.UPDATED, **asked) == list("bfedca")
            assert await _all(rt, user, limit, sort=LinkSort.CLICKS, **asked) == list("cebfda")
            assert await _all(rt, user, limit, sort=LinkSort.LAST_CLICK, **asked) == list("ebcfda")


@pytest.mark.usefixtures("bound")
async def test_seed_001_state_in_filters_is_computed_from_time(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    links = await _links(rt, ada, clock, "abcd")
    await _links(rt, ada, clock, "efg", expires_at=clock.now() + timedelta(hours=1))
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), links["b"].id, clock.now())
        await service.delete_link(session, make.who(ada), links["c"].id, clock.now())

    async def by_state() -> dict[str, str]:
        return {state.value: "".join(await _all(rt, ada, status=state)) for state in LinkState}

    assert await by_state() == {
        "active": "gfeda",
        "disabled": "b",
        "expired": "",
        "deleted": "c",
        "on_hold": "",
    }
    clock.advance(3600)
    expected = {"active": "da", "disabled": "b", "expired": "gfe", "deleted": "c", "on_hold": ""}
    assert await by_state() == expected
    async with rt.db.write() as session:
        await service.mark_expired(session, clock.now(), limit=2)
    assert await by_state() == expected
    assert await _all(rt, ada) == list("gfedba")  # without a state: everything but deleted links


async def test_seed_001_links_can_be_filtered_by_when_they_were_made(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    links = await _links(rt, ada, clock, "abcd")

    assert await _all(rt, ada, created_after=links["b"].created_at) == list("dcb")
    assert await _all(rt, ada, created_before=links["b"].created_at) == ["a"]
    assert await _all(
        rt,
        ada,
        created_after=links["b"].created_at,
        created_before=links["d"].created_at,
        sort=LinkSort.CLICKS,
    ) == list("cb")


@pytest.mark.usefixtures("bound")
async def test_seed_002_links_can_be_filtered_by_tag(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    await _links(rt, ada, clock, "ab", tags=["Engineering Tools", "x"])
    await _links(rt, ada, clock, "c", tags=["x"])
    await _links(rt, bob, clock, "d", tags=["engineering tools"])

    for tag in ("Engineering Tools", "engineering-tools"):
        assert await _all(rt, ada, tags=(tag,)) == ["b", "a"]
    assert await _all(rt, ada, 1, tags=("x",), sort=LinkSort.CLICKS) == list("cba")
    assert await _all(rt, ada, tags=("unknown",)) == []
    assert await _all(rt, ada, tags=("x", "engineering tools")) == ["b", "a"]
    assert await _all(rt, ada, tags=("x", "X")) == list("cba")
    assert await _all(rt, ada, tags=("x", "unknown")) == []


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("roadmap", "a"),
        ("ROADMAP", "a"),
        ("team_page", "b"),
        ("team-page", "b"),
        ("über", "c"),
        ("ÜBER", "c"),
        ("uber", "c"),
        ("secret", "d"),
        ("ecre", "d"),
        ("oadma", "a"),
        ("example.com", "dcba"),
        ("example.com plan", "a"),
        ("plan 2027", "a"),
        ("2027 plan", "a"),
        ("100%", "b"),
        ("%", "b"),
        ("_", "cb"),
        ("\\", "c"),
        ("/", "dcba"),
        ("   ", "dcba"),
        ("日本", "d"),
        ("日本語", "d"),
        ("the", "d"),  # a word that full-text indexes leave out
        ("http", "dcba"),
        ("ttps://exa", "dcba"),
        ("l'été", "d"),
        ("l'ete", "d"),
        ("nothing", ""),
    ],
)
@pytest.mark.usefixtures("bound")
async def test_search_looks_through_name_title_notes_and_destination(
    rt: Runtime, clock: ManualClock, ada: User, q: str, found: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"title": "a", "names": ["RoadMap"], "notes": "plan for 2027"},
        {"title": "b", "names": ["Team_Page"], "notes": "100% ours"},
        {"title": "c", "notes": "Über _uns \\o/"},
        {"title": "d", "notes": "the Secret 日本語 de l'Été"},
    ]
    for row in rows:
        async with rt.db.write() as session:
            await make.link(session, rt, ada, f"https://example.com/{row['title']}", **row)
        clock.advance(1)

    assert await _all(rt, ada, q=q) == list(found)


async def test_a_cursor_belongs_to_one_question_of_one_person(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    await _links(rt, ada, clock, "abc")
    async with rt.db.read() as session:

        async def page(user: User, cursor: str | None, **asked: Any) -> str | None:
            found = await queries.load_links_page(
                session,
                CursorCodec(rt.secret),
                make.who(user),
                LinkFilter(**asked),
                clock.now(),
                limit=1,
                cursor=cursor,
            )
            return found.next_cursor

        cursor = await page(ada, None)
        assert cursor is not None
        assert len(cursor) <= 512
        await page(ada, cursor)
        for user, asked in (
            (bob, {}),
            (ada, {"sort": LinkSort.UPDATED}),
            (ada, {"q": "a"}),
            (ada, {"status": LinkState.ACTIVE}),
        ):
            with pytest.raises(InvalidCursor):
                await page(user, cursor, **asked)
        for broken in (cursor[:-1], cursor + "A", cursor.swapcase(), "x", "", "é", "A" * 600):
            if broken:
                with pytest.raises(InvalidCursor):
                    await page(ada, broken)


@pytest.mark.usefixtures("bound")
async def test_own_links_by_clicks_and_tags_include_those_without_copies(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    """Co-owned links, and those that were clicked for the first time a moment ago."""
    own = await _links(rt, ada, clock, "abcd", tags=["x"])
    other = await _links(rt, bob, clock, "efg", tags=["x"])
    clicks = {"a": 5, "b": 0, "c": 9, "e": 7, "f": 8}
    every = own | other
    async with rt.db.write() as session:
        await service.add_owner(session, make.who(bob), other["e"].id, ada.email, clock.now())
        for title in "abef":
            at = clock.now() + timedelta(minutes=clicks[title])
            session.add(
                LinkTotals(
                    link_id=every[title].id,
                    total_clicks=clicks[title],
                    bot_clicks=0,
                    last_clicked_at=at if clicks[title] else None,
                )
            )
    for limit in (1, 2, 200):
        for sort in queries.CLICK_SORTS:
            assert await _all(rt, ada, limit, sort=sort) == list("eadcb")
    await assign_owners(rt, AssignOwners())
    async with rt.db.write() as session:
        at = clock.now() + timedelta(minutes=9)
        session.add(
            LinkTotals(link_id=own["c"].id, total_clicks=9, bot_clicks=0, last_clicked_at=at)
        )
    for limit in (1, 2, 200):
        for sort in queries.CLICK_SORTS:
            for asked in ({}, {"tags": ("x",)}, {"status": LinkState.ACTIVE}):
                assert await _all(rt, ada, limit, sort=sort, **asked) == list("ceadb")
        assert await _all(rt, ada, limit, tags=("x",)) == list("edcba")
        assert await _all(rt, ada, limit, tags=("x",), sort=LinkSort.UPDATED) == list("edcba")


async def test_counts_of_states_are_what_the_filters_show(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    soon = clock.now() + timedelta(hours=1)
    own = await _links(rt, ada, clock, "abcd")
    await _links(rt, ada, clock, "ef", expires_at=soon)
    held = await _links(rt, bob, clock, "ghi")
    held |= await _links(rt, bob, clock, "j", expires_at=soon)
    async with rt.db.write() as session:
        for link in held.values():
            await service.add_owner(session, make.who(bob), link.id, ada.email, clock.now())
        await service.disable_link(session, make.who(ada), own["b"].id, clock.now())
        await service.delete_link(session, make.who(ada), own["c"].id, clock.now())
        await service.disable_link(session, make.who(bob), held["h"].id, clock.now())
        await service.delete_link(session, make.who(bob), held["i"].id, clock.now())
    shown: dict[str, int] = {}
    for held_at in (None, clock.now()):
        async with rt.db.write() as session:
            (await session.get_one(User, bob.id)).held_at = held_at
        for late in (False, True):
            clock.advance(3600 * late)
            shown = {state.value: len(await _all(rt, ada, status=state)) for state in LinkState}
            async with rt.db.read() as session:
                assert await queries.count_states(session, ada.id, clock.now()) == shown
    async with rt.db.write() as session:
        assert await service.mark_expired(session, clock.now()) == 3
    async with rt.db.read() as session:
        assert await queries.count_states(session, ada.id, clock.now()) == shown


async def test_counts_follow_the_search_and_every_other_filter(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    soon = clock.now() + timedelta(hours=1)
    first = await _links(rt, ada, clock, "abc", tags=["one", "two"])
    start = clock.now()
    await _links(rt, ada, clock, "ab", tags=["two"], expires_at=soon, visibility="public")
    await _links(rt, bob, clock, "a", tags=["one"], visibility="public")
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), first["a"].id, clock.now())
        await service.delete_link(session, make.who(ada), first["c"].id, clock.now())
    clock.advance(3600)
    searches: list[dict[str, Any]] = [
        {},
        {"q": "example.com/a"},
        {"q": "nothing like it"},
        {"tags": ("two",)},
        {"tags": ("unknown",)},
        {"tags": ("one", "two"), "q": "example"},
        {"created_after": start},
        {"visibility": Visibility.PUBLIC},
        {"owner": OwnerFilter.PUBLIC},
        {"owner": OwnerFilter.SHARED},
    ]
    for asked in searches:
        for status in (None, *LinkState):
            async with rt.db.read() as session:
                counts = await queries.count_links(
                    session, make.who(ada), LinkFilter(status=status, **asked), clock.now()
                )
            shown = {state: len(await _all(rt, ada, status=state, **asked)) for state in LinkState}
            assert counts.states == shown, asked
            assert counts.get_total(status) == len(await _all(rt, ada, status=status, **asked))
            assert not counts.has_more
            for tag in counts.tags:
                tags = (*asked.get("tags", ()), tag.slug)
                found = await _all(rt, ada, status=status, **asked | {"tags": tags})
                assert tag.links == len(found), (asked, status, tag)


async def test_counts_above_the_limit_are_marked_as_minimums(
    rt: Runtime, clock: ManualClock, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rt.db.read() as session:  # builds the statements, which are kept
        await queries.count_links(session, make.who(ada), LinkFilter(), clock.now())
    monkeypatch.setattr(facets, "MAX_COUNTED", 3)
    await _links(rt, ada, clock, "abc", tags=["x"])
    for expected in (False, True):
        for asked in ({}, {"q": "example"}, {"status": LinkState.ACTIVE}):
            async with rt.db.read() as session:
                counts = await queries.count_links(
                    session, make.who(ada), LinkFilter(**asked), clock.now()
                )
            assert counts.has_more_tagged is expected, asked
            assert counts.has_more is (expected and "q" in asked), asked
        await _links(rt, ada, clock, "d", tags=["x"])


@pytest.mark.parametrize("sort", list(LinkSort))
async def test_a_page_costs_the_same_number_of_queries_at_10_and_at_300_links(
    rt: Runtime, clock: ManualClock, ada: User, sort: LinkSort
) -> None:
    counts = []
    made = 0
    for rows in (10, 300):
        async with rt.db.write() as session:
            wishes = [
                await make.new_link(
                    rt, f"https://example.com/{number}", names=[f"n{number}"], tags=["x"]
                )
                for number in range(made, rows)
            ]
            await service.create_links(session, rt, ada, wishes, charged=False)
        made = rows
        asked: list[str] = []
        stop = count_statements(rt.db.read_engine, asked.append)
        async with rt.db.read() as session:
            page = await queries.load_links_page(
                session,
                CursorCodec(rt.secret),
                make.who(ada),
                LinkFilter(sort=sort, tags=("x",)),
                clock.now(),
                limit=200,
                cursor=None,
            )
            cards = await queries.load_cards(session, page.items)
        stop()
        counts.append(len([statement for statement in asked if statement.startswith("SELECT")]))
        assert len(cards) == min(rows, 200)
        assert all(card.names and card.tags and card.owners for card in cards)

    assert counts[0] == counts[1] <= 7
