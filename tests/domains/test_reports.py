"""Abuse reports of links and lists on other domains, and of those that teams own."""

import re

from httpx import AsyncClient

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import on_sqlite
from tests.people import Headers

EVIL = "https://evil.example/login"


async def report(client: AsyncClient, target: str) -> None:
    body = {"target": target, "reason": "phishing"}
    assert (await client.post("/api/v1/reports", json=body)).status_code == 202


async def test_a_report_names_the_domain_of_its_target(
    client: AsyncClient, rt: Runtime, node: WebNode, ada: User, as_root: Headers, browser: Headers
) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt)
        for host in (None, "sho.rt"):
            await make.link(session, rt, ada, EVIL, name="evil", domain=host)
    assert node.engine is not None
    assert await node.engine.invalidator.poll()
    for target in ("http://sho.rt/evil", "sho.rt/Evil+", "evil"):
        await report(client, target)

    items = (await client.get("/api/v1/admin/reports", headers=as_root)).json()["items"]
    assert [(group["domain"], group["name"], group["url"]) for group in items] == [
        ("sho.rt", "evil", "http://sho.rt/evil"),
        (None, "evil", "http://go.test/evil"),
    ]
    page = (await client.get("/app/admin/reports", headers=browser)).text
    assert re.findall(r'<a href="([^"]+)" data-row-open>([^<]+)</a>', page) == [
        ("http://sho.rt/evil+", "sho.rt/evil"),
        ("http://go.test/evil+", "/evil"),
    ]
    path = f"/app/admin/reports/{items[0]['id']}/disable-link"
    done = await client.post(path, headers=browser)
    said = {"Cookie": f"{browser['Cookie']}; {done.headers['set-cookie'].split(';')[0]}"}
    after = await client.get("/app/admin/reports", headers=browser | said)
    assert "Disabled sho.rt/evil" in after.text
    events = (await client.get("/api/v1/admin/audit", headers=as_root)).json()["items"]
    details = {event["action"]: event["detail"] for event in events}
    assert details["report.disable-link"] == "sho.rt/evil"


@on_sqlite
async def test_pages_on_a_domain_report_what_they_show(
    client: AsyncClient, rt: Runtime, node: WebNode, ada: User, as_ada: Headers, as_root: Headers
) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt)
        await make.link(session, rt, ada, EVIL, name="evil", domain="sho.rt")
    assert node.engine is not None
    assert await node.engine.invalidator.poll()
    made = await client.post("/api/v1/lists", headers=as_ada, json={"domain": "sho.rt"})
    base = f"/api/v1/lists/{made.json()['id']}"
    await client.post(f"{base}/entries", headers=as_ada, json={"url": EVIL})
    await client.post(f"{base}/publish", headers=as_ada, json={"slug": "prizes"})

    for path in ("/evil+", "/prizes"):
        headers = {"Host": "sho.rt", "Accept": "text/html"}
        page = (await client.get(path, headers=headers)).text
        (offered,) = re.findall(r'href="(http://go.test/app/report[^"]+)"', page)
        form = (await client.get(offered, headers={"Accept": "text/html"})).text
        (target,) = re.findall(r'name="target"[^>]* value="([^"]+)"', form)
        await report(client, target)

    items = (await client.get("/api/v1/admin/reports", headers=as_root)).json()["items"]
    assert [group["url"] for group in items] == ["http://sho.rt/evil", "http://sho.rt/prizes"]


async def test_a_report_of_what_a_team_owns_names_the_team(
    client: AsyncClient, rt: Runtime, ada: User, as_ada: Headers, as_root: Headers, browser: Headers
) -> None:
    async with rt.db.write() as session:
        await make.team(session, rt, ada, name="Marketing")
    link = {"destination": EVIL, "names": ["evil"], "team": "marketing"}
    assert (await client.post("/api/v1/links", headers=as_ada, json=link)).status_code == 201
    made = await client.post("/api/v1/lists", headers=as_ada, json={"team": "marketing"})
    base = f"/api/v1/lists/{made.json()['id']}"
    assert (
        await client.post(f"{base}/entries", headers=as_ada, json={"url": EVIL})
    ).status_code == 201
    await client.post(f"{base}/publish", headers=as_ada, json={"slug": "prizes"})
    for target in ("evil", "prizes"):
        await report(client, target)

    items = (await client.get("/api/v1/admin/reports", headers=as_root)).json()["items"]
    assert [(group["name"], group["owner_team"], group["owner_id"]) for group in items] == [
        ("evil", "marketing", None),
        ("prizes", "marketing", None),
    ]
    page = (await client.get("/app/admin/reports", headers=browser)).text
    assert page.count("Team marketing") == 2
    assert "No owner" not in page
