"""The link builder and the table of links in a browser."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.async_api import expect

from tests.browser.visiting import Visit, silent, site, visit
from tests.redirect.test_qr_styles import decode

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _links(visit: Visit) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = (await visit.ask("GET", "/api/v1/links")).json()["items"]
    return links


async def test_a_link_is_built_in_the_drawer_and_its_url_copied(visit: Visit) -> None:
    page, drawer = visit.page, visit.page.locator("#drawer")
    await visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visit.ask(
        "POST", "/api/v1/links", destination="https://example.com/", names=["old"], tags=["Docs"]
    )
    template: dict[str, Any] = {
        "name": "Letter",
        "utm_source": "letter",
        "utm_medium": "email",
    }
    await visit.ask("POST", "/api/v1/utm-templates", **template)
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
    await drawer.get_by_label("Template").select_option(label="Letter")
    await expect(drawer.get_by_label("Destination URL")).to_have_value(
        "127.0.0.1:1/plans?utm_source=letter&utm_medium=email"
    )
    await drawer.locator("#field-utm_source").fill("x")

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
    assert link["destination"] == "https://127.0.0.1:1/plans?utm_source=x&utm_medium=email"
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


async def test_on_its_own_page_the_form_has_most_of_the_room(visit: Visit) -> None:
    await visit.page.goto("/app/links/new")

    field = await visit.page.locator("#field-destination").bounding_box()
    preview = await visit.page.locator(".builder-live").bounding_box()

    assert field is not None
    assert preview is not None
    assert field["width"] >= 500
    assert preview["x"] >= field["x"] + field["width"]


async def test_the_table_by_keyboard(visit: Visit) -> None:
    page = visit.page
    for name in ("row-c", "row-b", "row-a"):
        await visit.ask("POST", "/api/v1/links", destination="https://example.com/", names=[name])
    await page.goto("/app/links")
    top = await page.locator("[data-row]").first.evaluate("(row) => row.getBoundingClientRect().y")
    assert top <= 200
    await page.keyboard.press("j")
    await page.keyboard.press("Shift+J")
    await page.keyboard.press("Shift+J")
    await expect(page.locator("[data-bulk-bar]")).to_contain_text("3 selected")
    await page.keyboard.press("x")
    await expect(page.locator("[data-bulk-bar]")).to_contain_text("2 selected")
    await page.keyboard.press("c")
    await expect(page.locator("#toasts")).to_contain_text("/row-c")
    await page.keyboard.press("k")
    await page.keyboard.press("#")
    await expect(page.locator("#toasts")).to_contain_text("Deleted 1 link")
    await expect(page.locator("[data-row]", has_text="/row-b")).to_have_count(0)
    await page.locator("#toasts").get_by_role("button", name="Undo").last.click()
    await expect(page.locator("[data-row]", has_text="/row-b")).to_have_count(1)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.locator(".short-url").first).to_contain_text("/row-a")


async def test_the_menu_of_a_row_copies_edits_and_disables(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/links")
    row = page.locator("[data-row]", has_text="/row-a")
    await row.locator("[data-row-menu]").click()
    menu = page.get_by_role("menu")
    await expect(menu.get_by_role("menuitem").first).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(row.locator("[data-row-menu]")).to_be_focused()
    await page.keyboard.press("Enter")
    await menu.get_by_role("menuitem", name="Disable").click()
    await expect(page.locator("#toasts")).to_contain_text("Disabled 1 link")
    await expect(row).to_contain_text("Disabled")
    await row.locator("[data-row-menu]").click()
    await menu.get_by_role("menuitem", name="Edit").click()
    await expect(page.locator("#drawer")).to_contain_text("Edit /row-a")
    await page.keyboard.press("Escape")


async def test_filters_density_and_views_update_in_place(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/links")
    await page.locator("#filter-q").fill("row-")
    await expect(page.locator("[data-row]")).to_have_count(3)
    await expect(page.locator(".tabs [aria-current]")).to_have_text(re.compile("All 3"))

    await page.get_by_label("Display", exact=True).click()
    await page.locator("[name=density][value=comfortable]").check()
    await expect(page.locator(".table-comfortable")).to_be_visible()
    heights = "(row) => row.getBoundingClientRect().height"
    assert await page.locator("[data-row]").first.evaluate(heights) == 56
    await page.get_by_label("Display", exact=True).click()
    await page.locator("[name=density][value=compact]").check()
    await expect(page.locator(".table-compact")).to_be_visible()
    assert await page.locator("[data-row]").first.evaluate(heights) == 44

    await page.get_by_label("Saved views", exact=True).click()
    await page.get_by_label("Name this view").fill("Rows")
    await page.keyboard.press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("Saved the view")
    await page.goto("/app/links")
    await page.get_by_label("Saved views", exact=True).click()
    await page.get_by_role("link", name="Rows").click()
    await expect(page.locator("[data-row]")).to_have_count(3)


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
async def test_rows_fit_every_width(visit: Visit, width: int) -> None:
    page = visit.page
    await page.set_viewport_size({"width": width, "height": 800})
    try:
        await page.goto("/app/links")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        height = await page.locator("[data-row]").first.evaluate(
            "(row) => row.getBoundingClientRect().height"
        )
        assert height == 44 if width >= 768 else 72 <= height <= 88
    finally:
        await page.set_viewport_size({"width": 1280, "height": 800})


async def test_the_domain_is_chosen_and_shown_while_the_link_is_built(visit: Visit) -> None:
    page, drawer = visit.page, visit.page.locator("#drawer")
    await visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visit.ask("POST", "/api/v1/domains", host="sho.rt")
    await visit.ask("POST", "/api/v1/links", destination="https://127.0.0.1:1/", names=["sale"])
    await page.goto("/app/links")
    await page.keyboard.press("n")
    await drawer.get_by_label("Destination URL").fill("https://127.0.0.1:1/sale")
    await drawer.locator("#field-name").fill("sale")
    await expect(drawer.locator("#name-state")).to_contain_text("already in use")

    await drawer.get_by_label("Domain", exact=True).select_option("sho.rt")

    await expect(drawer.locator("#name-state")).to_contain_text("is available")
    await expect(drawer.locator("[data-live-host]")).to_contain_text("sho.rt")
    await expect(drawer.locator("#field-name").locator("..")).to_contain_text("sho.rt")
    await expect(drawer.locator("[data-live-qr]")).to_have_attribute(
        "src", "/app/qr?name=sale&domain=sho.rt"
    )
    await drawer.get_by_role("button", name="Create link").click()
    await expect(page.locator("[data-row]").first).to_contain_text("sho.rt/sale")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("http://sho.rt")
    assert copied.endswith("/sale")


async def test_a_qr_code_is_drawn_while_its_looks_change_and_a_scanner_reads_it(
    visit: Visit,
) -> None:
    page = visit.page
    given: dict[str, Any] = {"destination": "https://example.com/", "names": ["poster"]}
    made = (await visit.ask("POST", "/api/v1/links", **given)).json()
    await page.goto(f"/app/links/{made['id']}/qr")
    image, problem = page.locator("[data-qr-image]"), page.locator("[data-qr-problem]")
    await page.get_by_label("Shape").select_option("dots")
    await page.get_by_label("Mark of Refract").check()
    await expect(image).to_have_attribute("src", re.compile("shape=dots.*logo=true"))
    await page.get_by_label("Code", exact=True).fill("#ffd400")
    await expect(problem).to_contain_text("Choose a darker color")
    await page.get_by_label("Code", exact=True).fill("#1d4ed8")
    await expect(problem).to_be_hidden()
    await expect(image).to_have_attribute("src", re.compile("color=%231d4ed8"))

    pixels = await image.evaluate(
        """async (image) => {
          await image.decode();
          const canvas = new OffscreenCanvas(480, 480).getContext("2d");
          canvas.drawImage(image, 0, 0, 480, 480);
          const { data } = canvas.getImageData(0, 0, 480, 480);
          return Array.from({ length: data.length / 4 }, (_, place) => data[4 * place]);
        }"""
    )
    assert decode(np.array(pixels, dtype=np.uint8).reshape(480, 480)) == [made["short_url"]]
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#toasts")).to_contain_text("Saved the QR code")
    assert (await visit.ask("GET", f"/api/v1/links/{made['id']}")).json()["qr_style"]["logo"]
