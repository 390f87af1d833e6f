"""Statistics over time: hours are closed, quarters and days dropped, results marked."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from refract.clicks.models import ClickEvent
from refract.clicks.rollups import compaction, pack_updates
from refract.clicks.rollups.folding import RollupFolder
from refract.clicks.rollups.packs import MAX_PACK_BYTES
from refract.clicks.rollups.state import lock_progress, save_progress
from refract.clicks.rollups.writers import list_writers
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests.clicks.counting import between, by_value, click, count, moment, stored
from tests.clicks.test_stats import World, agrees, asked_at_random, populated


@pytest.fixture
async def world(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User, bob: User
) -> World:
    """Few clicks, since the test below closes every hour with one separately."""
    return await populated(rt, clock, client, ada, bob, clicks=60)


@pytest.mark.parametrize("pack_bytes", [MAX_PACK_BYTES, 200, 0])
async def test_closing_hours_changes_no_figure(
    world: World, clock: ManualClock, monkeypatch: Any, pack_bytes: int
) -> None:
    """Queries in the middle of a day, while an hour is being closed, and with a later click."""
    monkeypatch.setattr(pack_updates, "MAX_PACK_BYTES", pack_bytes)
    monkeypatch.setattr(compaction, "BATCH_SIZE", 1)
    chance = random.Random(5)
    link, others = world.ids[0], world.of(*world.ids[:3])
    for number in range(6):
        # One batch alone: some hours are closed only for some links.
        until = int(clock.now().timestamp()) // 3600 * 3600
        async with world.rt.db.write() as session:
            state = await lock_progress(session)
            await save_progress(session, replace(state, closed_until=until))
            writers = await list_writers(session, until)
        for writer in writers:
            await compaction.WriterSweep(RollupFolder(), writer, until).fold_next(world.rt)
        agrees(await world.ask("/stats", **asked_at_random(chance)), others)
        if number == 3:
            await compaction.close_hours(world.rt)
            await stored(world.rt, [click(link, moment("2026-03-27T11:22:33Z"), host="192.0.2.77")])
            await world.look()
            others = world.of(*world.ids[:3])
    for _ in range(8):
        agrees(await world.ask(f"/links/{link}/stats", **asked_at_random(chance)), world.of(link))
        agrees(await world.ask("/stats", **asked_at_random(chance)), others)
    everything = await world.ask(
        f"/links/{link}/stats/referrers", from_="2026-03-20", to="2026-04-13", limit=1000
    )
    assert {item["value"]: item["clicks"] for item in everything["items"]} == by_value(
        world.of(link), "referrers"
    )


async def _age(rt: Runtime, clock: ManualClock, days: float) -> None:
    clock.advance(days * 86_400)
    await compaction.close_hours(rt)
    await compaction.drop_expired_rollups(rt)


def _day(
    events: list[ClickEvent], at: datetime, length: timedelta = timedelta(days=1)
) -> tuple[int, int, int]:
    return tuple(count(between(events, at, at + length)))  # type: ignore[return-value]


async def test_older_than_thirty_days_there_are_utc_days_marked_so(
    world: World, clock: ManualClock
) -> None:
    link = world.ids[0]
    await _age(world.rt, clock, 20)  # it is 2 May: quarters are kept from 2 April on
    answer = await world.ask(
        f"/links/{link}/stats", from_="2026-03-25", to="2026-04-10", tz="Asia/Kolkata"
    )
    assert answer["from"] == "2026-03-24T00:00:00Z"  # 24 March, 18:30, down to the day
    marked = [point for point in answer["series"] if point["utc_day"]]
    assert [moment(point["at"]) for point in marked] == [
        datetime(2026, 3, 24, tzinfo=UTC) + timedelta(days=n) for n in range(9)
    ]
    for point in marked:
        assert (point["clicks"], point["uniques"], point["bots"]) == _day(
            world.of(link), moment(point["at"])
        )
        assert not point["no_data"]
    fine = answer["series"][len(marked) :]
    assert moment(fine[0]["at"]) == datetime(2026, 4, 2, tzinfo=UTC)
    assert moment(fine[1]["at"]) == datetime(2026, 4, 2, 18, 30, tzinfo=UTC)
    assert (
        answer["totals"]
        == count(between(world.of(link), moment(answer["from"]), moment(answer["to"])))._asdict()
    )
    assert sum(point["clicks"] for point in answer["series"]) == answer["totals"]["clicks"]
    hours = await world.ask(
        f"/links/{link}/stats", from_="2026-03-30", to="2026-04-03", granularity="hour"
    )
    assert [point["utc_day"] for point in hours["series"]] == [True] * 3 + [False] * 24


@pytest.mark.parametrize(
    ("age", "asked", "counted"),
    [
        (20, ("2026-03-25T18:30:00Z", "2026-03-29T06:00:00Z"), ("2026-03-25", "2026-03-30")),
        (20, ("2026-03-25T18:30:00Z", "2026-04-05T06:00:00Z"), ("2026-03-25", "2026-04-05T06")),
        (400, ("2026-03-25", "2026-03-26"), ("2026-03-01", "2026-04-01")),
        (400, ("2026-04-02", "2026-05-03T12:00:00Z"), ("2026-04-01", "2026-05-04")),
    ],
)
@pytest.mark.parametrize("path", ["/links/{link}/stats/referrers", "/stats/referrers"])
async def test_a_breakdown_counts_exactly_the_range_it_names(
    world: World,
    clock: ManualClock,
    path: str,
    age: int,
    asked: tuple[str, str],
    counted: tuple[str, str],
) -> None:
    """Old roll-ups are of UTC days and months: the range is rounded outwards to them."""
    link = world.ids[0]
    events = world.of(link) if "link" in path else world.of(*world.ids[:3])
    await _age(world.rt, clock, age)

    answer = await world.ask(path.format(link=link), from_=asked[0], to=asked[1], limit=1000)

    begin, end = moment(answer["from"]), moment(answer["to"])
    assert (begin, end) == tuple(
        datetime.fromisoformat(text).replace(tzinfo=UTC) for text in counted
    )
    inside = between(events, begin, end)
    assert answer["total"] + answer["without"] == count(inside).clicks
    assert {item["value"]: item["clicks"] for item in answer["items"]} == by_value(
        inside, "referrers"
    )


async def test_before_the_horizon_days_have_no_data_and_months_still_do(
    world: World, clock: ManualClock
) -> None:
    link, events = world.ids[0], world.of(world.ids[0])
    await _age(world.rt, clock, 400)  # it is May of 2027: days are kept from 1 May 2026 on
    days = await world.ask(f"/links/{link}/stats", from_="2026-04-20", to="2026-05-03")
    assert [point["no_data"] for point in days["series"]] == [True] * 11 + [False] * 2
    assert days["totals"] == {"clicks": 0, "uniques": 0, "bots": 0}
    months = await world.ask(
        f"/links/{link}/stats",
        from_="2026-03-25",
        to="2026-06-01",
        granularity="month",
        tz="Europe/Berlin",
    )
    assert [point["at"] for point in months["series"]][:3] == [
        "2026-03-01T00:00:00Z",
        "2026-04-01T00:00:00Z",
        "2026-05-01T00:00:00Z",
    ]
    assert not any(point["no_data"] for point in months["series"])
    april = months["series"][1]
    assert (april["clicks"], april["uniques"], april["bots"]) == _day(
        events, datetime(2026, 4, 1, tzinfo=UTC), timedelta(days=30)
    )
    referrers = await world.ask(
        f"/links/{link}/stats/referrers", from_="2026-03-01", to="2026-05-01", limit=1000
    )
    assert {item["value"]: item["clicks"] for item in referrers["items"]} == by_value(
        events, "referrers"
    )
    await _age(world.rt, clock, 1500)
    gone = await world.ask(
        f"/links/{link}/stats", from_="2026-03-01", to="2026-05-01", granularity="month"
    )
    assert [point["no_data"] for point in gone["series"]] == [True, True]
