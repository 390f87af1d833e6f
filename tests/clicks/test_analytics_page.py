"""The analytics page: its filters, dates and comparison, and those of the API."""

import csv
import io
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

import pytest
from httpx import AsyncClient

from refract.clicks.stats.calendar import Granularity
from refract.clicks.stats.charts import choose_step, draw_chart
from refract.clicks.stats.labels import get_label, get_site_name
from refract.clicks.stats.period import parse_period
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import Scope, User
from refract.links.service import add_team
from tests import make
from tests.clicks.counting import click, stored
from tests.client import by_cookie, by_key

NOW = datetime(2026, 4, 12, 9, 20, tzinfo=UTC)
LATER = datetime(2026, 9, 12, 9, 20, tzinfo=UTC)
PAGE = {"Accept": "text/html"}
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"


async def _world(rt: Runtime, clock: ManualClock, ada: User) -> tuple[list[int], dict[str, str]]:
    async with rt.db.write() as session:
        links = [
            (await make.link(session, rt, ada, name=name, tags=tags)).id
            for name, tags in (("first", ["Spring"]), ("second", []))
        ]
    clock.advance((LATER - clock.now()).total_seconds())
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | PAGE
    recent = LATER - timedelta(hours=3)
    frames = [click(links[0], recent, host=f"203.0.{number}.1") for number in range(4)]
    frames += [click(links[1], recent, agent=PHONE, host="203.0.9.1")]
    await stored(rt, frames)
    return links, cookie


def _hrefs(page: str, parameter: str) -> list[dict[str, list[str]]]:
    found = [text.split('"')[0] for text in page.split('href="')[1:]]
    queries = [parse_qs(urlsplit(href.replace("&amp;", "&")).query) for href in found]
    return [query for query in queries if parameter in query]


async def test_rows_and_chips_are_links_that_add_and_remove_filters(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    links, cookie = await _world(rt, clock, ada)
    page = (await client.get("/app/analytics?range=7d&device=desktop", headers=cookie)).text
    added = _hrefs(page, "browser")
    assert {"range": ["7d"], "device": ["desktop"], "browser": ["Firefox"]} in added
    assert any(query.get("link") == [str(links[0])] for query in _hrefs(page, "link"))
    assert "/second" not in page  # its only click came from a phone
    removed = page.split('class="chip-remove" href="')[1].split('"')[0]
    assert removed == "/app/analytics?range=7d"
    both = (await client.get(removed.replace("&amp;", "&"), headers=cookie)).text
    assert "/second" in both


async def test_a_tag_and_a_link_are_scopes_of_the_page(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User, bob: User
) -> None:
    links, cookie = await _world(rt, clock, ada)
    tagged = (await client.get("/app/analytics?tag=Spring", headers=cookie)).text
    assert "/first" in tagged
    assert "/second" not in tagged
    one = (await client.get(f"/app/analytics?link={links[1]}", headers=cookie)).text
    assert "/second" in one
    async with rt.db.write() as session:
        his = by_cookie(rt, await make.cookie(session, rt, bob)) | PAGE
    foreign = await client.get(f"/app/analytics?link={links[0]}", headers=his)
    assert foreign.status_code == 404
    assert (await client.get("/app/analytics?link=x", headers=cookie)).status_code == 404


@pytest.mark.parametrize("filters", ["", "&device=desktop"])
async def test_the_links_of_a_team_are_a_scope_of_its_members(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User, bob: User, filters: str
) -> None:
    links, cookie = await _world(rt, clock, ada)
    async with rt.db.write() as session:
        team = await make.team(session, rt, ada)
        key = by_key(await make.key(session, rt, ada, Scope.READ, Scope.WRITE))
    await client.post(f"/api/v1/links/{links[0]}/teams", headers=key, json={"team": team.slug})

    page = (await client.get(f"/app/analytics?team={team.slug}{filters}", headers=cookie)).text

    assert "/first" in page
    assert "/second" not in page
    menu = (await client.get("/app/analytics", headers=cookie)).text
    assert f'href="/app/analytics?team={team.slug}"' in menu
    assert 'href="/app/analytics?tag=spring"' in menu
    async with rt.db.write() as session:
        his = by_cookie(rt, await make.cookie(session, rt, bob)) | PAGE
    foreign = (await client.get(f"/app/analytics?team={team.slug}{filters}", headers=his)).text
    assert "/first" not in foreign
    assert team.name not in foreign


async def test_reversed_dates_are_reported_and_kept(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    _, cookie = await _world(rt, clock, ada)
    page = (await client.get("/app/analytics?from=2026-09-10&to=2026-09-01", headers=cookie)).text
    assert "The start date must not be after the end date." in page
    assert 'value="2026-09-10"' in page


async def test_what_is_shown_can_be_downloaded(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    _, cookie = await _world(rt, clock, ada)
    answer = await client.get("/app/analytics/export.csv?range=7d&device=desktop", headers=cookie)
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["clicks"] for row in rows if row["section"] == "total"] == ["4"]
    assert [row["label"] for row in rows if row["section"] == "links"] == ["/first"]
    details = await client.get("/app/analytics/details/browsers?range=7d", headers=cookie)
    assert "Firefox" in details.text


async def test_the_chart_can_be_downloaded_as_svg(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    links, cookie = await _world(rt, clock, ada)
    page = (await client.get("/app/analytics?range=7d&device=desktop", headers=cookie)).text
    href = next(part.split('"')[0] for part in page.split('href="') if "chart.svg" in part)
    assert "device=desktop" in href
    answer = await client.get(href.replace("&amp;", "&"), headers=cookie)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert ".svg" in answer.headers["content-disposition"]
    picture = ET.fromstring(answer.text)  # noqa: S314 - our own
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "Clicks" in texts
    assert "Sep 6, 2026" in texts
    assert "4" in texts  # the highest mark of the axis: clicks of phones are left out
    assert "5" not in texts
    whole = await client.get(f"/app/links/{links[1]}?range=7d", headers=cookie)
    assert f"chart.svg?range=7d&amp;link={links[1]}" in whole.text


@pytest.mark.parametrize(
    ("highest", "step"), [(0, 1), (5, 1), (6, 2), (11, 5), (26, 10), (1_000, 200), (1_001, 500)]
)
def test_marks_of_an_axis_are_round_numbers(highest: int, step: int) -> None:
    assert choose_step(highest) == step


def test_a_chart_of_one_point_or_of_odd_labels_is_valid() -> None:
    series = [{"label": "<Clicks> & more", "values": [3]}]
    picture = draw_chart({"at": [0], "series": series, "running": True}, ["<b>"])
    assert ET.fromstring(picture).tag.endswith("svg")  # noqa: S314


async def test_clicks_of_the_last_half_hour_are_listed_without_telling_who(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    links, cookie = await _world(rt, clock, ada)
    await stored(rt, [click(links[0], LATER - timedelta(minutes=5), host="198.51.100.7")])
    shown = (await client.get("/app/analytics/live", headers=cookie)).text
    assert "1 click in 30 minutes" in shown
    assert "/first" in shown
    assert "a.example" in shown
    assert "198.51" not in shown
    other = (await client.get("/app/analytics/live?device=mobile", headers=cookie)).text
    assert "No clicks in the last 30 minutes" in other


async def test_a_team_is_a_scope_for_its_members(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User, bob: User
) -> None:
    links, cookie = await _world(rt, clock, ada)
    async with rt.db.write() as session:
        await make.team(session, rt, ada)
        who, now = make.who(ada), rt.clock.now()
        await add_team(session, who, links[0], "crew", now)
        as_ada, as_bob = [by_key(await make.key(session, rt, user)) for user in (ada, bob)]

    page = (await client.get("/app/analytics?team=crew", headers=cookie)).text
    assert "/first" in page
    assert "/second" not in page
    assert 'class="chip-remove" href="/app/analytics"' in page
    mine, foreign = [
        (await client.get("/api/v1/stats?team=crew", headers=headers)).json()["links"]
        for headers in (as_ada, as_bob)
    ]
    assert mine == [{"id": str(links[0]), "clicks": 4}]
    assert foreign == []


async def test_a_link_without_clicks_shows_no_empty_panels(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | PAGE
    page = (await client.get(f"/app/links/{link.id}", headers=cookie)).text
    assert "No clicks in this period." in page
    assert "bar-list" not in page
    assert 'class="map"' not in page


async def test_the_api_filters_and_refuses_unknown_parameters(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    links, _ = await _world(rt, clock, ada)
    async with rt.db.write() as session:
        headers = by_key(await make.key(session, rt, ada))

    async def ask(path: str) -> dict[str, object]:
        answer = await client.get(f"/api/v1{path}", headers=headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found

    assert (await ask("/stats?device=mobile"))["totals"] == {"clicks": 1, "uniques": 1, "bots": 0}
    assert (await ask("/stats?device=mobile&browser=Firefox"))["links"] == []
    assert (await ask("/stats?tag=spring"))["links"] == [{"id": str(links[0]), "clicks": 4}]
    assert (await ask("/stats/browsers?device=desktop"))["total"] == 4
    assert (await ask(f"/links/{links[0]}/stats/terms?device=desktop"))["total"] == 4
    assert (await ask(f"/links/{links[0]}/stats?campaign=c&country=ZZ"))["totals"] == {
        "clicks": 0,
        "uniques": 0,
        "bots": 0,
    }
    assert (await client.get("/api/v1/stats?color=red", headers=headers)).status_code == 422
    assert (await client.get("/api/v1/stats?country=", headers=headers)).status_code == 422


@pytest.mark.parametrize(
    ("given", "begin", "previous"),
    [
        ({"range": "today"}, "2026-04-12", ("2026-04-11", "2026-04-11T09:20:00+00:00")),
        ({"range": "yesterday"}, "2026-04-11", ("2026-04-10", "2026-04-11")),
        ({"range": "7d"}, "2026-04-06", ("2026-03-30", "2026-04-05T09:20:00+00:00")),
        ({"range": "month"}, "2026-04-01", ("2026-03-01", "2026-03-12T09:20:00+00:00")),
        ({"range": "12m"}, "2025-05-01", ("2024-05-01", "2025-04-12T09:20:00+00:00")),
        (
            {"range": "7d", "compare": "year"},
            "2026-04-06",
            ("2025-04-06", "2025-04-12T09:20:00+00:00"),
        ),
        ({"range": "7d", "compare": "none"}, "2026-04-06", None),
        ({"range": "all"}, "2026-01-05", None),
    ],
)  # fmt: skip
def test_a_period_is_compared_up_to_the_same_moment(
    given: dict[str, str], begin: str, previous: tuple[str, str] | None
) -> None:
    found = parse_period(given, "UTC", NOW, datetime(2026, 1, 5, tzinfo=UTC))
    assert found.begin == begin
    if previous is None:
        assert found.previous is None
    else:
        earlier = found.previous
        assert earlier is not None
        assert earlier.end is not None
        assert (str(earlier.begin), earlier.end.isoformat()) == previous


def test_points_are_as_long_as_the_period_needs() -> None:
    def step(**given: str) -> Granularity:
        return parse_period(given, "UTC", NOW, NOW).query.granularity

    assert step(range="today") == Granularity.HOUR
    assert step(range="30d") == Granularity.DAY
    assert step(range="12m") == Granularity.MONTH
    assert step(**{"from": "2026-01-01", "to": "2026-01-02"}) == Granularity.HOUR
    assert step(**{"from": "2020-01-01", "to": "2026-01-02"}) == Granularity.MONTH


def test_well_known_sites_and_systems_have_names() -> None:
    assert get_site_name("www.google.co.uk") == "Google"
    assert get_site_name("l.facebook.com") == "Facebook"
    assert get_site_name("google.evil.example") is None
    assert get_site_name("notgoogle.com") is None
    assert get_label("systems", "Mac OS X") == "macOS"
    assert get_label("referrers", "t.co") == "X"


async def test_today_is_compared_with_yesterday_until_the_same_minute(
    rt: Runtime, clock: ManualClock, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        link = (await make.link(session, rt, ada)).id
    now = LATER.replace(hour=5, minute=6)
    clock.advance((now - clock.now()).total_seconds())
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | PAGE
    yesterday = now - timedelta(days=1)
    early = [yesterday.replace(hour=1), yesterday - timedelta(minutes=1)]
    late = [yesterday + timedelta(minutes=2), yesterday.replace(minute=40)]
    today = [now - timedelta(hours=1, minutes=number) for number in range(3)]
    await stored(rt, [click(link, at) for at in early + late + today])
    page = (await client.get("/", headers=cookie)).text
    assert "50%" in page  # three clicks, against two
