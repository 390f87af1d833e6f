"""Races for one name, which exactly one claimer wins."""

import asyncio

import pytest
from sqlalchemy import select

from refract.core.errors import StoreBusy
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.models import Link, LinkOwner
from refract.names.errors import SlugTaken
from refract.names.models import Name
from tests import make
from tests.machine import size
from tests.processes import processes

CLAIMERS = size("CLAIMERS", 16)
ROUNDS = size("ROUNDS", 2)


async def _claim(rt: Runtime, ada: User, names: list[str], start: asyncio.Event) -> str:
    """Return what one client sees. A busy database is retried, as the API does."""
    await start.wait()
    for _ in range(20):
        try:
            async with rt.db.write() as session:
                await make.link(session, rt, ada, names=names)
        except SlugTaken:
            return "taken"
        except StoreBusy:
            continue
        return "won"
    return "busy"


@pytest.mark.parametrize("order", ["same", "mixed"])
async def test_exactly_one_claimer_wins_a_name(rt: Runtime, ada: User, order: str) -> None:
    """Each claimer has its own connection pool and worker id, like a process of its own."""
    async with processes(rt, CLAIMERS) as own:
        for turn in range(ROUNDS):
            spellings = [f"Road_Map-{turn}", f"road-map-{turn}", f"ROAD-map_{turn}"]
            names = [[f"x{turn}", spellings[number % 3]] for number in range(CLAIMERS)]
            if order == "mixed":
                names = [
                    wanted if number % 2 else wanted[::-1] for number, wanted in enumerate(names)
                ]
            start = asyncio.Event()
            tasks = [
                asyncio.create_task(_claim(process, ada, wanted, start))
                for process, wanted in zip(own, names, strict=True)
            ]
            start.set()
            results = await asyncio.gather(*tasks)
            assert sorted(set(results)) == ["taken", "won"]
            assert results.count("won") == 1

    async with rt.db.read() as session:
        links = set(await session.scalars(select(Link.id)))
        names_of = [(name.key, name.target_id) for name in await session.scalars(select(Name))]
        owned = set(await session.scalars(select(LinkOwner.link_id)))
    assert len(links) == ROUNDS  # nothing of the losers is left
    assert links == owned == {target for _, target in names_of}
    assert len(names_of) == 2 * ROUNDS
