"""Packs hold what was put into them, in few bytes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from refract.clicks.ingest.batch import RollupDelta
from refract.clicks.models import ClickPack, ClickRollup, OpenRollup
from refract.clicks.rollups import compaction, pack_updates
from refract.clicks.rollups.breakdowns import DIMENSIONS, build_breakdown_key
from refract.clicks.rollups.granularity import (
    DAY,
    MONTH,
    QUARTER,
    start_of,
    to_seconds,
)
from refract.clicks.rollups.packs import (
    MAX_PACK_BYTES,
    encode_entry,
    iter_entries,
    split_pack,
)
from refract.clicks.rollups.sketches import HASH_BYTES, MAX_EXACT_VISITORS, VisitorSketch
from refract.clicks.stats.pages import SPARKLINE_DAYS, load_sparklines
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.db.types import Model
from refract.core.runtime import Runtime
from tests.clicks.counting import click, stored

PACK_MONTH = to_seconds(datetime(2026, 5, 1, tzinfo=UTC))
QUARTERS = 31 * 96
KEYS = st.one_of(
    st.sampled_from(["adesktop", "bdirect", "fChrome", "gWindows", "cDE", "cXX", "c", "h" * 300]),
    st.builds(build_breakdown_key, st.sampled_from(DIMENSIONS), st.text("aé€𝄞 .", max_size=200)),
)
VISITORS = st.sets(st.binary(min_size=HASH_BYTES, max_size=HASH_BYTES), max_size=5)
ENTRY = st.tuples(
    st.integers(0, QUARTERS - 1),
    st.one_of(st.just(1), st.integers(0, 100_000)),
    st.one_of(st.just(0), st.integers(0, 300)),
    st.one_of(st.just(0), st.integers(0, 300)),
    VISITORS,
    st.dictionaries(KEYS, st.one_of(st.just(1), st.integers(1, 70_000)), max_size=9),
)
Entry = tuple[int, int, int, int, set[bytes], dict[str, int]]


def _delta(entry: Entry) -> RollupDelta:
    delta = RollupDelta()
    _, delta.people, delta.bots, delta.private, visitors, delta.parts = entry
    delta.visitors = list(visitors)
    return delta


def _encoded(entries: list[Entry]) -> bytes:
    return b"".join(
        encode_entry(PACK_MONTH, PACK_MONTH + entry[0] * 900, _delta(entry)) or b""
        for entry in entries
    )


def _decoded(data: bytes) -> list[Entry]:
    return [
        ((start - PACK_MONTH) // 900, d.people, d.bots, d.private, set(d.visitors), d.parts)
        for start, d in iter_entries(PACK_MONTH, data)
    ]


@given(entries=st.lists(ENTRY, max_size=6))
def test_entries_are_read_as_they_were_written(entries: list[Entry]) -> None:
    assert _decoded(_encoded(entries)) == entries


@given(entries=st.lists(ENTRY, max_size=6), day=st.integers(0, 30))
def test_a_day_is_removed_from_a_pack(entries: list[Entry], day: int) -> None:
    rest, removed = split_pack(PACK_MONTH, _encoded(entries), [PACK_MONTH + day * 86_400])

    assert _decoded(rest) == [entry for entry in entries if entry[0] // 96 != day]
    gone = [entry for entry in entries if entry[0] // 96 == day]
    assert sum(delta.people for delta in removed.values()) == sum(entry[1] for entry in gone)
    assert removed.keys() == {PACK_MONTH + entry[0] * 900 for entry in gone}


def test_bytes_mean_the_same_in_every_version() -> None:
    entry = (
        *(2975, 1, 0, 0, {b"vwxyz"}),
        {"adesktop": 1, "bdirect": 1, "cDE": 1, "fChrome": 1, "gWindows": 1, "hnode": 1},
    )
    assert _encoded([entry]) == b"\xbe.vwxyz\x06\x80\x83\xffDE\x84\x9a\x05hnode"
    several = (0, 200, 3, 2, {b"vwxyz", b"abcde"}, {"bwww.instagram.com": 130, "eé": 1})
    visitors, values = b"abcdevwxyz", b"\x02\xad\x82\x01\x03e\xc3\xa9\x01"
    assert _encoded([several]) == b"\x01\xc8\x01\x03\x02\x02" + visitors + values


def test_a_quarter_hour_with_estimated_visitors_is_not_packed() -> None:
    delta = RollupDelta()
    delta.sketch = VisitorSketch()
    delta.sketch.update(n.to_bytes(HASH_BYTES, "big") for n in range(MAX_EXACT_VISITORS + 1))
    assert encode_entry(PACK_MONTH, PACK_MONTH, delta) is None


async def _count_rows(rt: Runtime, model: type[Model]) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


async def test_a_month_of_few_clicks_is_one_row(rt: Runtime, clock: ManualClock) -> None:
    now = clock.now()
    clock.advance(20 * 86_400)
    await stored(rt, [click(7, now + timedelta(days=day, hours=day)) for day in range(15)])
    await compaction.close_hours(rt)

    counts = [await _count_rows(rt, model) for model in (ClickPack, ClickRollup, OpenRollup)]
    async with rt.db.read() as session:
        size = await session.scalar(select(func.sum(func.length(ClickPack.data))))
    assert counts == [1, 0, 0]
    assert int(size or 0) < 15 * 60
    assert (await reconcile(rt)).drift == []


async def test_a_day_that_does_not_fit_gets_rows_and_leaves_its_pack(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_updates, "MAX_PACK_BYTES", 300)
    day = to_seconds(clock.now()) // 86_400 * 86_400
    clock.advance(86_400)
    for hour in range(12):
        at = datetime.fromtimestamp(day + hour * 3600, UTC)
        before = [click(7, at - timedelta(days=1))] if hour < 2 else []
        await stored(rt, [click(7, at), *before])
        await compaction.close_hours(rt)

    async with rt.db.read() as session:
        packs = (await session.scalars(select(ClickPack))).all()
        rows = (await session.scalars(select(ClickRollup))).all()
    packed = [to for pack in packs for to, _ in iter_entries(to_seconds(pack.start), pack.data)]
    assert {start_of(DAY, start) for start in packed} == {day - 86_400}
    for grain in (QUARTER, DAY, MONTH):
        assert sum(row.people for row in rows if row.grain == grain) == 12
    assert (await reconcile(rt)).drift == []


async def test_packs_become_months_when_days_are_not_kept(rt: Runtime, clock: ManualClock) -> None:
    now = clock.now()
    frames = [click(7, now, host=f"203.0.{n}.1") for n in range(3)]
    await stored(rt, [*frames, click(7, now + timedelta(seconds=1), host="203.0.0.1")])
    clock.advance(86_400 * (rt.settings.stats_day_days + 40))
    await compaction.close_hours(rt)
    await compaction.drop_expired_rollups(rt)

    assert await _count_rows(rt, ClickPack) == 0
    async with rt.db.read() as session:
        (row,) = (await session.scalars(select(ClickRollup))).all()
    assert (row.grain, row.people, row.uniques) == (MONTH, 4, 3)
    assert (await reconcile(rt)).drift == []


@pytest.mark.parametrize("pack_bytes", [MAX_PACK_BYTES, 0])
async def test_sparklines_have_the_clicks_of_each_day(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pack_bytes: int
) -> None:
    monkeypatch.setattr(pack_updates, "MAX_PACK_BYTES", pack_bytes)
    first = clock.now()
    clock.advance(SPARKLINE_DAYS * 86_400)
    days = [0, 0, 3, SPARKLINE_DAYS - 1]
    await stored(rt, [click(7, first + timedelta(days=day)) for day in days])
    await compaction.close_hours(rt)

    async with rt.db.read() as session:
        found = await load_sparklines(session, rt, [7, 8])

    assert found == {7: [days.count(day) for day in range(SPARKLINE_DAYS)]}
