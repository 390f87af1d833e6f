"""Several processes write roll-ups at the same time: nothing is lost, nothing is counted twice."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import func, select

from refract import migrations
from refract.clicks import stats
from refract.clicks.ingest import ingester as ingesting
from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.models import OpenRollup, RollupWriter
from refract.clicks.rollups import compaction, pack_updates
from refract.clicks.rollups.granularity import to_seconds
from refract.clicks.rollups.packs import MAX_PACK_BYTES
from refract.clicks.rollups.updater import RollupUpdater
from refract.clicks.rollups.writers import MAX_WRITERS
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.stats import StatsQuery
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.db.session import WriteSession, count_statements
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from tests.clicks.counting import between, by_key, click, count, events_of, stored
from tests.commands import get_fork_context

MORNING = datetime(2026, 6, 20, 8, tzinfo=UTC)
LINKS = range(1, 6)
PROCESSES, CLICKS = 2, 600


def fill(root: Path, seed: int) -> None:
    """Append clicks on the same links by some of the same visitors, over three hours."""
    chance = random.Random(seed)
    spool = SpoolWriter(root, node=f"node{seed}")
    for _ in range(CLICKS // 50):
        spool.append(
            [
                click(
                    chance.choice(LINKS),
                    MORNING + timedelta(seconds=chance.randrange(3 * 3600)),
                    host=f"203.0.{chance.randrange(60)}.1",
                )
                for _ in range(50)
            ]
        )
    spool.close()


def ingest_in_child(settings: Settings, root: Path, start: Barrier) -> None:
    asyncio.run(_ingest(settings, root, start))


async def _ingest(settings: Settings, root: Path, start: Barrier) -> None:
    ingesting.BATCH_SIZE = ingesting.MAX_BATCH_SIZE = 20  # many runs
    async with open_runtime(settings) as rt:
        ingester = Ingester(rt, root)
        await ingester.warm_up()
        await asyncio.to_thread(start.wait)
        while await ingester.apply_all():
            pass


async def test_processes_write_at_once_while_hours_are_closed(
    rt: Runtime, clock: ManualClock, tmp_path: Path
) -> None:
    clock.advance((MORNING + timedelta(hours=8) - clock.now()).total_seconds())
    processes = get_fork_context()
    start, children = processes.Barrier(PROCESSES + 1), []
    for seed in range(PROCESSES):
        root = rt.settings.effective_spool_dir.parent / f"spool{seed}"
        fill(root, seed)
        child = processes.Process(target=ingest_in_child, args=(rt.settings, root, start))
        child.start()
        children.append(child)
    await asyncio.to_thread(start.wait)
    while any(child.is_alive() for child in children):
        await compaction.close_hours(rt)
    assert [child.exitcode for child in children] == [0] * PROCESSES

    figures = await reconcile(rt)
    assert (figures.drift, figures.stored) == ([], PROCESSES * CLICKS)
    for _ in ("still open", "closed"):
        for link in LINKS:
            await _agrees(rt, link)
        await compaction.close_hours(rt)
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(OpenRollup)) == 0
    assert (await reconcile(rt)).drift == []


class PausedUpdater(RollupUpdater):
    """An updater whose transaction stays open until `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def add_clicks(
        self, session: WriteSession, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> None:
        await super().add_clicks(session, tallies)
        self.reached.set()
        await self.go.wait()


@pytest.mark.parametrize(
    "database", ["postgresql", "mysql"], indirect=True
)  # SQLite has one writer
async def test_the_first_run_does_not_wait_for_that_of_another_process(
    rt: Runtime, tmp_path: Path
) -> None:
    ingesters = [Ingester(rt, tmp_path / name) for name in ("a", "b")]
    for link, name in enumerate(("a", "b"), 1):
        spool = SpoolWriter(tmp_path / name, node=name)
        spool.append([click(link, rt.clock.now())])
        spool.close()
    updater = PausedUpdater()
    await ingesters[0].warm_up()
    assert ingesters[0]._tools is not None
    ingesters[0]._tools = replace(ingesters[0]._tools, updater=updater)
    first = asyncio.create_task(ingesters[0].apply_all())
    await asyncio.wait_for(updater.reached.wait(), 30)

    assert await asyncio.wait_for(ingesters[1].apply_all(), 30) == 1

    assert not first.done()
    updater.go.set()
    assert await first == 1
    assert (await reconcile(rt)).drift == []


async def _agrees(rt: Runtime, link: int) -> None:
    """Compare the series of a link, of people and visitors, with its events."""
    end = MORNING + timedelta(hours=3)
    events = between(await events_of(rt, link), MORNING, end)
    query = StatsQuery(MORNING, end, stats.Granularity.HOUR)
    async with rt.db.read() as session:
        found = await stats.get_link_stats(session, link, query, rt.clock.now())
    expected = sorted(by_key(events, ZoneInfo("UTC"), "hour").items())
    assert [(point.clicks, point.uniques) for point in found.series] == [
        (hour.clicks, hour.uniques) for _, hour in expected
    ]
    assert (found.totals.clicks, found.totals.uniques) == count(events)[:2]


def _delta(people: int) -> dict[RollupSlot, RollupDelta]:
    delta = RollupDelta()
    delta.people = people
    return {(7, LINK_CLICK, to_seconds(MORNING)): delta}


async def _count_people(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return int(await session.scalar(select(func.sum(OpenRollup.people))) or 0)


async def test_a_process_reads_only_what_others_have_changed(
    rt: Runtime, clock: ManualClock
) -> None:
    clock.advance((MORNING + timedelta(hours=8) - clock.now()).total_seconds())
    updater = RollupUpdater()
    read = []
    for step in ("first", "second", "closed"):
        if step == "closed":
            await compaction.fold_hours(rt)
        statements: list[str] = []
        stop = count_statements(rt.db.engine, statements.append)
        async with rt.db.write() as session:
            await updater.add_clicks(session, _delta(1))
            if rt.db.dialect == "postgresql":  # its look-up is not seen above
                statements += ["WITH wanted"] * (not updater._rows)
        stop()
        read.append(any(text.startswith("WITH wanted") for text in statements))
    assert read[1] is False
    assert await _count_people(rt) == 1  # the others are folded


async def test_writers_that_run_at_once_do_not_wait_for_each_other(rt: Runtime) -> None:
    first, second = RollupUpdater(), RollupUpdater()
    async with rt.db.write() as session:
        await first.add_clicks(session, _delta(1))  # creates the numbers
    for _ in range(3):
        async with rt.db.write() as one:
            await first.add_clicks(one, _delta(1))
            if rt.db.dialect != "sqlite":  # it has one writer anyway
                async with rt.db.write() as two:
                    await second.add_clicks(two, _delta(1))
    async with rt.db.read() as session:
        rows = (await session.scalars(select(OpenRollup.people))).all()
    assert sorted(rows) == ([4] if rt.db.dialect == "sqlite" else [3, 4])


@pytest.mark.parametrize("pack_bytes", [MAX_PACK_BYTES, 400])
async def test_old_and_new_schema_hold_the_same_clicks(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pack_bytes: int
) -> None:
    monkeypatch.setattr(pack_updates, "MAX_PACK_BYTES", pack_bytes)
    clock.advance((MORNING + timedelta(hours=8) - clock.now()).total_seconds())
    root = rt.settings.effective_spool_dir
    fill(root, 1)
    await Ingester(rt, root).apply_all()
    await compaction.close_hours(rt)
    fill(root, 2)  # late clicks
    await Ingester(rt, root).apply_all()
    await stored(rt, [click(link, clock.now()) for link in LINKS])

    await migrations.downgrade(rt.db, "0030")
    await migrations.upgrade(rt.db)

    assert (await reconcile(rt)).drift == []
    for link in LINKS:
        await _agrees(rt, link)
    async with rt.db.read() as session:
        still_open = await session.scalars(select(OpenRollup.target_id))
        assert sorted(still_open) == list(LINKS)


async def test_the_number_of_a_dead_process_is_used_again(rt: Runtime) -> None:
    for _ in range(MAX_WRITERS[rt.db.dialect] * 2):
        async with rt.db.write() as session:
            await RollupUpdater().add_clicks(session, _delta(1))
    async with rt.db.read() as session:
        rows = (await session.scalars(select(OpenRollup.people))).all()
    assert rows == [2] * MAX_WRITERS[rt.db.dialect] or rt.db.dialect == "sqlite"
    assert sum(rows) == MAX_WRITERS[rt.db.dialect] * 2


async def test_a_process_whose_number_was_taken_over_overwrites_nothing(rt: Runtime) -> None:
    """It stalled for so long that others have used all numbers."""
    stalled = RollupUpdater()
    async with rt.db.write() as session:
        await stalled.add_clicks(session, _delta(1))
    others = MAX_WRITERS[rt.db.dialect] * 2
    for _ in range(others):
        async with rt.db.write() as session:
            await RollupUpdater().add_clicks(session, _delta(1))
    async with rt.db.write() as session:
        await stalled.add_clicks(session, _delta(1))
    assert await _count_people(rt) == others + 2


async def test_a_process_never_holds_two_numbers(rt: Runtime) -> None:
    """Else it could wait for a build of a group, which waits for all numbers one by one."""
    numbers = MAX_WRITERS[rt.db.dialect]
    updaters = [RollupUpdater() for _ in range(numbers * 2)]
    for updater in updaters:
        async with rt.db.write() as session:
            await updater.add_clicks(session, _delta(1))
    stalled = updaters[numbers // 2]  # its number was taken over, and others are less used
    free = select(RollupWriter.number).with_for_update(skip_locked=True)
    async with rt.db.write() as session:
        await stalled.add_clicks(session, _delta(1))
        if rt.db.dialect != "sqlite":  # it has one number
            async with rt.db.write() as build:
                assert len((await build.scalars(free)).all()) == numbers - 1


async def test_rows_that_are_prepared_are_saved_without_reading_them_again(rt: Runtime) -> None:
    updater = RollupUpdater()
    statements: list[str] = []
    for _ in range(3):
        async with rt.db.read() as reader:
            await updater.prepare_clicks(reader, _delta(1))
        statements.clear()  # the first time, there is nothing to prepare
        stop = count_statements(rt.db.engine, statements.append)
        async with rt.db.write() as session:
            await updater.add_clicks(session, _delta(1))
        stop()
    assert not any(text.startswith("WITH wanted") for text in statements)
    assert await _count_people(rt) == 3


@pytest.mark.parametrize("change", ["folded", "taken over"])
async def test_rows_that_change_after_they_were_prepared_are_read_again(
    rt: Runtime, clock: ManualClock, change: str
) -> None:
    clock.advance((MORNING + timedelta(hours=8) - clock.now()).total_seconds())
    updater, others = RollupUpdater(), MAX_WRITERS[rt.db.dialect] * 2
    async with rt.db.write() as session:
        await updater.add_clicks(session, _delta(1))
    async with rt.db.read() as reader:
        await updater.prepare_clicks(reader, _delta(1))
    if change == "folded":
        await compaction.fold_hours(rt)
    else:
        for _ in range(others):
            async with rt.db.write() as session:
                await RollupUpdater().add_clicks(session, _delta(1))

    async with rt.db.write() as session:
        await updater.add_clicks(session, _delta(1))

    assert await _count_people(rt) == (1 if change == "folded" else others + 2)
