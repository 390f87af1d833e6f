"""Unique visitors: exact while they are few, close when many, across processes and restarts."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, select

from refract.clicks import stats
from refract.clicks.ingest import salts
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.ingest.salts import SaltStore
from refract.clicks.models import OpenRollup, VisitorSalt
from refract.clicks.rollups import compaction, sketches
from refract.clicks.rollups.granularity import (
    DAY,
    GRAIN_SECONDS,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.sketches import VisitorSketch
from refract.clicks.spool.format import LINK_CLICK, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.stats import ClickCounts, StatsQuery
from refract.core.clock import ManualClock
from refract.core.errors import StoreFull
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.models import LinkTotals
from tests import make

LINK = 42


def visit(rt: Runtime, visitor: int, target: int = LINK, referrer: bytes = b"") -> bytes:
    network = (visitor % 4096).to_bytes(3, "big")
    return encode_frame(
        LINK_CLICK,
        target,
        rt.clock.now_ns(),
        0,
        network,
        b"Browser %d" % (visitor // 4096),
        referrer,
        b"",
    )


def spooled(root: Path, frames: list[bytes]) -> None:
    spool = SpoolWriter(root, node="n", segment_bytes=1 << 20)
    spool.append(frames)
    spool.close()


async def counted(rt: Runtime, begin: int, end: int, *, link: int = LINK) -> ClickCounts:
    """Return the totals of one link, as its page shows them."""
    asked = StatsQuery(to_datetime(begin), to_datetime(end))
    async with rt.db.read() as session:
        return (await stats.get_link_stats(session, link, asked, to_datetime(end))).totals


async def counted_for(rt: Runtime, owner: User, begin: int, end: int) -> ClickCounts:
    """Return the totals over all links of a user."""
    asked = StatsQuery(to_datetime(begin), to_datetime(end))
    async with rt.db.read() as session:
        return (await stats.get_overview(session, owner.id, asked, to_datetime(end))).totals


async def plant(rt: Runtime, number: int) -> tuple[User, list[int]]:
    """Create a user with so many links."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        return ada, [(await make.link(session, rt, ada)).id for _ in range(number)]


@pytest.mark.parametrize("visitors", [1, 200, 201, 999])
def test_few_are_counted_exactly(visitors: int) -> None:
    for seed in range(5):
        chance = random.Random(seed)
        everybody = [chance.getrandbits(40) for _ in range(visitors)]
        some = [_sketch(everybody[place::7]) for place in range(7)] + [_sketch(everybody)]
        assert sketches.merge_sketches(reversed(some)).count() == visitors
        assert sketches.count_visitors(sketch.to_bytes() for sketch in some) == visitors


def test_a_million_are_counted_closely() -> None:
    """In 96 quarters that were written and read many times, and share some visitors."""
    chance = random.Random(11)
    stored = []
    for _ in range(96):
        sketch = VisitorSketch()
        for _ in range(4):
            sketch.update(_hashes(chance.getrandbits(40) for _ in range(1_000_000 // 384)))
            sketch = VisitorSketch.from_bytes(sketch.to_bytes())
        stored.append(sketch.to_bytes())
    whole = 96 * 4 * (1_000_000 // 384)

    assert abs(sketches.count_visitors(stored) - whole) < 0.02 * whole
    assert (
        abs(
            sketches.merge_sketches(VisitorSketch.from_bytes(data) for data in stored).count()
            - whole
        )
        < 0.02 * whole
    )
    assert max(map(len, stored)) < 9000


def _hashes(visitors: Iterable[int]) -> Iterator[bytes]:
    return (visitor.to_bytes(sketches.HASH_BYTES, "big") for visitor in visitors)


def _sketch(visitors: list[int]) -> VisitorSketch:
    sketch = VisitorSketch()
    for visitor in _hashes(visitors):
        sketch.update([visitor])
    return sketch


@pytest.mark.parametrize("size", [1, 7, 200, 201, 900])
def test_visitors_at_once_are_counted_like_one_by_one(size: int) -> None:
    visitors = list(range(0, 3 * size, 3))
    together = VisitorSketch()
    together.update(_hashes(visitors))
    together.update(_hashes(visitors[:50]))

    assert together.count() == _sketch(visitors).count()
    if size <= sketches.MAX_EXACT_VISITORS:
        expected = b"".join(_hashes(visitors))
        assert together.to_bytes() == b"\0" + expected  # sorted, five bytes each


async def test_processes_and_restarts_change_nothing(
    rt: Runtime, clock: ManualClock, tmp_path: Path
) -> None:
    everybody = list(range(500))
    day = start_of(DAY, to_seconds(clock.now()))
    ingesters = {number: Ingester(rt, tmp_path / str(number)) for number in range(3)}
    for turn in range(6):
        for number in list(ingesters):
            spooled(
                tmp_path / str(number),
                [visit(rt, visitor) for visitor in everybody[turn * 50 + number * 20 :][:120]],
            )
            if turn % 2:
                ingesters[number] = Ingester(rt, tmp_path / str(number))
            await ingesters[number].apply_all()
        clock.advance(1000)
        if turn == 3:
            await compaction.close_hours(rt)
    seen = {
        visitor
        for turn in range(6)
        for number in range(3)
        for visitor in everybody[turn * 50 + number * 20 :][:120]
    }

    for _ in range(2):
        found = await counted(rt, day, day + GRAIN_SECONDS[DAY])
        assert (found.clicks, found.uniques) == (6 * 3 * 120, len(seen))
        await compaction.close_hours(rt)


async def test_ingesters_at_the_same_time_lose_nobody(
    rt: Runtime, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.clicks.ingest.ingester.BATCH_SIZE", 20)
    day = start_of(DAY, to_seconds(clock.now()))
    ada, links = await plant(rt, 3)
    for number in range(4):
        spooled(
            tmp_path / str(number),
            [visit(rt, number * 30 + visitor, links[visitor % 3]) for visitor in range(100)],
        )

    await asyncio.gather(*(Ingester(rt, tmp_path / str(number)).apply_all() for number in range(4)))

    found = await counted_for(rt, ada, day, day + GRAIN_SECONDS[DAY])
    assert (found.clicks, found.uniques) == (400, 190)
    async with rt.db.read() as session:
        totals = (await session.scalars(select(LinkTotals).order_by(LinkTotals.link_id))).all()
    assert [row.total_clicks for row in totals] == [136, 132, 132]


async def test_a_visitor_of_two_links_is_one_and_of_two_days_is_two(
    rt: Runtime, clock: ManualClock, tmp_path: Path
) -> None:
    day = start_of(DAY, to_seconds(clock.now()))
    ada, (first, second) = await plant(rt, 2)
    ingester = Ingester(rt, tmp_path / "spool")
    for _ in range(2):
        spooled(
            tmp_path / "spool", [visit(rt, 1, first), visit(rt, 1, first), visit(rt, 1, second)]
        )
        await ingester.apply_all()
        clock.advance(GRAIN_SECONDS[DAY])

    assert await counted_for(rt, ada, day, day + 2 * GRAIN_SECONDS[DAY]) == ClickCounts(
        clicks=6, uniques=2
    )
    assert await counted(rt, day, day + GRAIN_SECONDS[DAY], link=first) == ClickCounts(
        clicks=2, uniques=1
    )


async def test_a_salt_is_shared_for_48_hours_and_then_destroyed(
    rt: Runtime, clock: ManualClock
) -> None:
    day = start_of(DAY, to_seconds(clock.now()))
    salt = await SaltStore(rt).get_salts({day})
    assert len(salt[day]) == 32
    clock.advance(47 * 3600)
    keeper = SaltStore(rt)
    assert await keeper.get_salts({day}) == salt
    assert await salts.destroy_expired_salts(rt) == 0
    clock.advance(3600)

    assert await salts.destroy_expired_salts(rt) == 1

    async with rt.db.read() as session:
        assert (await session.scalars(select(VisitorSalt))).all() == []
    assert (await keeper.get_salts({day}))[day] != salt[day]
    async with rt.db.read() as session:
        (row,) = (await session.scalars(select(VisitorSalt))).all()
        assert row.created_at == clock.now()


async def test_a_salt_that_was_not_committed_is_not_used(rt: Runtime, clock: ManualClock) -> None:
    """A salt is used only once it is stored.

    The finding: after a commit that failed on a full disk, the ingester used a salt that was never
    stored.
    """
    day = start_of(DAY, to_seconds(clock.now()))
    known = SaltStore(rt)

    def fail(_connection: object) -> None:
        raise StoreFull

    event.listen(rt.db.engine.sync_engine, "commit", fail)
    try:
        with pytest.raises(StoreFull):
            await known.get_salts({day})
    finally:
        event.remove(rt.db.engine.sync_engine, "commit", fail)

    assert await known.get_salts({day}) == await SaltStore(rt).get_salts({day})


async def test_nobody_uses_a_salt_that_is_due_to_go(rt: Runtime, clock: ManualClock) -> None:
    day = start_of(DAY, to_seconds(clock.now()))
    known = SaltStore(rt)
    old = await known.get_salts({day})
    clock.advance(timedelta(hours=49).total_seconds())

    assert (await known.get_salts({day}))[day] != old[day]
    assert (await SaltStore(rt).get_salts({day}))[day] == (await known.get_salts({day}))[day]


async def test_beyond_a_thousand_values_the_rest_is_other(
    rt: Runtime, clock: ManualClock, tmp_path: Path
) -> None:
    day = start_of(DAY, to_seconds(clock.now()))
    frames = [visit(rt, 1, LINK, b"https://site%d.example/" % number) for number in range(1200)]
    frames += [visit(rt, 1, LINK, b"https://often.example/")] * 3
    spooled(tmp_path / "spool", frames)
    await Ingester(rt, tmp_path / "spool").apply_all()
    clock.advance(2 * 3600)

    asked = StatsQuery(to_datetime(day), to_datetime(day + GRAIN_SECONDS[DAY]))
    for _ in ("quarters", "the whole day"):
        async with rt.db.read() as session:
            found = await stats.get_link_breakdown(
                session, LINK, "referrers", asked, clock.now(), limit=2000
            )
        assert len(found.items) == 1000
        assert (found.items[0].value, found.items[0].clicks) == ("often.example", 3)
        assert found.total == 1203
        assert found.other == 1203 - sum(share.clicks for share in found.items)
        await compaction.close_hours(rt)


async def test_rollups_of_quarters_are_what_ingest_writes(rt: Runtime, tmp_path: Path) -> None:
    spooled(tmp_path / "spool", [visit(rt, 1)])
    await Ingester(rt, tmp_path / "spool").apply_all()

    async with rt.db.read() as session:
        (row,) = (await session.scalars(select(OpenRollup))).all()
    assert (row.target_id, row.people, row.uniques, row.bots) == (LINK, 1, 1, 0)
    assert to_seconds(row.start) % 900 == 0
