"""Published lists: page, feeds, redirects of entries, counts, and invalidation across processes."""

import json
import re
from collections.abc import Iterator

import feedparser
import pytest
from httpx import ASGITransport, AsyncClient
from sqlalchemy import select

from refract.app import WebNode
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.models import ClickEvent
from refract.clicks.spool.format import ENTRY_CLICK, PAGE_VIEW
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service as links
from refract.links.safety.blocked_domains import block_domain, unblock_domain
from refract.links.schemas import LinkPatch
from refract.lists import service
from refract.lists.access import ListCaller
from refract.lists.addresses import check_addresses
from refract.lists.draft_owners import ListClient
from refract.server.node import ServerNode
from tests import make
from tests.client import by_key, on_sqlite
from tests.links.many_links import gather_statistics
from tests.links.test_plans import BIG
from tests.lists.clients import code, creator, new_list, published, read
from tests.plans import find_scans, record_statements

HTML = {"Accept": "text/html"}
A, B, C = (f"https://example.com/{letter}" for letter in "abc")


async def test_the_page_shows_every_entry_with_its_real_address(client: AsyncClient) -> None:
    me = creator()
    draft = await new_list(client, me, A, B, title="Reading <b>", description="For\nyou")
    await client.patch(
        f"/api/v1/lists/{draft['id']}/entries/{draft['entries'][0]['id']}",
        headers=me,
        json={"title": "<script>x</script>"},
    )
    await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me, json={"slug": "reading"})

    page = await client.get("/reading", headers=HTML)

    assert page.status_code == 200
    assert "<script>x" not in page.text
    assert "&lt;script&gt;x&lt;/script&gt;" in page.text
    assert "Reading &lt;b&gt;" in page.text
    assert 'href="/reading/1"' in page.text
    assert f'title="{A}"' in page.text
    assert "(No title)" in page.text
    og = dict(re.findall(r'<meta property="(og:\w+)" content="([^"]*)"', page.text))
    assert (og["og:title"], og["og:url"], og["og:type"]) == (
        "Reading &lt;b&gt;",
        "http://go.test/reading",
        "website",
    )
    assert og["og:image"] == "http://go.test/reading.png"
    assert "/app/lists/" not in page.text  # no way to manage it
    foreign = set(re.findall(r'(?:src|action)="(https?://[^"]+)"', page.text))
    assert foreign == set()


@on_sqlite
async def test_every_way_to_read_a_list(client: AsyncClient) -> None:
    await published(client, creator(), "reading", A, B, title="Reading")

    head = await client.head("/Reading")
    feed, data, text = [await client.get(f"/reading.{kind}") for kind in ("rss", "json", "md")]
    code_svg, code_png = (
        await client.get("/reading.qr"),
        await client.get("/reading.qr?format=png&size=128"),
    )

    assert (head.status_code, head.content) == (200, b"")
    assert feed.headers["content-type"] == "application/rss+xml; charset=utf-8"
    assert [one.link for one in feedparser.parse(feed.content).entries] == [A, B]
    assert data.headers["content-type"] == "application/feed+json; charset=utf-8"
    assert [item["url"] for item in json.loads(data.content)["items"]] == [A, B]
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert code_svg.headers["content-type"] == "image/svg+xml"
    assert code_png.content.startswith(b"\x89PNG")
    unchanged = await client.get("/reading.rss", headers={"If-None-Match": feed.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert (await client.get("/reading+", headers=HTML)).status_code == 200


@on_sqlite
async def test_what_is_not_there(client: AsyncClient) -> None:
    await published(client, creator(), "reading", A, B)

    absent = [
        "/0",
        "/3",
        "/01",
        "/x",
        "/1/2",
        "/1x",
        "/1?edition=7",
        ".rss/1",
        ".qr/1",
        ".json?edition=9",
    ]
    absent += ["?edition=2", "?edition=0", "?edition=x"]
    for path in (*absent, "/99999999999999999999"):
        assert (await client.get(f"/reading{path}")).status_code == 404, path
    assert (await client.post("/reading")).status_code == 405


async def test_an_entry_redirects_and_is_counted_and_so_is_the_page(
    client: AsyncClient, app: WebNode, rt: Runtime
) -> None:
    me = creator()
    found = await published(client, me, "reading", "https://Example.com/ä", B)
    browser = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}

    first = await client.get("/reading/1?utm_source=mail", headers=browser)
    for _ in range(2):
        await client.get("/reading/2", headers=browser)
    await client.head("/reading/2", headers=browser)
    await client.get("/reading/2", headers=browser | {"Sec-Purpose": "prefetch"})
    for _ in range(3):
        await client.get("/reading", headers=browser | HTML)
    await client.get("/reading.rss", headers=browser)

    assert (first.status_code, first.headers["location"]) == (302, "https://example.com/%C3%A4")
    assert first.headers["cache-control"] == "private, no-store"
    assert "x-request-id" not in first.headers
    assert await Ingester(rt).apply_all() == 7
    async with rt.db.read() as session:
        kept = sorted(
            (one.kind, one.target_id) for one in await session.scalars(select(ClickEvent))
        )
    list_id, one, two = int(found["id"]), *(int(entry["id"]) for entry in found["entries"])
    assert kept == sorted(
        [(PAGE_VIEW, list_id)] * 3 + [(ENTRY_CLICK, one)] + [(ENTRY_CLICK, two)] * 3
    )
    mine = await read(client, me, found["id"])
    assert (mine["views"], [entry["clicks"] for entry in mine["entries"]]) == (3, [1, 2])


async def test_a_name_is_known_and_forgotten_at_once(client: AsyncClient) -> None:
    me = creator()
    assert (await client.get("/reading")).status_code == 404  # now known as missing

    found = await published(client, me, "reading", A)
    assert (await client.get("/reading/1")).headers["location"] == A
    draft = (await client.post(f"/api/v1/lists/{found['id']}/editions", headers=me)).json()
    await client.delete(
        f"/api/v1/lists/{draft['id']}/entries/{draft['entries'][0]['id']}", headers=me
    )
    await client.post(f"/api/v1/lists/{draft['id']}/entries", headers=me, json={"url": B})
    await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me)
    assert (await client.get("/reading/1")).headers["location"] == B
    assert (await client.get("/reading/1?edition=1")).headers["location"] == A
    older = await client.get("/reading?edition=1", headers=HTML)
    assert 'href="/reading/1?edition=1"' in older.text
    assert ">Newer edition</a>" in older.text
    assert "noindex" in older.text

    await client.delete(f"/api/v1/lists/{draft['id']}", headers=me)
    assert (await client.get("/reading")).status_code == 404


@on_sqlite
async def test_a_freed_name_can_become_a_link_and_the_other_way_round(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    me = creator()
    found = await published(client, me, "reading", A)
    assert (await client.get("/reading")).status_code == 200
    await client.delete(f"/api/v1/lists/{found['id']}", headers=me)
    await client.post(f"/api/v1/lists/{found['id']}/release", headers=me)
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))

    made = await client.post(
        "/api/v1/links", headers=key, json={"destination": B, "names": ["reading"]}
    )

    assert made.status_code == 201
    assert (await client.get("/reading")).headers["location"] == B
    released = await client.delete(f"/api/v1/links/{made.json()['id']}/names/reading", headers=key)
    assert released.status_code == 204
    await published(client, me, "reading", C)
    assert (await client.get("/reading/1")).headers["location"] == C


async def test_a_blocked_domain_stops_entries_too(client: AsyncClient, rt: Runtime) -> None:
    me = creator()
    found = await published(client, me, "reading", "https://sub.bad.example/x", B)
    assert (await client.get("/reading/1")).status_code == 302

    async with rt.db.write() as session:
        await block_domain(session, "bad.example", reason="spam", by=None, at=rt.clock.now())

    assert (await client.get("/reading/1")).status_code == 410
    assert (await client.get("/reading/2")).headers["location"] == B
    page = (await client.get("/reading", headers=HTML)).text
    assert 'href="/reading/1"' not in page
    assert "This link has been blocked." in page
    assert [
        one["position"]
        for one in (await client.get("/api/v1/public/lists/reading")).json()["entries"]
    ] == [2]
    assert [one["state"] for one in (await read(client, me, found["id"]))["entries"]] == [
        "blocked",
        "live",
    ]
    draft = await new_list(client, me)
    refused = await client.post(
        f"/api/v1/lists/{draft['id']}/entries", headers=me, json={"url": "https://bad.example/y"}
    )
    assert code(refused) == (422, "BLOCKED_DESTINATION")

    async with rt.db.write() as session:
        await unblock_domain(session, "bad.example", by=None, at=rt.clock.now())
    assert (await client.get("/reading/1")).status_code == 302


async def test_an_entry_follows_one_of_our_links(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, A, name="roadmap")
    me = creator()
    found = await published(client, me, "reading", "http://go.test/RoadMap", B)
    assert (found["entries"][0]["url"], found["entries"][0]["link_id"]) == (A, str(link.id))
    assert (await client.get("/reading/1")).headers["location"] == A

    async with rt.db.write() as session:
        checked = await make.checked_changes(rt, C)
        await links.edit_link(
            session, make.space(rt), make.who(ada), link.id, LinkPatch(destination=C), checked
        )
    assert (await client.get("/reading/1")).headers["location"] == C
    assert (await read(client, me, found["id"]))["entries"][0]["url"] == C
    assert C in (await client.get("/reading.md")).text

    async with rt.db.write() as session:
        await links.disable_link(session, make.who(ada), link.id, rt.clock.now())
    assert (await client.get("/reading/1")).status_code == 410
    assert (await read(client, me, found["id"]))["entries"][0]["state"] == "gone"


@on_sqlite
async def test_our_own_addresses_are_no_entries_unless_a_link_can_be_followed(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, A, name="hidden", visibility="secure")
        await make.link(session, rt, ada, "https://example.com/{1}", name="jira")
        await make.link(session, rt, ada, A, name="few", click_limit=5)
        await make.link(session, rt, ada, A, name="fine")
    me = creator()
    draft = await new_list(client, me)

    for url in (
        "http://go.test/",
        "http://go.test/hidden",
        "http://go.test/few",
        "http://go.test/jira",
        "http://go.test/nothing",
        "http://go.test/fine/more",
        "http://go.test/fine?x=1",
        "http://go.test:8000/fine",
    ):
        refused = await client.post(
            f"/api/v1/lists/{draft['id']}/entries", headers=me, json={"url": url}
        )
        assert code(refused) == (422, "LINK_LOOP"), url


# -- how much is asked of the database


@pytest.fixture
def statements(rt: Runtime) -> Iterator[list[str]]:
    """Return every query of the pool; the redirect engine counts its own."""
    asked: list[str] = []
    stop = count_statements(
        rt.db.read_engine,
        lambda statement: asked.append(statement) if statement.startswith("SELECT") else None,
    )
    yield asked
    stop()


async def _with_entries(rt: Runtime, ada: User, count: int, slug: str) -> int:
    who, space = ListCaller(ada.id), make.space(rt)
    async with rt.db.write() as session:
        made = await make.list_of(
            session, rt, who, *(f"https://example.com/{number}" for number in range(count))
        )
        await service.set_draft_slug(session, space, who, made.id, slug)
        await service.publish_list(session, space, who, made.id)
        return made.id


async def test_a_list_page_takes_as_many_queries_at_any_size(
    client: AsyncClient, app: WebNode, rt: Runtime, ada: User, statements: list[str]
) -> None:
    small, large = (
        await _with_entries(rt, ada, 5, "small"),
        await _with_entries(rt, ada, 500, "large"),
    )
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
    assert app.engine is not None
    tiers = app.engine.lookup
    assert await app.engine.invalidator.poll()  # knows from then on that no exact codes are kept
    counts: dict[str, set[int]] = {}
    paths = {
        "page": "/{}",
        "feed": "/{}.rss",
        "entry": "/{}/5",
        "public": "/api/v1/public/lists/{}",
    }
    for kind, path in paths.items():
        for slug in ("small", "large"):
            statements.clear()
            before = tiers.queries
            response = await client.get(path.format(slug), headers=HTML)
            assert response.status_code in (200, 302)
            counts.setdefault(kind, set()).add(len(statements) + tiers.queries - before)
    for kind, path in {"builder": "/app/lists/{}", "read": "/api/v1/lists/{}"}.items():
        for list_id in (small, large):
            statements.clear()
            assert (await client.get(path.format(list_id), headers=key | HTML)).status_code == 200
            counts.setdefault(kind, set()).add(len(statements))

    assert counts == {
        "page": {3},
        "feed": {3},
        "entry": {3},
        "public": {2},
        "builder": {4},  # one for the teams that the list can be handed over to
        "read": {3},
    }


async def test_no_question_about_lists_reads_a_whole_table(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    """Check query plans, with so many rows that a scan is never cheaper."""
    for number in range(6):
        await _with_entries(rt, ada, 400, f"list-{number}")
    await gather_statistics(rt, "names, lists, list_entries, list_totals, links")
    with record_statements(rt.db.read_engine) as asked:
        for path in ("/list-1", "/list-1/7", "/api/v1/public/lists/list-2?edition=1"):
            assert (await client.get(path)).status_code in (200, 302)
    big = [
        (statement, parameters) for statement, parameters in asked if "list_entries" in statement
    ]

    assert big
    for statement, parameters in big:
        scans = await find_scans(rt, statement, parameters, BIG)
        absent = (" on links", " on link_owners")  # there is none of these here to look at
        assert [scan for scan in scans if not scan.endswith(absent)] == [], statement


@on_sqlite
async def test_a_node_that_only_redirects_shows_lists_as_well(
    client: AsyncClient, rt: Runtime
) -> None:
    await published(client, creator(), "reading", A)
    alone = ServerNode(rt)
    assert alone.engine is not None
    async with AsyncClient(transport=ASGITransport(alone), base_url="http://go.test") as other:
        page, entry, feed = [
            await other.get(path, headers=HTML)
            for path in ("/reading", "/reading/1", "/reading.json")
        ]
    alone.engine.spool.close()

    assert (page.status_code, entry.headers["location"], feed.status_code) == (200, A, 200)


async def test_a_host_that_imitates_another_is_shown_in_ascii_everywhere(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    """The finding: the page showed `pаypal.com` (with a Cyrillic а) in its own letters."""
    (address,) = await check_addresses(rt, ListClient(None, None, ""), ["https://pаypal.com/login"])
    assert isinstance(address, service.CheckedAddress)
    async with rt.db.write() as session:
        maker = ListCaller(ada.id)
        made = await make.list_of(session, rt, maker, title="Payments")
        await service.add_entries(session, make.space(rt), maker, made.id, [address])
        slug = (await service.publish_list(session, make.space(rt), maker, made.id)).slug
    for path in ("", ".rss", ".json", ".md", "/1"):
        text = (await client.get(f"/{slug}{path}", headers={"Accept": "text/html"})).text
        assert "xn--pypal-4ve.com" in text, path
        assert "pаypal" not in text, path
    api = await client.get(f"/api/v1/public/lists/{slug}")
    assert api.json()["entries"][0]["url"] == "https://xn--pypal-4ve.com/login"
