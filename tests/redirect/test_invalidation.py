"""Cache invalidation: by this process, by others, out of order, and after a lost connection."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, func, insert, select, update

from refract.core.clock import ManualClock
from refract.core.db.raw import RawRow
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.links import feed, service
from refract.links.changes import ALL_TARGETS, TargetChange
from refract.links.models import FeedEntry, Link
from refract.redirect import invalidation as bus_module
from refract.redirect.cache import CachedRedirect
from refract.redirect.jobs import TrimFeed, trim_feed
from tests import make
from tests.conftest import make_settings
from tests.redirect.nodes import Place, open_place
from tests.waiting import eventually


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data", database_url=database, role="redirect", misses_per_minute=None
    )


@pytest.fixture
async def other(rt: Runtime) -> AsyncIterator[Runtime]:
    """Another process with the same database, whose commits are not signalled here."""
    db = Database(rt.settings)
    yield Runtime(settings=rt.settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    await db.close()


@pytest.fixture
async def place(rt: Runtime) -> AsyncIterator[Place]:
    async with open_place(rt) as here:
        yield here


async def new_link(other: Runtime, owner: User, name: str) -> Link:
    async with other.db.write() as session:
        return await make.link(session, other, owner, name=name)


async def listen_once(place: Place, clock: ManualClock) -> None:
    assert await place.engine.invalidator.poll()
    clock.advance(1)


async def test_what_another_process_made_is_found_and_what_it_changed_is_forgotten(
    place: Place, other: Runtime, ada: User, clock: ManualClock
) -> None:
    assert (await place.get("/x")).status_code == 404
    clock.advance(1)
    link = await new_link(other, ada, "X")
    assert (await place.get("/x")).status_code == 404  # as far as we know
    await listen_once(place, clock)
    assert (await place.get("/x")).status_code == 302

    async with other.db.write() as session:
        await service.disable_link(session, make.who(ada), link.id, clock.now())
    await listen_once(place, clock)

    assert not place.cached
    assert (await place.get("/x")).status_code == 410


async def test_what_is_ready_counts_only_while_the_feed_is_looked_at(
    place: Place, clock: ManualClock
) -> None:
    """A suspended process must not serve from its cache before it has read the feed."""
    await listen_once(place, clock)
    until = place.engine.cache.trusted_until_ns
    assert clock.now_ns() < until
    clock.advance(bus_module.LEASE_SECONDS)
    assert clock.now_ns() >= until

    await listen_once(place, clock)

    assert clock.now_ns() < place.engine.cache.trusted_until_ns


async def test_it_counts_from_the_question_not_from_the_answer(
    place: Place, clock: ManualClock
) -> None:
    rows = place.engine.invalidator._reader.fetch_rows

    async def after_a_long_sleep(statement: str, *values: object) -> Sequence[RawRow]:
        found = await rows(statement, *values)
        clock.advance(100)
        return found

    place.engine.invalidator._reader.fetch_rows = after_a_long_sleep  # type: ignore[method-assign]
    assert await place.engine.invalidator.poll()

    assert clock.now_ns() >= place.engine.cache.trusted_until_ns


async def test_nothing_is_forgotten_twice(
    place: Place, other: Runtime, ada: User, clock: ManualClock
) -> None:
    await new_link(other, ada, "x")
    await listen_once(place, clock)
    await place.get("/x")
    for _ in range(3):
        await listen_once(place, clock)

    assert place.cached == {b"/x"}
    assert place.engine.invalidator.invalidated == 1


@pytest.mark.parametrize(
    "database", ["postgresql", "mysql"], indirect=True
)  # SQLite has one writer at a time
async def test_a_lower_number_that_is_committed_later_is_heard(
    place: Place, rt: Runtime, other: Runtime, clock: ManualClock
) -> None:
    _keep(place, 1, 2)
    slow, quick = other.db.open_write_session(), rt.db.open_write_session()
    async with slow, quick:
        await slow.execute(insert(FeedEntry), [_row(1)])
        await quick.execute(insert(FeedEntry), [_row(2)])
        await quick.commit()
        await listen_once(place, clock)
        assert place.cached == {b"/1"}

        clock.advance(20)
        await slow.commit()
    await listen_once(place, clock)

    assert not place.cached
    assert place.engine.invalidator.invalidated == 2


async def test_a_number_that_was_rolled_back_is_looked_for_no_longer_than_needed(
    place: Place, rt: Runtime, other: Runtime, clock: ManualClock
) -> None:
    async with other.db.open_write_session() as lost:
        await lost.execute(insert(FeedEntry), [_row(1)])
        await lost.rollback()
    async with rt.db.write() as session:
        await session.execute(insert(FeedEntry), [_row(2)])
    await listen_once(place, clock)

    clock.advance(bus_module.GAP_TIMEOUT)
    await listen_once(place, clock)

    assert not place.engine.invalidator._gaps


async def test_everything_is_forgotten_when_it_must_be(
    place: Place, other: Runtime, clock: ManualClock
) -> None:
    _keep(place, 1, 2)
    async with other.db.write() as session:
        await feed.publish_changes(session, [TargetChange(ALL_TARGETS, 0, ())])
    await listen_once(place, clock)

    assert not place.cached


async def test_a_feed_that_went_on_without_us_means_that_nothing_is_trusted(
    place: Place, rt: Runtime, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        await session.execute(insert(FeedEntry), [_row(5)])
    await listen_once(place, clock)
    _keep(place, 1)
    async with rt.db.write() as session:
        await session.execute(delete(FeedEntry))  # as after a restore
    await listen_once(place, clock)

    assert not place.cached


async def test_a_flood_of_changes_is_not_gone_through_one_by_one(
    place: Place, rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "MAX_ROWS", 10)
    monkeypatch.setattr(bus_module, "_CHANGES_ORDER", " ORDER BY number LIMIT 11")
    _keep(place, 1)
    async with rt.db.write() as session:
        await session.execute(insert(FeedEntry), [_row(number) for number in range(100, 130)])
    await listen_once(place, clock)

    assert not place.cached
    _keep(place, 1)
    await listen_once(place, clock)
    assert place.cached == {b"/1"}


async def test_old_news_is_removed_but_never_the_last(
    place: Place, rt: Runtime, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        await session.execute(insert(FeedEntry), [_row(number) for number in range(20)])
        await session.execute(update(FeedEntry).values(at=datetime.now(UTC) - timedelta(minutes=6)))
    await listen_once(place, clock)
    _keep(place, 1)

    await trim_feed(rt, TrimFeed())

    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(FeedEntry)) == 1
    async with rt.db.write() as session:
        await session.execute(insert(FeedEntry), [_row(99)])
    await trim_feed(rt, TrimFeed())
    await listen_once(place, clock)
    assert place.cached == {b"/1"}


async def test_the_bus_runs_by_itself(rt: Runtime, other: Runtime, ada: User) -> None:
    async with open_place(rt, listening=True) as here:
        await new_link(other, ada, "x")
        await eventually(lambda: here.engine.invalidator.invalidated == 1)
        async with rt.db.write() as session:
            await make.link(session, rt, ada, name="y")
        assert (
            here.engine.invalidator.invalidated >= 2
        )  # told at once, before the commit's caller goes on


def _keep(place: Place, *targets: int) -> None:
    for target in targets:
        assert place.engine.cache.fill(
            b"/%d" % target, CachedRedirect(target, 1, b""), place.engine.cache.now()
        )


def _row(target: int) -> dict[str, object]:
    return {"at": datetime.now(UTC), "target_id": target, "version": 1, "names": []}
