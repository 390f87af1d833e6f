"""Statistics of the API equal a count by hand: zones, midnights, bots, private clicks."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from httpx import AsyncClient

from refract.cli.demo.traffic import TrafficPlan, make_visits
from refract.clicks.models import ClickEvent
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service as links
from tests import make
from tests.clicks.counting import (
    BOT,
    by_key,
    by_value,
    click,
    count,
    events_of,
    local_key,
    moment,
    stored,
)
from tests.clicks.counting import between as in_span
from tests.client import by_key as sent_by

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Pacific/Apia",
]
GRANULARITIES = ["hour", "day", "week", "month"]
BEGIN = datetime(2026, 3, 22, tzinfo=UTC)
NOW = datetime(2026, 4, 12, 9, 20, tzinfo=UTC)
EDGES = [
    "2026-03-29T00:00:00Z", "2026-03-28T23:59:59.999999Z", "2026-03-29T01:00:00Z",
    "2026-03-29T00:59:59.999999Z", "2026-04-04T15:00:00Z", "2026-04-04T14:45:00Z",
    "2026-03-31T18:30:00Z", "2026-03-31T18:15:00Z", "2026-03-31T18:29:59Z", "2026-04-01T00:00:00Z",
    "2026-04-12T09:20:00Z",
]  # fmt: skip


class World:
    """Two links of Ada's, one of Bob's that she co-owns, one of Bob's alone, all with events."""

    def __init__(self, rt: Runtime, client: AsyncClient, key: str, ids: list[int]) -> None:
        self.rt, self.client, self.headers, self.ids = rt, client, sent_by(key), ids
        self.events: list[ClickEvent] = []

    async def ask(self, path: str, **query: Any) -> dict[str, Any]:
        given = {
            name.rstrip("_"): str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
        }
        response = await self.client.get(f"/api/v1{path}", params=given, headers=self.headers)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def look(self) -> None:
        self.events = await events_of(self.rt, *self.ids)

    def of(self, *ids: int) -> list[ClickEvent]:
        return [event for event in self.events if event.target_id in ids]


async def populated(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User, bob: User, *, clicks: int
) -> World:
    """Generated traffic, and clicks at the edges of days and hours."""
    async with rt.db.write() as session:
        ids = [(await make.link(session, rt, owner)).id for owner in (ada, ada, bob, bob)]
        await links.add_owner(session, make.who(bob), ids[2], ada.email, clock.now())
        key = await make.key(session, rt, ada)
    clock.advance((NOW - clock.now()).total_seconds())
    made = TrafficPlan(ids, BEGIN, NOW, clicks, seed=11)
    edges = [
        click(ids[number % 2], moment(text), host=f"203.0.{number}.1")
        for number, text in enumerate(EDGES)
    ]
    edges += [click(ids[0], moment(text), agent=BOT) for text in EDGES[:4]] + [
        click(ids[0], moment(text), shy=True) for text in EDGES[:3]
    ]
    await stored(rt, [*(visit.frame for visit in make_visits(made)), *edges])
    world = World(rt, client, key, ids)
    await world.look()
    return world


@pytest.fixture
async def world(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User, bob: User
) -> World:
    return await populated(rt, clock, client, ada, bob, clicks=900)


def agrees(
    answer: dict[str, Any], events: list[ClickEvent], *, bots_in_series: bool = True
) -> None:
    """Check the totals and every point, and that no point is missing."""
    zone, granularity = ZoneInfo(answer["time_zone"]), answer["granularity"]
    begin, end = moment(answer["from"]), moment(answer["to"])
    mine = in_span(events, begin, end)
    assert answer["totals"] == count(mine)._asdict()
    expected = by_key(mine, zone, granularity)
    points = {
        local_key(moment(point["at"]), zone, granularity): point for point in answer["series"]
    }
    assert len(points) == len(answer["series"])
    assert set(expected) <= set(points)
    for key, point in points.items():
        found = (point["clicks"], point["uniques"], point["bots"])
        assert found == tuple(expected.get(key, (0, 0, 0))), (key, point)
        assert not point["utc_day"]
        assert not point["no_data"]
    assert moment(answer["series"][0]["at"]) == begin
    times = [moment(point["at"]) for point in answer["series"]]
    assert times == sorted(times)


def asked_at_random(chance: random.Random) -> dict[str, Any]:
    begin = BEGIN + timedelta(minutes=chance.randrange(21 * 24 * 60), seconds=chance.randrange(60))
    end = begin + timedelta(
        minutes=chance.choice([7, 90, 60 * 24, 60 * 24 * 6, 60 * 24 * 19]),
        seconds=chance.randrange(2),
    )
    return {
        "from": begin.isoformat().replace("+00:00", "Z"),
        "to": end.isoformat().replace("+00:00", "Z"), "tz": chance.choice(ZONES),
        "granularity": chance.choice(GRANULARITIES), "compare": chance.random() < 0.5,
    }  # fmt: skip


async def test_series_and_totals_equal_a_count_by_hand(world: World) -> None:
    chance = random.Random(2026)
    for _ in range(25):
        asked = asked_at_random(chance)
        link = chance.choice(world.ids[:3])
        answer = await world.ask(f"/links/{link}/stats", **asked)
        assert (
            moment(answer["from"])
            <= moment(asked["from"])
            < moment(answer["from"]) + timedelta(minutes=15)
        )
        assert (
            moment(answer["to"]) - timedelta(minutes=15)
            < moment(asked["to"])
            <= moment(answer["to"])
        )
        agrees(answer, world.of(link))
        if asked["compare"]:
            before = answer["previous"]
            span = (moment(before["from"]), moment(before["to"]))
            assert span[1] == moment(answer["from"])
            assert span[1] - span[0] == moment(answer["to"]) - moment(answer["from"])
            assert {name: before[name] for name in ("clicks", "uniques", "bots")} == count(
                in_span(world.of(link), *span)
            )._asdict()
        else:
            assert answer["previous"] is None


async def test_dates_mean_days_of_the_zone_and_the_end_is_not_included(world: World) -> None:
    answer = await world.ask(
        f"/links/{world.ids[0]}/stats",
        from_="2026-03-29",
        to="2026-03-30",
        tz="Europe/Berlin",
        granularity="hour",
    )
    assert (answer["from"], answer["to"]) == ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
    assert len(answer["series"]) == 23
    agrees(answer, world.of(world.ids[0]))


async def test_nothing_said_is_thirty_days_up_to_now(world: World) -> None:
    answer = await world.ask(f"/links/{world.ids[0]}/stats", tz="Asia/Kolkata")
    assert (answer["to"], len(answer["series"]), answer["granularity"]) == (
        "2026-04-12T09:30:00Z",
        30,
        "day",
    )
    assert answer["totals"]["clicks"] == count(world.of(world.ids[0])).clicks
    agrees(answer, world.of(world.ids[0]))
    assert answer["series"][0]["clicks"] == 0  # a gap is a zero


async def test_breakdowns_equal_a_count_by_hand(world: World) -> None:
    link = world.ids[0]
    span = {"from": "2026-03-25T00:00:00Z", "to": "2026-04-08T10:00:00Z"}
    mine = in_span(world.of(link), moment(span["from"]), moment(span["to"]))
    people = count(mine).clicks
    for dimension in (
        "referrers",
        "countries",
        "devices",
        "browsers",
        "systems",
        "campaigns",
        "nodes",
        "sources",
        "terms",
    ):
        expected = by_value(mine, dimension)
        answer = await world.ask(f"/links/{link}/stats/{dimension}", **span, limit=1000)
        assert {item["value"]: item["clicks"] for item in answer["items"]} == expected, dimension
        assert (answer["total"], answer["other"], answer["without"]) == (
            expected.total(),
            0,
            people - expected.total(),
        )
        few = await world.ask(f"/links/{link}/stats/{dimension}", **span, limit=1)
        (first,) = few["items"]
        assert first == answer["items"][0]
        assert first["clicks"] + few["other"] == few["total"] == expected.total()
        assert first["share"] == pytest.approx(first["clicks"] / few["total"], abs=1e-6)
    germany = next(
        item
        for item in (await world.ask(f"/links/{link}/stats/countries", **span))["items"]
        if item["value"] == "DE"
    )
    assert germany["label"] == "Germany"
    cities = await world.ask(f"/links/{link}/stats/cities", **span)
    assert cities["total"] + cities["without"] == people


async def test_overview_is_over_what_is_mine(world: World) -> None:
    """Owned and co-owned links count; not the fourth one, which is Bob's alone."""
    chance = random.Random(7)
    mine = world.of(*world.ids[:3])
    for _ in range(5):
        asked = asked_at_random(chance)
        answer = await world.ask("/stats", **asked)
        agrees(answer, mine)
        span = in_span(mine, moment(answer["from"]), moment(answer["to"]))
        clicks = {
            str(link): (
                count(in_span(world.of(link), moment(answer["from"]), moment(answer["to"]))).clicks
            )
            for link in world.ids[:3]
        }
        assert {item["id"]: item["clicks"] for item in answer["links"]} == {
            link: number for link, number in clicks.items() if number
        }
        assert [item["clicks"] for item in answer["links"]] == sorted(
            clicks.values(), reverse=True
        )[: len(answer["links"])]
        wide = {"from": answer["from"], "to": answer["to"]}
        referrers = await world.ask("/stats/referrers", **wide, limit=1000)
        assert {item["value"]: item["clicks"] for item in referrers["items"]} == by_value(
            span, "referrers"
        )
        assert referrers["links"] == answer["links"]


async def test_clicks_that_come_late_are_counted_where_they_belong(world: World) -> None:
    link = world.ids[0]
    await stored(world.rt, [click(link, moment("2026-03-24T13:14:15Z"), host="192.0.2.9")])
    await world.look()
    for granularity in GRANULARITIES:
        agrees(
            await world.ask(
                f"/links/{link}/stats", from_="2026-03-23", to="2026-04-12", granularity=granularity
            ),
            world.of(link),
        )
