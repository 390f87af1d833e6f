"""Every key that the help of a page names does what it says."""

from __future__ import annotations

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.key_effects import EFFECTS, PREPARED
from tests.browser.visiting import Visit, silent, site, visit
from tests.waiting import eventually

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMED = """() => [...document.querySelectorAll('#shortcuts section')].filter((one) => !one.hidden)
  .flatMap((one) => [...one.querySelectorAll('dl > div')].map((row) => [
    one.querySelector('h3').textContent,
    [...row.querySelectorAll('kbd')].map((key) => key.textContent),
    row.querySelector('dt').textContent]))"""
# Links and forms are noted instead of followed, so that one page serves for all of its keys.
NOTE = """window.went = window.sent = null;
document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href]');
  if (!link || link.matches('[data-drawer]')) return;
  event.preventDefault();
  window.went = link.getAttribute('href');
}, true);
document.addEventListener('submit', (event) => {
  if (event.target.method === 'dialog') return;
  event.preventDefault();
  event.stopImmediatePropagation();
  window.sent = event.submitter?.value || event.target.getAttribute('action');
}, true)"""
PLACES = {
    "Home": "/",
    "Links": "/app/links",
    "Analytics": "/app/analytics",
    "Lists": "/app/lists",
    "Library": "/app/library",
    "Tags": "/app/tags",
    "Teams": "/app/teams",
    "Settings": "/app/settings",
    "Admin": "/app/admin",
    "Review": "/app/review",
}
PRESSED = {"Ctrl": "Control", "Esc": "Escape", "1–9": "1"}
MODIFIERS = ("Control", "Shift")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pages(visit: Visit) -> dict[str, str]:
    """Paths of pages with something on them."""
    link, _ = [
        await visit.ask(
            "POST", "/api/v1/links", destination=f"https://example.com/{name}", names=[name]
        )
        for name in ("one", "two")
    ]
    item = await visit.ask(
        "POST", "/api/v1/items", text="https://example.com/kept", enrich=False, new_tags=["a", "b"]
    )
    await visit.ask("POST", "/api/v1/items", text="A note.", enrich=False, new_tags=["fuel"])
    discarded = [
        (await visit.ask("POST", "/api/v1/items", text=text, enrich=False)).json()["id"]
        for text in ("Discarded.", "Discarded as well.")
    ]
    for item_id in discarded:
        await visit.ask("POST", f"/api/v1/items/{item_id}/discard")
    made = await visit.ask("POST", "/api/v1/lists", title="Two links")
    return {
        "home": "/",
        "links": "/app/links",
        "link": f"/app/links/{link.json()['id']}",
        "people of a link": f"/app/links/{link.json()['id']}?tab=people",
        "new link": "/app/links/new",
        "analytics": "/app/analytics",
        "invitations": "/app/invitations",
        "lists": "/app/lists",
        "list": f"/app/lists/{made.json()['id']}",
        "library": "/app/library",
        "discarded": "/app/library?discarded=true",
        "item": f"/app/library/{item.json()['id']}",
        "discarded item": f"/app/library/{discarded[0]}",
        "imports": "/app/library/imports",
        "nothing to review": "/app/review",
        "tags": "/app/tags",
        "teams": "/app/teams",
        "my tags": "/app/tags/mine",
        "rules": "/app/tags/rules",
        "search": "/app/search?q=example",
        "settings": "/app/settings",
        "admin": "/app/admin",
        "people": "/app/admin/people",
        "reports": "/app/admin/reports",
        "admin links": "/app/admin/links",
        "admin lists": "/app/admin/lists",
        "domains": "/app/admin/domains",
        "jobs": "/app/admin/jobs",
        "blocked domains": "/app/admin/blocked-domains",
        "audit log": "/app/admin/audit",
        "API": "/api/docs",
    }


PAGE_NAMES = [
    *("home", "links", "link", "people of a link", "new link", "analytics", "invitations"),
    *("lists", "list", "library", "discarded", "item", "discarded item", "imports"),
    *("nothing to review", "tags", "my tags", "rules", "search", "settings", "admin", "people"),
    *(
        "reports",
        "admin links",
        "admin lists",
        "domains",
        "jobs",
        "blocked domains",
        "audit log",
        "API",
    ),
]


_named: dict[str, set[tuple[str, str]]] = {}
"""The keys that the help of each page names, by the name of the page."""


async def _press_all(page: Page) -> set[tuple[str, str]]:
    """Press every key that the help of the page names, and return what was pressed."""
    await page.evaluate(NOTE)
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("?")
    await expect(page.locator("#shortcuts")).to_be_visible()
    named = await page.evaluate(NAMED)
    await page.keyboard.press("Escape")
    assert [keys for _, keys, _ in named if keys == ["?"]] == [["?"]]
    for group, keys, words in named:
        await page.evaluate("window.went = window.sent = null; document.activeElement.blur()")
        if (group, words) in PREPARED:
            await PREPARED[group, words](page)
        pressed = [PRESSED.get(key, key) for key in keys]
        if pressed[0] in MODIFIERS:
            await page.keyboard.press("+".join(pressed))
        else:
            for key in pressed:
                await page.keyboard.press(key)
        if group == "Go to":
            assert await page.evaluate("went") == PLACES[words], words
        else:
            await EFFECTS[group, words](page)
    return {(group, words) for group, _, words in named}


@pytest.mark.parametrize("name", PAGE_NAMES)
async def test_every_key_of_the_help_works(visit: Visit, pages: dict[str, str], name: str) -> None:
    await visit.page.goto(pages[name])
    _named[name] = await _press_all(visit.page)


async def test_every_key_of_the_review_works(visit: Visit, pages: dict[str, str]) -> None:
    """With suggestions, and with a page that couldn't be fetched."""
    assert pages
    page = visit.page
    made = [
        await visit.ask("POST", "/api/v1/items", text=text)
        for text in (
            "Before.",
            "Engines burn fuel.",
            "http://127.0.0.1:9/closed",
            "More about fuel for engines.",
        )
    ]
    _, first, failed, _ = (answer.json()["id"] for answer in made)
    pressed: set[tuple[str, str]] = set()
    for item_id, needed in ((first, "[data-proposal]"), (failed, "[value=retry]")):

        async def is_ready(item_id: str = item_id, needed: str = needed) -> bool:
            await page.goto(f"/app/review?item={item_id}")
            is_busy = await page.locator("[data-busy]").count()  # it would be shown anew
            return not is_busy and bool(await page.locator(needed).count())

        await eventually(is_ready, pause=0.5)
        pressed |= await _press_all(page)
    review = {(group, words) for group, words in EFFECTS if group == "Review"}
    assert review - pressed == {("Review", "Save a URL or note")}


async def test_z_undoes_the_last_change(visit: Visit, pages: dict[str, str]) -> None:
    page = visit.page
    await page.goto(pages["library"])
    await page.locator("[data-row-open]").first.focus()
    await page.keyboard.press("#")
    await expect(page.locator("#toasts [data-toast-undo]")).to_be_visible()
    await page.evaluate(NOTE)
    await page.keyboard.press("?")
    await expect(page.locator("#shortcuts section", has_text="Undo")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("z")
    await EFFECTS["Undo", "Undo"](page)


async def test_every_known_key_is_named_somewhere(visit: Visit, pages: dict[str, str]) -> None:
    """An effect that no help names is a key that nobody learns of."""
    for name in pages.keys() - _named.keys():
        await visit.page.goto(pages[name])
        _named[name] = await _press_all(visit.page)
    named = set[tuple[str, str]]().union(*_named.values())
    assert {(group, words) for group, words in EFFECTS if group != "Review"} - named <= {
        ("Undo", "Undo")
    }


async def test_the_keys_of_the_page_come_first(visit: Visit) -> None:
    await visit.page.goto("/app/library")
    await visit.page.keyboard.press("?")
    first = visit.page.locator("#shortcuts section").first
    await expect(first.locator("h3")).to_have_text("Library")
    boxes = [
        await visit.page.locator("#shortcuts section:visible").nth(place).bounding_box()
        for place in (0, -1)
    ]
    await visit.page.keyboard.press("Escape")
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[1]["x"] > boxes[0]["x"] + 100, "two columns"


async def test_control_enter_sends_the_form_of_a_drawer(visit: Visit) -> None:
    await visit.page.goto("/app/tags")
    await visit.page.keyboard.press("n")
    await visit.page.locator("#drawer [name=destination]").fill("https://example.com/by-keys")
    await visit.page.keyboard.press("Control+Enter")
    await expect(visit.page.locator("#toasts")).to_contain_text("Created")
