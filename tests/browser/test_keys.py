"""Every key that the help of a page names does what it says; and the bar of a phone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.visiting import Visit, silent, site, visit

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMED = """() => [...document.querySelectorAll('#keys section')].filter((one) => !one.hidden)
  .flatMap((one) => [...one.querySelectorAll('dl > div')].map((row) => [
    one.querySelector('h3').textContent,
    [...row.querySelectorAll('kbd')].map((key) => key.textContent),
    row.querySelector('dt').textContent]))"""
# Links are noted instead of followed, so that one page serves for all of its keys.
NOTE_LINKS = """window.went = null; document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href]');
  if (!link || link.matches('[data-drawer]')) return;
  event.preventDefault();
  window.went = link.getAttribute('href');
}, true)"""
PLACES = {
    "Home": "/",
    "Links": "/app/links",
    "Analytics": "/app/analytics",
    "Lists": "/app/lists",
    "Library": "/app/library",
    "Tags": "/app/tags",
    "Settings": "/app/settings",
    "Admin": "/app/admin",
    "Review": "/app/review",
}
FOCUSED_ROW = "document.activeElement.matches('[data-row-open]')"
PRESSED = {"Ctrl": "Control", "Esc": "Escape", "1–9": "1"}
Effect = Callable[[Page], Awaitable[None]]


async def _drawer_is_open(page: Page) -> None:
    await expect(page.locator("#drawer [name=destination]")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(page.locator("#drawer")).to_be_hidden()


async def _bar_is_focused(page: Page) -> None:
    await expect(page.locator("#omnibox")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("#omnibox")).not_to_be_focused()


async def _help_is_open(page: Page) -> None:
    await expect(page.locator("#keys")).to_be_visible()
    await page.keyboard.press("Escape")


async def _nothing_is_open(page: Page) -> None:
    await expect(page.locator("dialog[open]")).to_have_count(0)


async def _row_is_focused(page: Page) -> None:
    assert await page.evaluate(FOCUSED_ROW)


async def _went_somewhere(page: Page) -> None:
    assert await page.evaluate("went")


def _is_focused(selector: str) -> Effect:
    async def check(page: Page) -> None:
        await expect(page.locator(selector)).to_be_focused()
        await page.keyboard.press("Escape")

    return check


def _is_true(script: str) -> Effect:
    async def check(page: Page) -> None:
        assert await page.evaluate(script)

    return check


EFFECTS: dict[tuple[str, str], Effect] = {
    ("Global", "New link"): _drawer_is_open,
    ("Global", "Search or jump to…"): _bar_is_focused,
    ("Global", "Open command bar"): _bar_is_focused,
    ("Global", "Show shortcuts"): _help_is_open,
    ("Global", "Close or cancel"): _nothing_is_open,
    ("Global", "Back to the list"): _went_somewhere,
    ("Rows", "Next"): _row_is_focused,
    ("Rows", "Previous"): _row_is_focused,
    ("Rows", "Open"): _went_somewhere,
    ("Lists", "New list"): _is_focused("#field-urls"),
    ("Library", "Save a URL or note"): _is_focused("#capture"),
    ("This item", "Edit"): _is_true("document.querySelector('#edit details').open"),
    ("This item", "Open original"): _went_somewhere,
    ("Tags", "Select"): _is_true("document.querySelector('[data-tick]').checked"),
    ("Review", "Save a URL or note"): _is_focused("#capture"),
    ("Review", "Toggle tag"): _is_true("document.querySelector('[data-proposal]').checked"),
    ("Review", "Accept all"): _is_true("document.querySelector('[data-proposal]').checked"),
    ("Review", "Reject all"): _is_true("!document.querySelector('[data-proposal]').checked"),
    ("Review", "Edit title"): _is_focused("#field-title"),
    ("Review", "Open original"): _went_somewhere,
}
ENDING = {
    ("Forms", "Save or send"),
    ("Review", "Save and next"),
    ("Review", "Discard and next"),
    ("Review", "Next"),
    ("Review", "Previous"),
    ("Review", "Retry"),
    ("Tags", "Merge selected tags"),
    ("This item", "Discard"),
    ("Undo", "Undo"),
}
"""Keys that leave the page. Stories press them (test_library_stories.py, and below)."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pages(visit: Visit) -> dict[str, str]:
    """Paths of pages with something on them."""
    for name in ("one", "two"):
        await visit.ask(
            "POST", "/api/v1/links", destination=f"https://example.com/{name}", names=[name]
        )
    item = await visit.ask(
        "POST", "/api/v1/items", text="https://example.com/kept", enrich=False, new_tags=["a", "b"]
    )
    made = await visit.ask("POST", "/api/v1/lists", title="Two links")
    return {
        "home": "/",
        "lists": "/app/lists",
        "list": f"/app/lists/{made.json()['id']}",
        "library": "/app/library",
        "item": f"/app/library/{item.json()['id']}",
        "review": "/app/review",
        "tags": "/app/tags",
        "my tags": "/app/tags/mine",
        "search": "/app/search?q=example",
        "settings": "/app/settings",
        "people": "/app/admin/people",
        "admin links": "/app/admin/links",
        "jobs": "/app/admin/jobs",
    }


@pytest.mark.parametrize(
    "name",
    [
        "home",
        "lists",
        "list",
        "library",
        "item",
        "review",
        "tags",
        "my tags",
        "search",
        "settings",
        "people",
        "admin links",
        "jobs",
    ],
)
async def test_every_key_of_the_help_works(visit: Visit, pages: dict[str, str], name: str) -> None:
    page = visit.page
    await page.goto(pages[name])
    await page.evaluate(NOTE_LINKS)
    await page.keyboard.press("?")
    await expect(page.locator("#keys")).to_be_visible()
    named = await page.evaluate(NAMED)
    await page.keyboard.press("Escape")
    assert [keys for _, keys, _ in named if keys == ["?"]] == [["?"]]
    for group, keys, words in named:
        if (group, words) in ENDING:
            continue
        await page.evaluate("window.went = null")
        if (group, words) == ("Tags", "Select"):
            await page.keyboard.press("j")
        pressed = [PRESSED.get(key, key) for key in keys]
        if pressed[0] == "Control":
            await page.keyboard.press("+".join(pressed))
        else:
            for key in pressed:
                await page.keyboard.press(key)
        if group == "Go to":
            assert await page.evaluate("went") == PLACES[words], (name, words)
        else:
            await EFFECTS[group, words](page)


async def test_the_keys_of_the_page_come_first(visit: Visit) -> None:
    await visit.page.goto("/app/library")
    await visit.page.keyboard.press("?")
    first = visit.page.locator("#keys section").first
    await expect(first.locator("h3")).to_have_text("Library")
    boxes = [
        await visit.page.locator("#keys section:visible").nth(place).bounding_box()
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


async def test_the_bar_of_a_phone_has_five_items(chromium: Browser, visit: Visit) -> None:
    context = await chromium.new_context(
        base_url=visit.site.url,
        viewport={"width": 320, "height": 640},
        has_touch=True,
        is_mobile=True,
        storage_state=await visit.context.storage_state(),
    )
    page = await context.new_page()
    await page.goto("/app/tags")
    items = page.locator(".rail > .rail-item:visible")
    await expect(items).to_have_count(5)
    words = [text.strip() for text in await items.all_inner_texts()]
    assert [words[place] for place in (0, 1, 3, 4)] == ["Home", "Links", "Library", "More"]
    size = await items.first.evaluate("(item) => parseFloat(getComputedStyle(item).fontSize)")
    assert size >= 12
    await page.locator(".rail-more summary").tap()
    await page.locator(".rail-more").get_by_role("link", name="Settings").tap()
    await expect(page).to_have_url(f"{visit.site.url}/app/settings")
    await expect(page.locator("kbd:visible")).to_have_count(0)
    await context.close()


@pytest.mark.parametrize("path", ["/app/links/new", "/app/settings", "/app/library", "/app/lists"])
async def test_no_primary_button_is_under_the_bar(
    chromium: Browser, visit: Visit, path: str
) -> None:
    context = await chromium.new_context(
        base_url=visit.site.url,
        viewport={"width": 390, "height": 844},
        storage_state=await visit.context.storage_state(),
    )
    page = await context.new_page()
    await page.goto(path)
    button = page.locator("main .button-primary").first
    await button.scroll_into_view_if_needed()
    box, bar = await button.bounding_box(), await page.locator(".rail").bounding_box()
    await context.close()
    assert box is not None
    assert bar is not None
    assert box["y"] + box["height"] <= bar["y"]
