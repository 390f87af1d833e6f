"""What else knows domains: lists, explanations, availability, bulk rows, files."""

import io
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.domains.hosts import split_address, to_other_host
from refract.identity.models import User
from refract.links.export import (
    LinkExportFormat,
    LinkExportWriter,
    build_record,
    iter_card_pages,
)
from refract.links.imports.formats import open_link_file
from refract.links.imports.importer import LinkImporter, LinkImportOutcome
from refract.links.models import Link
from refract.links.service import add_name, delete_link, purge_links
from refract.names.grammar import build_short_url, format_name, join_name, name_key, split_name
from refract.names.models import Name
from tests import make
from tests.client import on_sqlite
from tests.people import Headers

URL = "https://example.com/page"


@pytest.fixture
async def ready(app: WebNode, rt: Runtime) -> None:
    """Two domains that the process knows."""
    async with rt.db.write() as session:
        await make.domain(session, rt)
        await make.domain(session, rt, "team.test", creators="administrators")
    assert app.engine is not None
    assert await app.engine.invalidator.poll()


async def post(client: httpx.AsyncClient, to: str, who: Headers, **body: Any) -> httpx.Response:
    return await client.post(f"/api/v1/{to}", headers=who, json=body)


@on_sqlite
async def test_a_list_is_published_on_its_domain(
    client: httpx.AsyncClient, rt: Runtime, as_ada: Headers, ready: None
) -> None:
    found = (await post(client, "lists", as_ada, title="Reading", domain="SHO.RT")).json()
    assert (found["domain"], found["url"]) == ("sho.rt", None)
    base = f"lists/{found['id']}"
    await post(client, f"{base}/entries", as_ada, url=URL)
    public = (await post(client, f"{base}/publish", as_ada, slug="reading")).json()
    assert public["url"] == "http://sho.rt/reading"

    there = {"Host": "sho.rt", "Accept": "text/html"}
    page = await client.get("/reading", headers=there)
    assert (page.status_code, "Reading" in page.text) == (200, True)
    assert 'href="http://sho.rt/reading"' in page.text
    feed = await client.get("/reading.json", headers=there)
    assert feed.json()["feed_url"] == "http://sho.rt/reading.json"
    entry = await client.get("/reading/1", headers=there)
    assert (entry.status_code, entry.headers["location"]) == (302, URL)
    assert (await client.get("/reading.qr", headers=there)).status_code == 200
    assert (await client.get("/reading")).status_code == 404

    read = "/api/v1/public/lists/reading"
    assert (await client.get(read)).status_code == 404
    assert (await client.get(read, params={"domain": "sho.rt"})).json()["url"] == public["url"]
    edition = (await post(client, f"{base}/editions", as_ada)).json()
    assert (edition["domain"], edition["replaces"]) == ("sho.rt", public["url"])
    await post(client, f"lists/{edition['id']}/publish", as_ada)
    assert "Reading" in (await client.get("/reading", headers=there)).text


@on_sqlite
async def test_only_those_who_may_create_on_a_domain_have_lists_there(
    client: httpx.AsyncClient, as_ada: Headers, ready: None
) -> None:
    for who, host, expected in (
        (as_ada, "team.test", (403, "DOMAIN_NOT_ALLOWED")),
        (as_ada, "none.test", (404, "DOMAIN_NOT_FOUND")),
        ({}, "sho.rt", (403, "DOMAIN_NOT_ALLOWED")),
    ):
        answer = await post(client, "lists", who, domain=host)
        assert (answer.status_code, answer.json()["code"]) == expected


@on_sqlite
async def test_a_path_of_any_domain_is_explained(
    client: httpx.AsyncClient, as_ada: Headers, ready: None
) -> None:
    for host in (None, "sho.rt"):
        url = f"https://{host or 'default'}.test/"
        await post(client, "links", as_ada, destination=url, names=["plan"], domain=host)
    for path, location in (
        ("/plan", "https://default.test/"),
        ("http://go.test/plan", "https://default.test/"),
        ("sho.rt/plan", "https://sho.rt.test/"),
        ("http://sho.rt/plan?x=1#y", "https://sho.rt.test/"),
        ("team.test/plan", None),
        ("elsewhere.test/plan", None),
    ):
        said = (await post(client, "resolve", as_ada, path=path)).json()
        assert said["location"] == location, path
    assert (
        "sho.rt/plan" in (await post(client, "resolve", as_ada, path="sho.rt/plan")).json()["why"]
    )


async def test_nothing_leads_back_to_a_domain(
    client: httpx.AsyncClient, as_ada: Headers, as_root: Headers, ready: None
) -> None:
    for url in ("http://sho.rt/plan", "https://SHO.rt./", "http://team.test/", "http://go.test/x"):
        said = await post(client, "links", as_ada, destination=url, names=["plan"], domain="sho.rt")
        assert (said.status_code, said.json()["code"]) == (422, "LINK_LOOP"), url
    made = await post(client, "links", as_ada, destination="http://a.sho.rt/", domain="sho.rt")
    assert made.status_code == 201  # not one of our domains
    path = "/api/v1/domains/sho.rt"
    said = await client.patch(path, headers=as_root, json={"root_destination": "http://sho.rt/"})
    assert (said.status_code, said.json()["code"]) == (422, "INVALID_FALLBACK")
    said = await post(
        client, "domains", as_root, host="New.test", unknown_destination="new.test/404"
    )
    assert (said.status_code, said.json()["code"]) == (422, "INVALID_FALLBACK")


@on_sqlite
async def test_an_entry_follows_a_link_of_another_domain(
    client: httpx.AsyncClient, as_ada: Headers, ready: None
) -> None:
    await post(client, "links", as_ada, destination=URL, names=["plan"], domain="sho.rt")
    made = (await post(client, "lists", as_ada, title="Reading")).json()
    entry = (await post(client, f"lists/{made['id']}/entries", as_ada, url="sho.rt/plan")).json()
    assert entry["url"] == URL
    absent = await post(client, f"lists/{made['id']}/entries", as_ada, url="sho.rt/absent")
    assert absent.json()["code"] == "LINK_LOOP"


@on_sqlite
async def test_an_international_domain_is_found_as_people_write_it(
    client: httpx.AsyncClient, rt: Runtime, as_ada: Headers
) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, "xn--bcher-kva.example")
    made = (await post(client, "links", as_ada, destination=URL, domain="BÜCHER.example")).json()
    assert made["domain"] == "xn--bcher-kva.example"
    found = await client.get("/api/v1/links?domain=bücher.example", headers=as_ada)
    assert [link["id"] for link in found.json()["items"]] == [made["id"]]
    assert to_other_host("https://go.test", "bü cher") == "bü cher"


@on_sqlite
async def test_a_name_is_available_per_domain(
    client: httpx.AsyncClient, as_ada: Headers, ready: None
) -> None:
    await post(client, "links", as_ada, destination=URL, names=["plan"])

    async def is_available(name: str, host: str) -> bool:
        given = {"domain": host} if host else {}
        answer = await client.get(f"/api/v1/names/{name}", params=given, headers=as_ada)
        return bool(answer.json()["available"])

    assert not await is_available("PLAN", "")
    assert not await is_available("plan", "go.test")
    assert await is_available("plan", "sho.rt")
    assert await is_available("login", "sho.rt")
    assert not await is_available("static", "sho.rt")
    answer = await client.get("/api/v1/names/plan?domain=none.test", headers=as_ada)
    assert answer.json()["code"] == "DOMAIN_NOT_FOUND"


@on_sqlite
async def test_rows_of_many_domains_are_created_together(
    client: httpx.AsyncClient, as_ada: Headers, ready: None
) -> None:
    rows = [
        {"destination": URL, "names": ["same"], "domain": host}
        for host in (None, "sho.rt", "team.test", "none.test", "sho.rt")
    ]
    found = (await post(client, "links/bulk", as_ada, links=rows)).json()["results"]
    assert [row["status"] for row in found] == [201, 201, 403, 404, 409]
    assert [found[place]["link"]["short_url"] for place in (0, 1)] == [
        "http://go.test/same",
        "http://sho.rt/same",
    ]
    again = {"destination": URL, "find_if_exists": True, "domain": "sho.rt"}
    assert (await post(client, "links", as_ada, **again)).json()["domain"] == "sho.rt"


@on_sqlite
@pytest.mark.parametrize("form", [LinkExportFormat.JSON, LinkExportFormat.CSV])
async def test_an_exported_link_is_imported_on_its_domain(
    rt: Runtime, ada: User, ready: None, form: LinkExportFormat
) -> None:
    async with rt.db.write() as session:
        for host in (None, "sho.rt"):
            await make.link(session, rt, ada, name="plan", domain=host)
        links = list(await session.scalars(select(Link).order_by(Link.id)))
        who, space = make.who(ada), make.space(rt)
        await add_name(session, space, who, links[1].id, "extra")
        for name in ("both", "taken"):
            await add_name(session, space, who, links[0].id, name, host="sho.rt")
    writer, now = LinkExportWriter(form), rt.clock.now()
    pages = [page async for page in iter_card_pages(rt)]
    text = writer.head() + writer.page(build_record(card, now) for card in pages[0]) + writer.tail()
    async with rt.db.write() as session:
        for link in links:
            await delete_link(session, who, link.id, now)
        assert await purge_links(session, now, timedelta(0)) == 2
        other = await make.link(session, rt, ada, name="taken", domain="sho.rt")

    rows = list(open_link_file(io.BytesIO(text.encode()), now))
    results = await LinkImporter(rt, space, ada).import_batch(rows)

    assert [result.outcome for result in results] == [LinkImportOutcome.CREATED] * 2
    assert [(result.names, result.remarks) for result in results] == [
        (
            ["plan", "sho.rt/both"],
            ('sho.rt/taken isn\'t kept: The name "taken" is already in use. Choose another.',),
        ),
        (["sho.rt/plan", "extra"], ()),
    ]
    async with rt.db.read() as session:
        found = await session.execute(
            select(Name.key, Link.domain).join(Link, Link.id == Name.target_id)
        )
        assert {tuple(row) for row in found} == {
            ("plan", None),
            ("/sho.rt/both", None),
            ("/sho.rt/plan", "sho.rt"),
            ("extra", "sho.rt"),
            ("/sho.rt/taken", other.domain),
        }


@pytest.mark.parametrize(
    ("typed", "host", "path"),
    [
        ("plan", None, "plan"),
        ("/plan/x", None, "plan/x"),
        ("go.test/plan", None, "plan"),
        ("http://GO.test./plan", None, "plan"),
        ("sho.rt/plan", "sho.rt", "plan"),
        ("https://Sho.RT/plan/x", "sho.rt", "plan/x"),
        ("//sho.rt/plan", "sho.rt", "plan"),
        ("plan.qr/x", None, "plan.qr/x"),
        ("plan.", None, "plan."),
    ],
)
def test_a_typed_address_has_a_domain_and_a_path(typed: str, host: str | None, path: str) -> None:
    assert split_address("http://go.test", typed) == (host, path)


def test_the_text_of_a_name_begins_with_its_host() -> None:
    assert name_key("sho.rt/Road_Map") == name_key("/sho.rt/road-map") == "/sho.rt/road-map"
    assert name_key("Road_Map") == "road-map"
    assert split_name("/sho.rt/road-map") == split_name("sho.rt/road-map") == ("sho.rt", "road-map")
    assert (join_name(None, "a"), join_name("sho.rt", "a")) == ("a", "sho.rt/a")
    assert (format_name("a"), format_name("sho.rt/a")) == ("/a", "sho.rt/a")
    assert build_short_url("https://go.test:8443", "sho.rt/a") == "https://sho.rt:8443/a"
    assert to_other_host("https://go.test:8443", "GO.test:8443") is None
