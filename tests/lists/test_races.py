"""Concurrent changes: a name has one winner and leaves no orphan.

Positions run from 1 to n whatever eight clients do.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError, StoreBusy
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists import service
from refract.lists.access import ListCaller
from refract.lists.errors import EntryNotFound, OrderMismatch
from refract.lists.models import LinkList, ListAction, ListEntry
from refract.lists.sections import ListItem
from refract.names.errors import SlugTaken
from refract.names.models import Name
from tests import make
from tests.machine import size
from tests.processes import processes

PUBLISHERS = size("CLAIMERS", 8)
ROUNDS = size("ROUNDS", 3)
STEPS = size("REORDERS", 8)
CLIENTS = 8
A = "https://example.com/a"


async def _until_done(rt: Runtime, step: Callable[[WriteSession], Awaitable[object]]) -> str:
    """Run a change as the API does: retry while the database is busy."""
    for _ in range(50):
        try:
            async with rt.db.write() as session:
                await step(session)
        except StoreBusy:
            continue
        except RefractError as exc:
            return type(exc).__name__
        return "done"
    return "busy"


async def test_two_publish_the_same_slug_and_one_wins(rt: Runtime, ada: User) -> None:
    async with processes(rt, PUBLISHERS) as own:
        for turn in range(ROUNDS):
            drafts = []
            for number in range(PUBLISHERS):
                async with rt.db.write() as session:
                    who = (
                        ListCaller(ada.id) if number % 2 else ListCaller(creator=f"{turn}-{number}")
                    )
                    made = await make.list_of(session, rt, who, A)
                    await service.set_draft_slug(
                        session, make.space(rt), who, made.id, f"reading-{turn}"
                    )
                    drafts.append((who, made.id))

            def publish(one: Runtime, who: ListCaller, list_id: int) -> Awaitable[str]:
                return _until_done(
                    one,
                    lambda session: service.publish_list(session, make.space(one), who, list_id),
                )

            results = await asyncio.gather(
                *(publish(one, *draft) for one, draft in zip(own, drafts, strict=True))
            )
            assert sorted(results) == sorted(["done"] + [SlugTaken.__name__] * (PUBLISHERS - 1))

    async with rt.db.read() as reading:
        names = {name.key: name.target_id for name in await reading.scalars(select(Name))}
        lists = list(await reading.scalars(select(LinkList)))
        log = list(await reading.scalars(select(ListAction)))
    published = {one.slug: one.id for one in lists if one.status == "published"}
    assert names == published
    assert set(names) == {f"reading-{turn}" for turn in range(ROUNDS)}
    assert {action.list_id for action in log} == set(
        published.values()
    )  # what a loser began is gone without a trace
    assert all(
        one.edition is None and one.published_at is None for one in lists if one.status == "draft"
    )


async def test_a_publisher_that_lost_may_retry_under_another_name(rt: Runtime, ada: User) -> None:
    space, who = make.space(rt), ListCaller(ada.id)
    async with rt.db.write() as session:
        first, second = (
            await make.list_of(session, rt, who, A),
            await make.list_of(session, rt, who, A),
        )
        for draft in (first, second):
            await service.set_draft_slug(session, space, who, draft.id, "reading")
    results = await asyncio.gather(
        *(
            _until_done(
                rt,
                lambda session, draft=draft: service.publish_list(  # type: ignore[misc]
                    session, space, who, draft.id
                ),
            )
            for draft in (first, second)
        )
    )
    assert sorted(results) == ["SlugTaken", "done"]
    loser = first if results[0] == "SlugTaken" else second

    async with rt.db.write() as session:
        await service.set_draft_slug(session, space, who, loser.id, "reading-2")
        assert (await service.publish_list(session, space, who, loser.id)).slug == "reading-2"


async def _busy_client(rt: Runtime, who: ListCaller, list_id: int, dice: random.Random) -> None:
    for _ in range(STEPS):
        async with rt.db.read() as session:
            ids = list(
                await session.scalars(
                    select(ListEntry.id)
                    .where(ListEntry.list_id == list_id)
                    .order_by(ListEntry.position)
                )
            )
        wish = dice.choice(["add", "remove", "reorder", "shift"])
        chosen = dice.choice(ids) if ids else 0
        shuffled = dice.sample(ids, len(ids))

        async def step(
            session: WriteSession,
            wish: str = wish,
            chosen: int = chosen,
            shuffled: list[int] = shuffled,
        ) -> None:
            now = rt.clock.now()
            match wish:
                case "add":
                    await service.add_entries(
                        session,
                        make.space(rt),
                        who,
                        list_id,
                        [make.address(A)] * dice.randint(1, 3),
                    )
                case "remove":
                    await service.remove_entry(session, who, list_id, chosen, now)
                case "reorder":
                    await service.reorder_entries(session, who, list_id, shuffled, now)
                case "shift":
                    await service.move_item(
                        session, who, list_id, ListItem(chosen), dice.choice([-1, 1]), now
                    )

        assert await _until_done(rt, step) in (
            "done",
            EntryNotFound.__name__,
            OrderMismatch.__name__,
        )


async def test_eight_clients_add_remove_and_reorder(rt: Runtime, ada: User) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    who = ListCaller(ada.id)
    async with rt.db.write() as session:
        made = await make.list_of(
            session, rt, who, *(f"https://example.com/{number}" for number in range(6))
        )
    async with processes(rt, CLIENTS) as own:
        await asyncio.gather(
            *(
                _busy_client(one, who, made.id, random.Random(seed + place))
                for place, one in enumerate(own)
            )
        )

    async with rt.db.read() as reading:
        positions = list(
            await reading.scalars(select(ListEntry.position).where(ListEntry.list_id == made.id))
        )
    assert sorted(positions) == list(range(1, len(positions) + 1))


async def test_two_editions_published_at_once_come_one_after_the_other(
    rt: Runtime, ada: User
) -> None:
    """Publish two drafts of one list: each takes over the name, and edition numbers are unique."""
    space, who = make.space(rt), ListCaller(ada.id)
    async with rt.db.write() as session:
        first = await make.list_of(session, rt, who, A)
        await service.publish_list(session, space, who, first.id)
        drafts = [await make.list_of(session, rt, who, A) for _ in range(4)]
        for draft in drafts:  # as old databases may have them: the service begins one at a time
            draft.family_id, draft.slug = first.id, first.slug
    async with processes(rt, len(drafts)) as own:
        results = await asyncio.gather(
            *(
                _until_done(
                    node,
                    lambda session, rt=node, new=draft: service.publish_list(  # type: ignore[misc]
                        session, make.space(rt), who, new.id
                    ),
                )
                for node, draft in zip(own, drafts, strict=True)
            )
        )

    assert results == ["done"] * 4
    async with rt.db.read() as reading:
        editions = {one.id: one.edition for one in await reading.scalars(select(LinkList))}
        (holder,) = list(await reading.scalars(select(Name.target_id)))
    assert sorted(edition or 0 for edition in editions.values()) == [1, 2, 3, 4, 5]
    assert editions[holder] == 5
