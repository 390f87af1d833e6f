"""What scripts show is in the language of the page: words, plurals, numbers and times."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNT_TABS = """async (count) => {
  const app = document.querySelector("script[type=module]").src;
  const {tn} = await import(app.replace("app.js", "i18n.js"));
  return tn("Open {n} tab?", "Open {n} tabs?", count);
}"""


async def _open_page(chromium: Browser, gallery_url: str, locale: str) -> Page:
    context = await chromium.new_context(
        base_url=gallery_url,
        locale=locale,
        timezone_id="Europe/Berlin",
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )
    return await context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def german(chromium: Browser, gallery_url: str) -> AsyncIterator[Page]:
    page = await _open_page(chromium, gallery_url, "de-DE")
    yield page
    await page.context.close()


async def test_words_of_scripts_are_german(german: Page) -> None:
    await german.goto("/sample/home-full")

    await german.locator("#omnibox").fill("https://example.com/")
    await expect(german.locator("[data-omnibox-hint]")).to_have_text(
        "Eingabe: https://example.com/ kürzen"
    )
    await expect(german.locator("[data-theme-switch]").first).to_have_attribute(
        "aria-label", "Design: System"
    )


async def test_a_toast_of_a_script_is_german(german: Page) -> None:
    await german.goto("/sample/signin")

    await german.locator("[data-copy]").first.click()

    await expect(german.locator("#toasts")).to_contain_text("refract signin-link kopiert")


async def test_the_check_of_a_name_is_german(german: Page) -> None:
    await german.goto("/sample/link-form-new")
    name = german.locator("[data-name-check]")
    state = german.locator("#name-state")

    await name.fill("jira")
    await expect(state).to_have_text("/jira ist verfügbar")
    await name.fill("roadmap")
    await expect(state).to_have_text(
        "/roadmap ist schon vergeben. Bitte einen anderen Namen wählen."
    )


async def test_times_are_german(german: Page) -> None:
    await german.goto("/sample/home-full")

    title = await german.locator("time[data-moment]").first.get_attribute("title")

    assert title is not None
    assert title.split(", ")[0].count(".") == 2  # 20.8.2026, 15:09:00


@pytest.mark.parametrize(
    ("sample", "selector", "least"),
    [("admin-barred", ".people-main", 150), ("tags-mine", ".tag-name", 130)],
)
async def test_long_german_words_leave_room_for_names_on_a_phone(
    german: Page, sample: str, selector: str, least: int
) -> None:
    await german.set_viewport_size({"width": 320, "height": 640})
    await german.goto(f"/sample/{sample}")

    widths = await german.locator(selector).evaluate_all("all => all.map((e) => e.clientWidth)")

    assert widths
    assert min(widths) >= least


@pytest.mark.parametrize(
    ("sample", "inner", "outer"),
    [
        ("review-done", ".empty form", ".empty-words"),
        ("invitations", ".key-steps .button-primary", ".key"),
    ],
)
async def test_nothing_sticks_out_on_a_german_phone(
    german: Page, sample: str, inner: str, outer: str
) -> None:
    await german.set_viewport_size({"width": 320, "height": 640})
    await german.goto(f"/sample/{sample}")

    inside = await german.locator(inner).first.bounding_box()
    around = await german.locator(outer).first.bounding_box()

    assert inside is not None
    assert around is not None
    assert inside["x"] >= around["x"] - 1
    assert inside["x"] + inside["width"] <= around["x"] + around["width"] + 1


@pytest.mark.parametrize(
    ("locale", "shown"),
    [
        ("de-DE", ["1 Tab öffnen?", "1.284 Tabs öffnen?"]),
        ("zh-CN", ["打开 1 个标签页？", "打开 1,284 个标签页？"]),
        ("en-US", ["Open 1 tab?", "Open 1,284 tabs?"]),
    ],
)
async def test_plurals_and_numbers_follow_the_language(
    chromium: Browser, gallery_url: str, locale: str, shown: list[str]
) -> None:
    page = await _open_page(chromium, gallery_url, locale)
    await page.goto("/sample/home-full")

    assert [await page.evaluate(COUNT_TABS, count) for count in (1, 1284)] == shown
    await page.context.close()
