"""Clicks by rule: from the decision about a visitor to the page, the API, files and the editor."""

import csv
import io
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx
import pytest

from refract.clicks.ingest.ingester import Ingester
from refract.clicks.rollups import compaction
from refract.clicks.spool.format import encode_origin, extract_rule
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import Scope, User
from refract.links.models import Link
from refract.links.pages.rule_tab import estimate_share
from tests import make
from tests.clicks.counting import FIREFOX
from tests.client import by_cookie, by_key
from tests.people import Headers, ada
from tests.redirect.nodes import open_place

__all__ = ["ada"]
VISITS = {"de": "1", "fr": "2", "fr-CA": "2", "en": "none", "": "none"}
"""Languages of visitors, and the rules that decide about them."""
WANTED = Counter(VISITS.values())


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, name="trip")


@pytest.fixture
async def headers(rt: Runtime, ada: User) -> Headers:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada, Scope.READ, Scope.WRITE))


def _rule(language: str, **more: Any) -> dict[str, Any]:
    destination = f"https://example.com/{language}"
    return {"destination": destination, "conditions": {"languages": [language]}, **more}


async def _put(
    client: httpx.AsyncClient, link: Link, key: Headers, *rules: Mapping[str, Any]
) -> None:
    url = f"/api/v1/links/{link.id}/rules"
    (await client.put(url, headers=key, json={"rules": list(rules)})).raise_for_status()


async def _follow(rt: Runtime) -> None:
    async with open_place(rt) as place:
        for language in VISITS:
            asked = {"User-Agent": FIREFOX, "Accept-Language": language}
            assert (await place.get("/trip?rule=7", headers=asked)).status_code == 302
        private = {"User-Agent": FIREFOX, "Accept-Language": "de", "DNT": "1"}
        assert (await place.get("/trip", headers=private)).status_code == 302
    await Ingester(rt).apply_all()


@pytest.mark.parametrize(
    ("campaign", "rule"),
    [
        (b"rule=3", 3),
        (b"domain=sho.rt&rule=3&language=de", 3),
        (b"utm_source=x&rule=3", 3),
        (b"language=de&utm_source=x&rule=3", None),
        (b"rule=x", None),
        (b"rule=", None),
        (b"rule=" + b"9" * 11, None),
        (encode_origin("", None), None),
    ],
)
def test_only_a_number_names_a_rule(campaign: bytes, rule: int | None) -> None:
    assert extract_rule(campaign) == rule


async def test_clicks_are_counted_by_rule(
    rt: Runtime, clock: ManualClock, client: httpx.AsyncClient, link: Link, headers: Headers
) -> None:
    await _put(client, link, headers, _rule("de"), _rule("fr"))
    await _follow(rt)
    url = f"/api/v1/links/{link.id}/stats/rules"

    for age in (0, 3 * 3600):  # open, then folded into packs
        clock.advance(timedelta(seconds=age).total_seconds())
        await compaction.close_hours(rt)
        found = (await client.get(url, headers=headers)).raise_for_status().json()
        assert {item["value"]: item["clicks"] for item in found["items"]} == WANTED
        assert (found["total"], found["without"]) == (WANTED.total(), 1)
        assert {item["label"] for item in found["items"]} == {"Rule 1", "Rule 2", "No rule"}

    for rule, clicks in WANTED.items():
        found = (await client.get(f"{url}?rule={rule}", headers=headers)).raise_for_status().json()
        assert {item["value"]: item["clicks"] for item in found["items"]} == {rule: clicks}
    languages = await client.get(f"/api/v1/links/{link.id}/stats/languages?rule=2", headers=headers)
    assert [item["value"] for item in languages.json()["items"]] == ["fr"]
    exported = await client.get(f"/api/v1/links/{link.id}/stats/export", headers=headers)
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    counted = Counter(row["rule"] or "none" for row in rows if row["private"] == "false")
    assert counted == WANTED
    assert [row["rule"] for row in rows if row["private"] == "true"] == [""]


async def test_a_rule_keeps_its_clicks_when_it_is_moved_and_changed(
    rt: Runtime, client: httpx.AsyncClient, link: Link, headers: Headers, ada: User
) -> None:
    await _put(client, link, headers, _rule("de"), _rule("fr"))
    await _follow(rt)
    await _put(client, link, headers, _rule("fr-ca", number=2), _rule("it"))
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    page = (await client.get(f"/app/links/{link.id}?tab=analytics", headers=cookie)).text

    assert "panel-rules" in page
    assert f'href="/app/links/{link.id}?rule=2" title="https://example.com/fr-ca"' in page
    assert "<bdi>Rule 1</bdi>" in page
    assert "<bdi>Removed rule 1</bdi>" in page
    assert "<bdi>No rule</bdi>" in page
    filtered = (await client.get(f"/app/links/{link.id}?rule=2", headers=cookie)).text
    assert "chip" in filtered
    assert "Rule 1" in filtered
    details = f"/app/analytics/details/rules?link={link.id}"
    assert "Removed rule 1" in (await client.get(details, headers=cookie)).text
    file = (await client.get(f"/app/analytics/export.csv?link={link.id}", headers=cookie)).text
    assert "rules,2,Rule 2,2,," in file.splitlines()


async def test_rules_of_several_links_are_not_summed_up(
    rt: Runtime, client: httpx.AsyncClient, link: Link, headers: Headers, ada: User
) -> None:
    await _put(client, link, headers, _rule("de"))
    await _follow(rt)
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    assert (await client.get("/api/v1/stats/rules", headers=headers)).status_code == 422
    assert "panel-rules" not in (await client.get("/app/analytics", headers=cookie)).text
    away = await client.get("/app/analytics/details/rules", headers=cookie)
    assert (away.status_code, away.headers["location"]) == (303, "/app/analytics")
    file = (await client.get("/app/analytics/export.csv", headers=cookie)).text
    assert not [row for row in file.splitlines() if row.startswith("rules,")]


async def test_the_editor_tells_the_clicks_of_each_rule(
    rt: Runtime, client: httpx.AsyncClient, link: Link, headers: Headers, ada: User
) -> None:
    await _put(client, link, headers, _rule("de"), _rule("fr"), _rule("it"))
    await _follow(rt)
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    page = (await client.get(f"/app/links/{link.id}?tab=rules", headers=cookie)).text

    words = [part.partition("</p>")[0] for part in page.split('class="rule-clicks')[1:]]
    assert len(words) == 4
    for text, clicks in zip(words, ("1 click", "2 clicks", "0 clicks", "2 clicks"), strict=True):
        assert f"{clicks} in 30 days" in text
    assert "40%" in words[1]
    assert "(12%–77%)" in words[1]


@pytest.mark.parametrize(
    ("clicks", "total", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (50, 100, 0.404, 0.596)],
)
def test_bounds_of_a_share(clicks: int, total: int, low: float, high: float) -> None:
    """Compared with published values of Wilson's interval."""
    assert estimate_share(clicks, total) == pytest.approx((low, high), abs=0.001)
