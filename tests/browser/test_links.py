"""The link builder and the table of links in a browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.visiting import Visit, silent, site, visit

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _links(visit: Visit) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = (await visit.ask("GET", "/api/v1/links")).json()["items"]
    return links


async def test_a_link_is_built_in_the_drawer_and_its_url_copied(visit: Visit) -> None:
    page, drawer = visit.page, visit.page.locator("#drawer")
    await visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visit.ask(
        "POST", "/api/v1/links", destination="https://example.com/", names=["old"], tags=["Docs"]
    )
    await page.goto("/app/links")
    await page.keyboard.press("n")
    await drawer.get_by_label("Destination URL").fill("127.0.0.1:1/plans?a=1#top")
    await drawer.locator("#field-name").fill("plans")
    await expect(drawer.locator("[data-live-name]")).to_have_text("plans")
    await expect(drawer.locator("[data-live-qr]")).to_be_visible()
    await drawer.get_by_label("Title").fill("Plans")
    await expect(drawer.locator("[data-live-title]")).to_have_text("Plans")

    await drawer.locator("summary", has_text="Campaign").click()
    await drawer.locator("#field-utm_source").fill("news letter")
    await expect(drawer.get_by_label("Destination URL")).to_have_value(
        "127.0.0.1:1/plans?a=1&utm_source=news%20letter#top"
    )
    await drawer.get_by_label("Destination URL").fill("127.0.0.1:1/plans?utm_source=x")
    await expect(drawer.locator("#field-utm_source")).to_have_value("x")

    tags = drawer.get_by_role("combobox", name="Tags")
    await tags.fill("do")
    await expect(drawer.locator(".tag-options li")).to_have_text(["Docs"])
    await tags.press("ArrowDown")
    await tags.press("Enter")
    await tags.press_sequentially("Two,Three")
    await tags.press("Enter")
    await expect(drawer.locator(".tag-chip")).to_have_text(["Docs×", "Two×", "Three×"])
    await drawer.get_by_role("button", name="Remove Two").click()
    await tags.press("Control+Enter")

    await expect(page.locator("#toasts")).to_contain_text("Created /plans and copied its short URL")
    await expect(drawer).not_to_be_visible()
    await expect(page.locator("[data-row]").first).to_contain_text("/plans")
    assert await page.evaluate("navigator.clipboard.readText()") == f"{visit.site.url}/plans"
    link = (await _links(visit))[0]
    assert link["destination"] == "https://127.0.0.1:1/plans?utm_source=x"
    assert link["tags"] == ["Docs", "Three"]


async def test_an_error_stays_in_the_drawer_with_what_was_typed(visit: Visit) -> None:
    page, drawer = visit.page, visit.page.locator("#drawer")
    await page.goto("/app/links")
    await page.keyboard.press("n")
    await drawer.get_by_label("Destination URL").fill("https://127.0.0.1:1/again")
    await drawer.locator("#field-name").fill("plans")
    await drawer.get_by_label("Title").fill("Kept")
    await drawer.get_by_role("button", name="Create link").click()

    await expect(drawer.locator("#field-name-error")).to_contain_text("already in use")
    await expect(drawer.locator("#field-name")).to_be_focused()
    await expect(drawer.get_by_label("Title")).to_have_value("Kept")
    await expect(page).to_have_url(re.compile("/app/links$"))
    visit.complaints.clear()  # the status of the refusal
    await drawer.locator("#field-name").fill("again")
    await drawer.get_by_role("button", name="Create link").click()
    await expect(page.locator("[data-row]").first).to_contain_text("/again")


async def test_a_destination_that_exists_is_named(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/links/new")
    await page.get_by_label("Destination URL").fill("https://127.0.0.1:1/again")
    said = page.locator("[data-existing]")
    await expect(said).to_have_text("This destination already has /again.")
    await said.get_by_role("link").click()
    await expect(page.locator(".short-url").first).to_contain_text("/again")


async def test_the_title_of_the_page_fills_a_new_link_only_until_it_is_typed(
    visit: Visit,
) -> None:
    page = visit.page
    shown = '<p class="look" data-page-title="{0}"><span>{0}</span></p>'
    titles = iter(["First", "Second", "Third"])
    await page.route(
        "**/app/links/look?*",
        lambda route: route.fulfill(content_type="text/html", body=shown.format(next(titles))),
    )
    await page.goto("/app/links/new")
    title, destination = page.get_by_label("Title"), page.get_by_label("Destination URL")
    await destination.fill("https://127.0.0.1:1/1")
    await expect(title).to_have_value("First")
    await destination.fill("https://127.0.0.1:1/2")
    await expect(title).to_have_value("Second")
    await title.fill("Mine")
    await destination.fill("https://127.0.0.1:1/3")
    await expect(page.locator("#looks")).to_have_text("Third")
    await expect(title).to_have_value("Mine")
    await page.unroute("**/app/links/look?*")


async def test_on_a_phone_the_submit_bar_is_opaque_and_above_the_bottom_bar(
    visit: Visit,
) -> None:
    page = visit.page
    await page.set_viewport_size({"width": 390, "height": 844})
    try:
        await page.goto("/app/links/new")
        above = await page.locator(".form-end").evaluate(
            "(bar) => bar.getBoundingClientRect().bottom <= "
            "document.querySelector('.rail').getBoundingClientRect().top + 1"
        )
        assert above
        opaque = "(bar) => getComputedStyle(bar).backgroundColor.startsWith('rgb(')"
        assert await page.locator(".form-end").evaluate(opaque)
    finally:
        await page.set_viewport_size({"width": 1280, "height": 800})
