"""Shlink's REST API by its official client, and by recorded requests."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from refract.clicks.archive.service import archive_old_days
from refract.core.ids import decode_base62
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.models import Link
from tests import make
from tests.clicks.counting import FIREFOX, click, stored
from tests.client import on_sqlite
from tests.compat.conftest import run_client

ERROR = "https://shlink.io/api/error/"
BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def failed(steps: dict[str, Any], name: str) -> tuple[str, int]:
    problem = steps[name]["failed"]
    return problem["type"].removeprefix(ERROR), problem["status"]


async def test_the_official_sdk_creates_finds_and_edits(
    rt: Runtime, address: str, key: str
) -> None:
    steps = await run_client("shlink.mjs", "build", address, key, "")

    assert steps["health"]["status"] == "pass"
    plain, custom = steps["plain"], steps["custom"]
    assert plain["shortUrl"] == f"{address}/{plain['shortCode']}"
    assert plain["forwardQuery"] is True
    assert plain["dateCreated"].endswith("+00:00")
    assert set(custom) == {
        "shortCode", "shortUrl", "longUrl", "dateCreated", "tags", "meta", "domain", "title",
        "crawlable", "forwardQuery", "hasRedirectRules", "visitsSummary",
    }  # fmt: skip
    assert custom["shortCode"] == "Custom-Slug"
    assert custom["tags"] == ["one", "two"]
    assert custom["meta"] == {
        "validSince": None,
        "validUntil": "2030-01-02T01:04:05+00:00",
        "maxVisits": None,
    }
    assert steps["again"]["dateCreated"] == custom["dateCreated"]
    assert failed(steps, "taken") == failed(steps, "reserved") == ("non-unique-slug", 400)
    assert steps["taken"]["failed"]["customSlug"] == "custom_slug"
    for name, element in (("bad", "longUrl"), ("limited", "maxVisits")):
        assert failed(steps, name) == ("invalid-data", 400)
        assert steps[name]["failed"]["invalidElements"] == [element]
    assert steps["later"]["meta"]["validSince"] == "2040-01-01T00:00:00+00:00"
    assert steps["later"]["meta"]["maxVisits"] == 7
    assert steps["now"]["meta"]["validSince"] is None
    listed = steps["list"]
    assert [url["shortCode"] for url in listed["data"]] == [plain["shortCode"], "Custom-Slug"]
    assert listed["pagination"] == {
        "currentPage": 1,
        "pagesCount": 1,
        "itemsPerPage": 10,
        "itemsInCurrentPage": 2,
        "totalItems": 2,
    }
    assert [url["shortCode"] for url in steps["search"]["data"]] == ["Custom-Slug"]
    assert [url["shortCode"] for url in steps["second"]["data"]] == ["Custom-Slug"]
    assert steps["second"]["pagination"]["pagesCount"] == 2
    assert steps["get"] == custom
    updated = steps["update"]
    assert (updated["title"], updated["tags"]) == ("Another", ["one", "three"])
    assert updated["crawlable"] is True
    assert updated["meta"]["validUntil"] is None
    assert failed(steps, "absent") == ("short-url-not-found", 404)
    assert failed(steps, "elsewhere") == ("domain-not-found", 404)
    number = decode_base62(plain["shortCode"])
    assert number is not None
    async with rt.db.read() as session:
        assert (await session.get_one(Link, number)).forward_query


async def _prepare_clicks(rt: Runtime, user: User) -> int:
    """Make a link with two tags, two clicks of people and one of a bot."""
    async with rt.db.write() as session:
        link = await make.link(session, rt, user, name="Custom-Slug", tags=["one", "three"])
        await make.link(session, rt, user, "https://example.com/other", tags=["Zebra Two"])
    now = rt.clock.now()
    times = [now - timedelta(hours=hours) for hours in (3, 2, 1)]
    agents = (FIREFOX, BOT, FIREFOX)
    await stored(
        rt, [click(link.id, at, agent=agent) for at, agent in zip(times, agents, strict=True)]
    )
    return link.id


async def test_the_official_sdk_reads_visits_and_changes_tags(
    rt: Runtime, address: str, root: User, admin_key: str
) -> None:
    await _prepare_clicks(rt, root)
    host = address.removeprefix("http://")

    steps = await run_client("shlink.mjs", "count", address, admin_key, host)

    visits = steps["visits"]["data"]
    assert [visit["potentialBot"] for visit in visits] == [False, True, False]
    assert visits[0]["date"] == "2026-06-01T11:00:00+00:00"
    assert visits[0]["referer"] == "https://a.example/b"
    assert visits[0]["visitedUrl"] == f"{address}/Custom-Slug"
    assert visits[1]["userAgent"] == BOT
    assert steps["people"]["pagination"]["totalItems"] == 2
    assert len(steps["people"]["data"]) == 1
    assert steps["overview"]["nonOrphanVisits"] == {"total": 3, "nonBots": 2, "bots": 1}
    assert steps["overview"]["orphanVisits"]["total"] == 0
    for name in ("nonOrphan", "tagVisits", "defaultVisits", "hostVisits"):
        assert steps[name]["pagination"]["totalItems"] == 3, name
    assert steps["orphan"]["data"] == []
    assert failed(steps, "noTag") == ("tag-not-found", 404)
    assert steps["tags"]["data"] == ["one", "three", "Zebra Two"]
    assert steps["stats"]["data"][0]["shortUrlsCount"] == 1
    assert steps["stats"]["data"][0]["visitsSummary"]["total"] == 3
    assert steps["rename"] == {"oldName": "one", "newName": "first"}
    assert "failed" not in steps["deleteTags"]
    assert [domain["isDefault"] for domain in steps["domains"]["data"]] == [True]
    assert steps["domains"]["data"][0]["domain"] == host
    assert failed(steps, "foreignVisits") == ("domain-not-found", 404)
    assert steps["redirects"]["failed"]["status"] == 403
    assert steps["rules"] == steps["noRules"]
    assert steps["rules"]["redirectRules"] == []
    assert failed(steps, "setRules") == ("invalid-data", 400)
    assert failed(steps, "mercure") == ("mercure-not-configured", 501)
    assert steps["deleteVisits"] == steps["deleteOrphans"] == {"deletedVisits": 0}
    assert steps["delete"] is None
    assert failed(steps, "deleted") == ("short-url-not-found", 404)
    assert steps["remade"]["shortCode"] == "custom-slug"
    assert failed(steps, "badKey") == ("invalid-api-key", 401)


async def test_archived_visits_are_paged_from_the_newest_on(
    rt: Runtime, http: httpx.AsyncClient, ada: User, key: str
) -> None:
    """Days in files and clicks in the database are one list."""
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="aged")
    now = rt.clock.now()
    hours = [0, 1, 30 * 24, 30 * 24 + 1, 60 * 24, 60 * 24 + 1, 60 * 24 + 2]
    await stored(rt, [click(link.id, now - timedelta(hours=hour)) for hour in hours])
    while await archive_old_days(rt):
        pass
    expected = [(now - timedelta(hours=hour)).isoformat(timespec="seconds") for hour in hours]

    got: list[str] = []
    for page in range(1, 5):
        response = await http.get(
            "/rest/v3/short-urls/aged/visits",
            params={"page": page, "itemsPerPage": 2},
            headers={"X-Api-Key": key},
        )
        visits = response.json()["visits"]
        assert visits["pagination"]["totalItems"] == 7
        got += [visit["date"] for visit in visits["data"]]
    between = await http.get(
        "/rest/v2/short-urls/aged/visits/",
        params={
            "startDate": (now - timedelta(days=60, hours=1)).isoformat(),
            "endDate": (now - timedelta(days=29)).isoformat(),
        },
        headers={"X-Api-Key": key},
    )

    assert got == expected
    assert [visit["date"] for visit in between.json()["visits"]["data"]] == expected[2:6]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("shortCode-ASC", ["alpha", "beta", "gamma"]),
        ("title-DESC", ["beta", "gamma", "alpha"]),
        ("longUrl-ASC", ["gamma", "alpha", "beta"]),
        ("visits-DESC", ["beta", "alpha", "gamma"]),
        ("nonBotVisits-DESC", ["alpha", "beta", "gamma"]),
        ("dateCreated-ASC", ["gamma", "beta", "alpha"]),
    ],
)
async def test_short_urls_in_every_order(
    rt: Runtime, http: httpx.AsyncClient, ada: User, key: str, order: str, expected: list[str]
) -> None:
    made: dict[str, Link] = {}
    given = {"gamma": ("a", "M"), "beta": ("c", "Z"), "alpha": ("b", "A")}
    async with rt.db.write() as session:
        for name, (path, title) in given.items():
            url = f"https://example.com/{path}"
            made[name] = await make.link(session, rt, ada, url, name=name, title=title)
    now = rt.clock.now()
    clicks = [click(made["alpha"].id, now)] * 2
    clicks += [click(made["beta"].id, now), *[click(made["beta"].id, now, agent=BOT)] * 2]
    await stored(rt, clicks)

    response = await http.get(
        "/rest/v3/short-urls", params={"orderBy": order}, headers={"X-Api-Key": key}
    )

    assert [url["shortCode"] for url in response.json()["shortUrls"]["data"]] == expected


async def test_tags_can_be_excluded_and_dates_limited(
    rt: Runtime, http: httpx.AsyncClient, ada: User, key: str
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="red", tags=["r"])
        await make.link(session, rt, ada, name="both", tags=["r", "g"])
    headers = {"X-Api-Key": key}

    async def codes(query: str) -> list[str]:
        response = await http.get(f"/rest/v3/short-urls?{query}", headers=headers)
        assert response.status_code == 200, response.text
        return sorted(url["shortCode"] for url in response.json()["shortUrls"]["data"])

    assert await codes("tags[]=r&excludeTags[]=g") == ["red"]
    assert await codes("excludeTags[]=r&excludeTags[]=g&excludeTagsMode=all") == ["red"]
    assert await codes("tags[]=g&tags[]=unknown") == ["both"]
    assert await codes("tags[]=g&tags[]=unknown&tagsMode=all") == []
    assert await codes("startDate=2026-06-02T00:00:00+02:00") == []
    assert await codes("endDate=2026-06-02T00:00:00%2B02:00") == ["both", "red"]
    assert await codes("searchTerm=g") == ["both"]


@on_sqlite
async def test_one_step_shortening(http: httpx.AsyncClient, key: str) -> None:
    query = {"apiKey": key, "longUrl": "https://example.com/a"}

    text = await http.get("/rest/v3/short-urls/shorten", params={**query, "format": "txt"})
    accepted = await http.get(
        "/rest/v1/short-urls/shorten", params=query, headers={"Accept": "text/plain"}
    )
    document = await http.get("/rest/v3/short-urls/shorten", params=query)
    without = await http.get("/rest/v3/short-urls/shorten", params={"longUrl": "x"})

    assert text.text.startswith(str(http.base_url).rstrip("/"))
    assert accepted.headers["content-type"].startswith("text/plain")
    assert document.json()["longUrl"] == "https://example.com/a"
    assert without.status_code == 401
    assert without.json()["param"] == "apiKey"


async def test_short_urls_live_on_other_domains_too(
    rt: Runtime, http: httpx.AsyncClient, key: str
) -> None:
    headers = {"X-Api-Key": key}
    async with rt.db.write() as session:
        await make.domain(session, rt, "sho.rt", root_destination="https://example.com/home")
        await make.domain(session, rt, "staff.example", creators="administrators")

    async def create(domain: str | None, target: str) -> httpx.Response:
        body = {"longUrl": target, "customSlug": "promo", "domain": domain}
        return await http.post("/rest/v3/short-urls", headers=headers, json=body)

    async def read(domain: str) -> httpx.Response:
        path = f"/rest/v3/short-urls/promo?domain={domain}"
        return await http.get(path, headers=headers)

    own = await create(None, "https://example.com/a")
    other = await create("sho.rt", "https://example.com/b")
    refused = [await create(host, "https://example.com/c") for host in ("staff.example", "x" * 300)]

    assert (own.json()["domain"], other.json()["domain"]) == (None, "sho.rt")
    assert other.json()["shortCode"] == "promo"
    assert other.json()["shortUrl"].startswith("http://sho.rt:")
    assert other.json()["shortUrl"].endswith("/promo")
    assert [response.status_code for response in refused] == [403, 404]
    assert (await read("sho.rt")).json()["longUrl"] == "https://example.com/b"
    assert (await read("DEFAULT")).json()["longUrl"] == "https://example.com/a"
    assert (await read("staff.example")).status_code == 404
    listed = (await http.get("/rest/v3/domains", headers=headers)).json()["domains"]["data"]
    assert [domain["isDefault"] for domain in listed] == [True, False]
    assert listed[1]["redirects"]["baseUrlRedirect"] == "https://example.com/home"
