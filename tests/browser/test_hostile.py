"""Hostile texts from users, imports and web pages never run in a browser."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from html import escape
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.visiting import PAYLOADS, WATCH, Visit, silent, visit
from tests.lists.pages_server import Site, page
from tests.lists.pages_server import site as foreign_site
from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE, eventually
from tools.servers import free_port

__all__ = ["silent", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHORT = '"><img src=x onerror=window.ran=1>'
"""A payload for fields of forty characters."""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "data"


@pytest.fixture(scope="module")
def site(data_dir: Path) -> Iterator[Served]:
    """A server with another host name than the hostile pages, which it may fetch."""
    port = free_port()
    settings = {
        "REFRACT_FETCH_ALLOW": "127.0.0.1/32",
        "REFRACT_BASE_URL": f"http://localhost:{port}",
    }
    with serving(data_dir, port=port, **settings) as here:
        here.url = settings["REFRACT_BASE_URL"]
        yield here


@pytest_asyncio.fixture(loop_scope="session")
async def web() -> AsyncIterator[Site]:
    async with foreign_site() as here:
        yield here


async def _look(visit: Visit, path: str, *expected: str) -> None:
    """Open a page and check that the payload is shown as text and has no effect."""
    await visit.page.goto(path)
    for text in expected:
        await expect(visit.page.get_by_text(text).first).to_be_attached()
    assert await visit.page.evaluate("[window.ran, window.refused]") == [None, []], path
    assert visit.complaints == [], path


async def _wait_for(visit: Visit, path: str, wanted: str) -> str:
    """Wait until background work is done."""
    said = ""

    async def shown() -> bool:
        nonlocal said
        said = (await visit.ask("GET", path)).text
        return wanted in said

    await eventually(shown, pause=0.25)
    return said


async def test_referrers_agents_and_campaigns_of_clicks(visit: Visit) -> None:
    link = (
        await visit.ask(
            "POST", "/api/v1/links", destination="https://example.com/clicked", names=["clicked"]
        )
    ).json()
    for number, payload in enumerate(PAYLOADS):
        headers = {
            "User-Agent": f"Mozilla/5.0 {payload}",
            "Referer": f"https://from-{number}.example/{payload}?{payload}",
        }
        async with httpx.AsyncClient(
            base_url=visit.site.url, headers=headers, timeout=PATIENCE
        ) as stranger:
            tags = dict.fromkeys(
                ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"), payload
            )
            assert (await stranger.get("/clicked", params=tags)).status_code == 302
            odd = {"Referer": payload, "User-Agent": payload}
            assert (await stranger.get("/clicked", headers=odd)).status_code == 302
    stats = f"/api/v1/links/{link['id']}/stats"
    await _wait_for(visit, f"{stats}/campaigns", json.dumps(PAYLOADS[-1])[1:-1])
    await _wait_for(visit, f"{stats}/referrers", f"from-{len(PAYLOADS) - 1}.example")

    await _look(
        visit, f"/app/links/{link['id']}", PAYLOADS[0], PAYLOADS[1], PAYLOADS[4], "from-0.example"
    )
    await _look(visit, f"/app/links/{link['id']}?range=1d", PAYLOADS[0])
    await _look(visit, "/")
    await visit.page.goto("/app/settings")  # ends the stream of live figures


async def test_imported_links_and_bookmarks(visit: Visit, data_dir: Path) -> None:
    rows = [
        {
            "destination": f"https://example.com/i{number}",
            "title": payload,
            "notes": payload,
            "names": [f"brought-{number}"],
        }
        for number, payload in enumerate(PAYLOADS)
    ]
    file = data_dir.with_name("links.json")
    file.write_text(json.dumps(rows))
    brought = refract(
        "import", "links", str(file), "--data-dir", str(data_dir), REFRACT_BASE_URL=visit.site.url
    )
    assert brought.returncode == 0, brought.stdout + brought.stderr

    marks = "".join(
        f'<DT><A HREF="https://example.com/b{number}"'
        f' TAGS="{escape(SHORT)}">{escape(payload)}</A><DD>{escape(payload)}'
        for number, payload in enumerate(PAYLOADS)
    )
    netscape = (
        f"<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><DT><H3>{escape(SHORT)}</H3><DL>{marks}</DL></DL>"
    )
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in await visit.context.cookies())
    async with httpx.AsyncClient(
        base_url=visit.site.url,
        headers={"Origin": visit.site.url, "Cookie": cookies},
        timeout=PATIENCE,
    ) as client:
        answer = await client.post(
            "/api/v1/library/imports", content=netscape, params={"name": SHORT}
        )
    assert answer.status_code == 202, answer.text
    await _wait_for(visit, f"/api/v1/library/imports/{answer.json()['id']}", '"waiting":0')

    await _look(visit, "/app/links", PAYLOADS[0], PAYLOADS[1])
    for one in (await visit.ask("GET", "/api/v1/links?q=brought")).json()["items"]:
        await _look(visit, f"/app/links/{one['id']}", one["title"])
        await _look(visit, f"/{one['names'][0]}+", one["title"])
    await _look(visit, "/app/library", PAYLOADS[0], PAYLOADS[1])
    for one in (await visit.ask("GET", "/api/v1/library")).json()["items"][:3]:
        await _look(visit, f"/app/library/{one['id']}", one["title"])
    for path in ("/app/tags", "/app/tags/mine", "/app/review"):
        await _look(visit, path)
    await _look(visit, "/app/search?q=window", PAYLOADS[0])


def _hostile_page(payload: str) -> bytes:
    said = escape(payload)
    words = " ".join(
        [
            (
                "The harbour crane lifts containers from ships all day long, and nobody at the quay"
                " counts them."
            )
        ]
        * 8
    )
    return f"""<html lang="en"><head><title>{said}</title>
    <meta property="og:title" content="{said}"><meta property="og:description" content="{said}">
    <meta name="description" content="{said}"><meta name="author" content="{said}">
    <meta property="og:site_name" content="{said}"><meta name="keywords" content="{said}">
    <meta property="og:image" content="javascript:window.ran=1"></head>
    <body onload="window.ran=1"><article><h1>{said}</h1>
    <p>{words}</p><p>{said}</p>{payload}<p><a href="javascript:window.ran=1">press</a>
    <img src="x" onerror="window.ran=1">{words}</p>
    <iframe srcdoc="&lt;script&gt;parent.ran=1&lt;/script&gt;"></iframe>
    <form action="https://elsewhere.example"><input autofocus onfocus="window.ran=1"></form>
    <style>@import url(https://elsewhere.example/x.css);</style>
    <math><mtext><img src=x onerror=window.ran=1></mtext></math>
    <object data="javascript:window.ran=1"></object><p>{words}</p>
    </article></body></html>""".encode()


async def test_what_foreign_pages_say_of_themselves(visit: Visit, web: Site) -> None:
    for number, payload in enumerate(PAYLOADS):
        web.pages[f"/p{number}"] = page(_hostile_page(payload))
    urls = [web.url(f"/p{number}") for number in range(len(PAYLOADS))]
    drafted = (
        await visit.ask("POST", "/api/v1/lists", title=PAYLOADS[4], description=PAYLOADS[1])
    ).json()
    assert (
        await visit.ask("POST", f"/api/v1/lists/{drafted['id']}/entries", urls=urls)
    ).status_code < 300
    items = [(await visit.ask("POST", "/api/v1/items", text=url)).json()["id"] for url in urls]
    await _look(visit, f"/app/lists/{drafted['id']}")  # entries fill in while it is open
    await expect(visit.page.locator("#waiting[hx-trigger]")).to_have_count(0)
    await _look(visit, f"/app/lists/{drafted['id']}", PAYLOADS[0], PAYLOADS[4])
    assert (
        await visit.ask("POST", f"/api/v1/lists/{drafted['id']}/publish", slug="foreign")
    ).status_code == 200
    await _look(visit, "/foreign", PAYLOADS[0], PAYLOADS[4])
    for kind in ("rss", "json", "md"):
        await visit.page.goto(f"/foreign.{kind}")
        assert await visit.page.evaluate("window.ran") is None

    for item in items:
        await _wait_for(visit, f"/api/v1/items/{item}", '"status":"READY_TO_CONFIRM"')
        await _look(visit, f"/app/review?item={item}")
        assert (await visit.ask("POST", f"/api/v1/items/{item}/confirm")).status_code == 200
        await _look(visit, f"/app/library/{item}", "harbour crane")
    await _look(visit, "/app/library", PAYLOADS[0])


async def test_names_of_people_and_of_their_browsers(
    visit: Visit, chromium: Browser, data_dir: Path
) -> None:
    """Store a provider's display name as the sign-in would; set the nickname by the API."""
    with closing(sqlite3.connect(data_dir / "refract.db", timeout=20)) as database, database:
        database.execute(
            "UPDATE users SET display_name = ?, avatar_url = ?",
            (PAYLOADS[1], "javascript:window.ran=1"),
        )
    for path in ("/", "/app/settings", "/app/admin/people", "/app/admin/audit"):
        await _look(visit, path, PAYLOADS[1])
    changed = await visit.ask("PATCH", "/api/v1/me", nickname=SHORT, bio=PAYLOADS[0])
    assert changed.status_code == 200, changed.text
    await _look(visit, "/app/settings", PAYLOADS[0])
    await _look(visit, "/app/admin/people", SHORT)
    link = (
        await visit.ask("POST", "/api/v1/links", destination="https://example.com/owned")
    ).json()
    await _look(visit, f"/app/links/{link['id']}", SHORT)

    context = await chromium.new_context(
        base_url=visit.site.url, user_agent=f"Mozilla/5.0 {PAYLOADS[1]}"
    )
    await context.add_init_script(WATCH)
    there = await context.new_page()
    door = refract(
        "signin-link", "--data-dir", str(data_dir), REFRACT_BASE_URL=visit.site.url
    ).stdout.strip()
    await there.goto(door)
    await there.get_by_role("button", name="Sign in").click()
    await there.goto("/app/settings")
    assert await there.evaluate("[window.ran, window.refused]") == [None, []]
    await context.close()
    await _look(visit, "/app/settings#sessions-section", PAYLOADS[1])


async def test_preview_cards(visit: Visit) -> None:
    """Cards are text for crawlers, and for their owner."""
    payloads = [
        *PAYLOADS,
        '" onmouseover="window.ran=1" x="',
        "'><script>window.ran=1</script>",
        '"><meta http-equiv="refresh" content="0;url=javascript:window.ran=1">',
        "</title></h1></p><script>window.ran=1</script>",
        "--><!--><iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
        "&quot;&gt;&lt;script&gt;window.ran=1&lt;/script&gt;",
        "{{ 7 * 7 }}<base href=//evil.example>\u2028\u202e",
    ]
    links = [
        {
            "destination": "https://example.com/carded",
            "names": [f"card-{number}"],
            "preview_card": {
                "title": payload,
                "description": payload,
                "image_url": f"https://cdn.example/{payload.split(chr(0x2028))[0]}",
            },
        }
        for number, payload in enumerate(payloads)
    ]
    made = (await visit.ask("POST", "/api/v1/links/bulk", links=links)).json()
    assert made["created"] == len(payloads), made
    assert visit.context.browser is not None
    crawler = await visit.context.browser.new_context(user_agent="Twitterbot/1.0")
    page = await crawler.new_page()
    await page.add_init_script(WATCH)
    for number, payload in enumerate(payloads):
        await page.goto(f"{visit.site.url}/card-{number}")
        said = await page.evaluate(
            """() => [window.ran, refused, document.title, document.body.innerText,
            [...document.all].map((one) => one.tagName).join(" "),
            ...["og:title", "og:description", "og:image"].map(
              (name) => document.querySelector(`[property="${name}"]`).content)]"""
        )
        plain = payload
        assert said[:2] == [None, []], payload
        assert said[2:5] == [plain, f"{plain}\n\n{plain}", _CARD_TAGS], payload
        assert said[5:7] == [payload, payload]
        assert said[7].startswith("https://cdn.example/")
    await crawler.close()
    for number in (1, 4, 8):
        link = made["results"][number]["link"]["id"]
        await _look(visit, f"/app/links/{link}?tab=settings", payloads[number])
        await _look(visit, f"/app/links/{link}/edit", payloads[number])


_CARD_TAGS = "HTML HEAD META TITLE" + " META" * 8 + " BODY H1 P"
