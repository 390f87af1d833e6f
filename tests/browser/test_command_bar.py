"""The command bar: what Enter does, what is offered where, and each object once."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.visiting import Visit, silent, site, visit

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def roadmap(visit: Visit) -> str:
    """The page of a link with a name that its title repeats."""
    made = await visit.ask(
        "POST",
        "/api/v1/links",
        destination="https://example.com/plans",
        names=["roadmap"],
        title="Our roadmap",
    )
    return f"/app/links/{made.json()['id']}"


def options(page: Page) -> Locator:
    return page.locator(".omnibox-option")


async def type_into_bar(page: Page, text: str) -> None:
    await page.keyboard.press("/")
    await page.keyboard.type(text)


async def wait_for_first(page: Page, words: str) -> None:
    await expect(options(page).first).to_contain_text(words)


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("settings", "/app/settings"),
        ("Library", "/app/library"),
        ("import", "/app/library/imports"),
        ("new link", "/app/links/new"),
    ],
)
async def test_enter_goes_to_an_exact_place(visit: Visit, typed: str, path: str) -> None:
    await visit.page.goto("/app/tags")
    await type_into_bar(visit.page, typed)
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(visit.site.url + path)


async def test_each_object_has_one_entry(visit: Visit, roadmap: str) -> None:
    await visit.page.goto("/app/tags")
    await type_into_bar(visit.page, "road")
    await wait_for_first(visit.page, "Search for “road”")
    await expect(visit.page.locator(f'.omnibox-option[href="{roadmap}"]')).to_have_count(1)
    labels = await visit.page.locator(".omnibox-words").all_inner_texts()
    assert len(labels) == len(set(labels))


async def test_an_exact_name_opens_and_offers_what_else_can_be_done(
    visit: Visit, roadmap: str
) -> None:
    await visit.page.goto("/app/tags")
    await type_into_bar(visit.page, "roadmap")
    await wait_for_first(visit.page, "Open /roadmap")
    await expect(options(visit.page).filter(has_text="Details of /roadmap")).to_have_attribute(
        "href", roadmap
    )
    await expect(visit.page.locator(f'.omnibox-option[href="{roadmap}"]')).to_have_count(1)


async def test_the_groups_have_an_order(visit: Visit, roadmap: str) -> None:
    await visit.page.goto("/app/tags")
    await type_into_bar(visit.page, "r")
    await wait_for_first(visit.page, "Search for “r”")
    groups = await visit.page.locator(".omnibox-sort").all_inner_texts()
    known = ["Actions", "Go to", "Links", "Library", "Lists", "Tags"]
    assert groups == [group for group in known if group in groups]
    assert {"Go to", "Links"} <= set(groups)


async def test_an_empty_bar_starts_with_what_was_opened_last(visit: Visit, roadmap: str) -> None:
    await visit.page.goto(roadmap)
    await visit.page.goto("/app/tags")
    await visit.page.keyboard.press("/")
    await expect(visit.page.locator(".omnibox-sort").first).to_have_text("Recent")
    await wait_for_first(visit.page, "/roadmap")
    await expect(visit.page.locator(".omnibox-sort")).to_have_text(["Recent", "Actions", "Go to"])
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(visit.site.url + roadmap)


async def test_actions_of_the_page_come_first_and_work(visit: Visit, roadmap: str) -> None:
    await visit.page.goto(roadmap)
    await visit.page.keyboard.press("/")
    await expect(options(visit.page).filter(has_text="Edit this link")).to_be_visible()
    await visit.page.keyboard.type("disable")
    await expect(options(visit.page).filter(has_text="Disable this link")).to_be_visible()
    await options(visit.page).filter(has_text="Disable this link").click()
    await expect(visit.page.locator("#toasts")).to_contain_text("Disabled /roadmap")
    await visit.page.wait_for_load_state("load")  # scripts that know keys run before
    await visit.page.keyboard.press("/")
    await options(visit.page).filter(has_text="Enable this link").click()
    await expect(visit.page.locator("#toasts")).to_contain_text("Enabled /roadmap")


async def test_actions_of_the_browser(visit: Visit, roadmap: str) -> None:
    await visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visit.page.goto("/app/tags")
    await type_into_bar(visit.page, "dark")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page.locator("html")).to_have_attribute("data-theme", "dark")
    await type_into_bar(visit.page, "system theme")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page.locator("html")).not_to_have_attribute("data-theme", "dark")
    await type_into_bar(visit.page, "copy last")
    await options(visit.page).filter(has_text="Copy last short link").click()
    await expect(visit.page.locator("#toasts")).to_contain_text("Copied")
    copied = await visit.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{visit.site.url}/roadmap"
    await type_into_bar(visit.page, "help")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page.locator("#shortcuts")).to_be_visible()
    await visit.page.keyboard.press("Escape")


@pytest.mark.parametrize("width", [320, 390])
async def test_the_results_take_the_width_of_a_phone(visit: Visit, width: int) -> None:
    await visit.page.set_viewport_size({"width": width, "height": 800})
    await visit.page.goto("/app/tags")
    await visit.page.locator("#omnibox").click()
    await expect(options(visit.page).first).to_be_visible()
    box = await visit.page.locator(".omnibox-results").bounding_box()
    await visit.page.set_viewport_size({"width": 1280, "height": 800})
    assert box is not None
    assert box["x"] <= 16
    assert box["width"] >= width - 32


async def test_signing_out_forgets_what_was_opened(visit: Visit, roadmap: str) -> None:
    await visit.page.goto(roadmap)
    await type_into_bar(visit.page, "sign out")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(re.compile(r"/$"))
    await expect(visit.page.get_by_role("link", name="Sign in").first).to_be_visible()
    kept = await visit.page.evaluate("Object.keys(localStorage).filter(k => /recent/.test(k))")
    assert kept == []
