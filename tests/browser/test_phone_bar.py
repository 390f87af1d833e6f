"""The bar of a phone, and the buttons above it."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.visiting import Visit, silent, site, visit

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


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
    button = page.locator("main .button-primary, main [data-save]").first
    await button.scroll_into_view_if_needed()
    box, bar = await button.bounding_box(), await page.locator(".rail").bounding_box()
    await context.close()
    assert box is not None
    assert bar is not None
    assert box["y"] + box["height"] <= bar["y"]


async def test_the_buttons_of_a_link_fit_into_one_row(chromium: Browser, visit: Visit) -> None:
    """There were three rows of them above the chart."""
    made = await visit.ask(
        "POST", "/api/v1/links", destination="https://example.com/", names=["on-a-phone"]
    )
    context = await chromium.new_context(
        base_url=visit.site.url,
        viewport={"width": 390, "height": 844},
        storage_state=await visit.context.storage_state(),
    )
    page = await context.new_page()
    await page.goto(f"/app/links/{made.json()['id']}")
    middles = await page.locator(".link-actions > *").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect()).filter((box) => box.height)"
        ".map((box) => Math.round(box.y + box.height / 2))"
    )
    await page.get_by_label("More actions for /on-a-phone").click()
    panel = await page.locator(".link-actions .menu-panel").bounding_box()
    await page.get_by_role("button", name="Disable").click()
    await expect(page.locator(".link-title")).to_contain_text("Disabled")
    await expect(page.get_by_role("button", name="Enable")).to_be_visible()
    await context.close()
    assert len(middles) >= 4
    assert max(middles) - min(middles) <= 4
    assert panel is not None
    assert panel["x"] >= 0
    assert panel["x"] + panel["width"] <= 390
