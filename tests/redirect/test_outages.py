"""An unavailable database: cached links keep working, and unknown names are not called missing.

Everything recovers automatically.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from refract.core.clock import SystemClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.identity.models import User
from refract.links import service
from refract.redirect.engine import READER_CONNECTIONS
from refract.redirect.visitors import Visitor
from tests import make
from tests.conftest import make_settings
from tests.proxy import Proxy, proxied
from tests.redirect.nodes import Place, open_place
from tests.waiting import eventually

pytestmark = pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
"""A file is never away; servers are."""


@dataclass
class World:
    place: Place
    door: Proxy
    inside: Runtime
    """Somebody who reaches the database whatever happens at the door."""
    ada: User


@pytest.fixture
async def world(database: str, tmp_path: Path) -> AsyncIterator[World]:
    (tmp_path / "data").mkdir()
    clock = SystemClock()
    async with proxied(database) as (door, url):
        here, inside = (
            Database(make_settings(tmp_path, database_url=url)),
            Database(make_settings(tmp_path, database_url=database)),
        )
        rts = [
            Runtime(
                settings=make_settings(
                    tmp_path / "data",
                    database_url=url,
                    role="redirect",
                    misses_per_minute=None,
                    spool_reader="elsewhere",
                ),
                db=db,
                clock=clock,
                ids=SnowflakeGenerator(number, clock),
                secret=Secret(b"s" * 40),
            )
            for number, db in enumerate((here, inside), start=1)
        ]
        async with rts[1].db.write() as session:
            ada = await make.person(session, rts[1], "ada")
            await make.link(session, rts[1], ada, "https://example.com/known", name="known")
        async with open_place(rts[0], listening=True) as place:
            yield World(place, door, rts[1], ada)
        await door.cut()
        await here.close()
        await inside.close()


async def answers(place: Place | httpx.AsyncClient, path: str, status: int) -> None:
    """Wait for a response with this status."""

    async def answered() -> bool:
        return (await place.get(path)).status_code == status

    await eventually(answered)


@pytest.mark.parametrize("way", ["cut", "hang"])
async def test_what_is_cached_goes_on_and_what_is_unknown_is_not_called_missing(
    world: World, way: str
) -> None:
    place = world.place
    async with place.on_the_wire() as wire:
        assert (await wire.get("/known")).status_code == 302
        await (world.door.cut() if way == "cut" else asyncio.to_thread(world.door.hang))
        assert (await wire.get("/known")).status_code == 302
        await eventually(lambda: place.engine.invalidator.feed_lost)
        assert not place.cached

        for _ in range(3):
            answer = await wire.get("/known")
            assert (answer.status_code, answer.headers["location"]) == (
                302,
                "https://example.com/known",
            )
        unknown = await wire.get("/unknown")
        assert (unknown.status_code, unknown.headers["retry-after"]) == (503, "2")
        assert len(place.clicks()) == 5
        ready = await wire.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (
            200,
            "degraded",
        )  # worth being sent traffic
        assert (await wire.get("/health")).json()["status"] == "ok"

        await world.door.mend()
        await eventually(lambda: not place.engine.invalidator.feed_lost)
        await answers(wire, "/unknown", 404)
        assert (await wire.get("/known")).status_code == 302
        assert place.cached == {b"/known"}


async def test_a_process_has_connected_before_it_is_ready(world: World) -> None:
    """The first lookups of a new process ran out of time while it connected to a busy server."""
    names = [f"new{number}" for number in range(READER_CONNECTIONS)]
    async with world.inside.db.write() as session:
        for name in names:
            await make.link(session, world.inside, world.ada, "https://example.com", name=name)
    world.door.refuse()

    answers = await asyncio.gather(*(world.place.get(f"/{name}") for name in names))

    assert [answer.status_code for answer in answers] == [302] * READER_CONNECTIONS


async def test_only_some_wait_for_a_database_that_says_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.redirect.asgi.STALE_GRACE", 3600.0)
    place = world.place
    async with place.on_the_wire() as wire:
        assert (await wire.get("/known")).status_code == 302
        world.door.hang()
        await eventually(lambda: place.engine.invalidator.feed_lost)
        assert (await wire.get("/known")).status_code == 302  # waited for an answer, for a moment
        asked = len(place.reader.asked)

        assert [(await wire.get("/known")).status_code for _ in range(5)] == [302] * 5

        assert len(place.reader.asked) == asked
        await world.door.mend()


async def test_a_change_made_while_we_were_cut_off_is_heard_afterwards(world: World) -> None:
    place = world.place
    assert (await place.get("/known")).status_code == 302
    await world.door.cut()
    await eventually(lambda: place.engine.invalidator.feed_lost)
    async with world.inside.db.write() as session:
        link = await service.delete_link(
            session, make.who(world.ada), await _only_link(world), world.inside.clock.now()
        )
        assert link.state == "deleted"
    assert (await place.get("/known")).status_code == 302  # nobody can be asked

    await world.door.mend()
    await eventually(lambda: not place.engine.invalidator.feed_lost)

    await answers(place, "/known", 410)
    assert not place.cached


async def test_with_the_feed_alone_cut_everything_is_asked_for_again(world: World) -> None:
    place = world.place
    assert (await place.get("/known")).status_code == 302

    class Broken:
        async def fetch_rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
            raise TimeoutError(statement, values)

        async def close(self) -> None:
            return None

    place.engine.invalidator._reader = Broken()
    await eventually(lambda: place.engine.invalidator.feed_lost)
    async with world.inside.db.write() as session:
        await service.disable_link(
            session, make.who(world.ada), await _only_link(world), world.inside.clock.now()
        )

    await answers(place, "/known", 410)


async def test_a_process_that_starts_while_the_database_is_away_serves_once_it_is_back(
    world: World,
) -> None:
    await world.door.cut()
    rt = world.place.rt
    async with open_place(rt, listening=True) as late:
        assert (await late.get("/known")).status_code == 503
        await world.door.mend()
        await answers(late, "/known", 302)
        await eventually(lambda: not late.engine.invalidator.feed_lost)


async def _only_link(world: World) -> int:
    found = (
        await world.place.engine.lookup.find("known")
        if not world.place.engine.invalidator.feed_lost
        else None
    )
    if found is not None:
        return found.id
    stale = world.place.engine.find_stale(b"/known", b"", lambda: Visitor(0))
    assert stale is not None
    return stale.found.id
