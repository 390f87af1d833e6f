"""Clicks by domain: each counted under the host that it was made on, by hand and by filter."""

import csv
import io
import random
from collections import Counter

import httpx
import pytest

from refract.clicks.ingest.ingester import Ingester
from refract.clicks.rollups import compaction
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from tests import make
from tests.client import by_cookie
from tests.people import Headers
from tests.redirect.nodes import open_place

HOSTS = ("go.test", "sho.rt", "go.other.example")
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"
BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

Visit = tuple[str, str, str, str]
"""Host, name, user agent and campaign."""


@pytest.fixture
async def numbers(rt: Runtime, ada: User) -> dict[str, int]:
    """A link with a name on every domain, and one on a domain alone, by name."""
    async with rt.db.write() as session:
        for host in HOSTS[1:]:
            await make.domain(session, rt, host)
        both = await make.link(session, rt, ada, name="both")
        for host in HOSTS[1:]:
            who = make.who(ada)
            await service.add_name(session, make.space(rt), who, both.id, "both", host=host)
        alone = await make.link(session, rt, ada, name="alone", domain="sho.rt")
        return {"both": both.id, "alone": alone.id}


async def follow(rt: Runtime, count: int, seed: int) -> list[Visit]:
    """Follow links on any domain through a node; return the clicks of identifiable people."""
    chance, people = random.Random(seed), []
    async with open_place(rt) as place:
        for _ in range(count):
            host, agent = chance.choice(HOSTS), chance.choice((CHROME, PHONE, BOT))
            name = chance.choice(("both", "alone")) if host == "sho.rt" else "both"
            campaign, is_private = chance.choice(("", "spring")), chance.random() < 0.2
            headers = {"Host": host, "User-Agent": agent, **({"DNT": "1"} if is_private else {})}
            query = {"utm_campaign": campaign, "domain": "forged.example"} if campaign else {}
            answer = await place.get(f"/{name}", headers=headers, params=query)
            assert answer.status_code == 302
            if agent != BOT and not is_private:
                people.append((host, name, agent, campaign))
    await Ingester(rt).apply_all()
    return people


async def read(client: httpx.AsyncClient, who: Headers, path: str) -> Counter[str]:
    answer = (await client.get(f"/api/v1/{path}", headers=who)).raise_for_status().json()
    assert answer["total"] == sum(item["clicks"] for item in answer["items"])
    return Counter({item["value"]: item["clicks"] for item in answer["items"]})


@pytest.mark.parametrize("seed", [1, 2])
async def test_clicks_are_counted_by_the_domain_they_were_made_on(
    rt: Runtime,
    clock: ManualClock,
    client: httpx.AsyncClient,
    as_ada: Headers,
    numbers: dict[str, int],
    seed: int,
) -> None:
    people = await follow(rt, 60, seed)
    for age in (0, 3 * 3600):  # open, then folded into packs
        clock.advance(age)
        await compaction.close_hours(rt)
        assert await read(client, as_ada, "stats/domains") == Counter(host for host, *_ in people)
        for name, number in numbers.items():
            wanted = Counter(host for host, asked, *_ in people if asked == name)
            assert await read(client, as_ada, f"links/{number}/stats/domains") == wanted
    for host in HOSTS:
        here = [visit for visit in people if visit[0] == host]
        found = await read(client, as_ada, f"stats/campaigns?domain={host.upper()}")
        assert found == Counter(campaign for *_, campaign in here if campaign)
        by_host = await read(client, as_ada, f"stats/domains?domain={host}&device=desktop")
        assert by_host == Counter(host for _, _, agent, _ in here if agent == CHROME)
        whole = (await client.get(f"/api/v1/stats?domain={host}", headers=as_ada)).json()
        assert whole["totals"]["clicks"] == len(here)
        assert {int(link["id"]): link["clicks"] for link in whole["links"]} == Counter(
            numbers[name] for _, name, *_ in here
        )
    exported = await client.get(f"/api/v1/links/{numbers['both']}/stats/export", headers=as_ada)
    hosts = Counter(
        row["domain"] or HOSTS[0]
        for row in csv.DictReader(io.StringIO(exported.text))
        if row["bot"] == "false" and row["private"] == "false"
    )
    assert hosts == Counter(host for host, name, *_ in people if name == "both")


async def test_the_page_has_a_panel_and_a_filter_of_domains(
    rt: Runtime, client: httpx.AsyncClient, ada: User, numbers: dict[str, int]
) -> None:
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada))
    page = (await client.get("/app/analytics", headers=cookie)).text
    assert "panel-domains" not in page
    await follow(rt, 40, 3)
    page = (await client.get("/app/analytics", headers=cookie)).text
    assert "panel-domains" in page
    for host in HOSTS:
        assert f'href="/app/analytics?domain={host}"' in page
    here = (await client.get("/app/analytics?domain=go.test", headers=cookie)).text
    assert "/both" in here
    assert "sho.rt/alone" not in here


async def test_administrators_see_the_clicks_of_everyone_on_a_domain(
    rt: Runtime,
    client: httpx.AsyncClient,
    bob: User,
    as_ada: Headers,
    as_root: Headers,
    numbers: dict[str, int],
) -> None:
    async with rt.db.write() as session:
        foreign = (await make.link(session, rt, bob, name="his", domain="sho.rt")).id
    async with open_place(rt) as place:
        for _ in range(3):
            await place.get("/his", headers={"Host": "sho.rt", "User-Agent": CHROME})
    people = await follow(rt, 30, 4)
    wanted = Counter(numbers[name] for host, name, *_ in people if host == "sho.rt") + Counter(
        {foreign: 3}
    )
    path = "/api/v1/stats?owner=all&domain=sho.rt"

    found = (await client.get(path, headers=as_root)).raise_for_status().json()

    assert {int(link["id"]): link["clicks"] for link in found["links"]} == wanted
    assert found["totals"]["clicks"] == wanted.total()
    devices = await read(client, as_root, "stats/devices?owner=all&domain=sho.rt&campaign=spring")
    assert devices.total() == sum(
        host == "sho.rt" and campaign == "spring" for host, *_, campaign in people
    )
    assert (await client.get(path, headers=as_ada)).json()["code"] == "ADMIN_REQUIRED"
    unbounded = await client.get("/api/v1/stats?owner=all", headers=as_root)
    assert unbounded.json()["code"] == "FILTER_REQUIRED"


async def test_the_page_of_a_domain_leads_to_its_analytics(
    rt: Runtime,
    client: httpx.AsyncClient,
    ada: User,
    browser: Headers,
    numbers: dict[str, int],
) -> None:
    async with open_place(rt) as place:
        for name in numbers:
            await place.get(f"/{name}", headers={"Host": "sho.rt", "User-Agent": CHROME})
    await Ingester(rt).apply_all()
    path = "/app/analytics?owner=all&domain=sho.rt"
    domain = (await client.get("/app/admin/domains/sho.rt", headers=browser)).text
    assert f'href="{path.replace("&", "&amp;")}"' in domain

    whole = (await client.get(path, headers=browser)).text

    assert ">/both<" in whole
    assert "sho.rt/alone" in whole
    one = f"/app/analytics?domain=sho.rt&amp;link={numbers['alone']}"
    assert f'href="{one}"' in whole
    async with rt.db.write() as session:
        hers = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
    assert "All (admin)" not in (await client.get(path, headers=hers)).text
    own = (await client.get("/app/analytics?owner=all", headers=browser)).text
    assert "sho.rt/alone" not in own  # without a filter: the administrator's own links
