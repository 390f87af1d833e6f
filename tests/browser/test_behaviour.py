"""Behaviour of app.js: theme, shortcuts, copying, toasts, dialogs; and pages without scripts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
NOTE_FIRST_THEME = """new MutationObserver((_, observer) => {
  if (!document.body) return;
  window.first = document.documentElement.dataset.theme;
  observer.disconnect();
}).observe(document, {childList: true, subtree: true})"""
NO_CLIPBOARD = """Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined});
document.addEventListener('copy', () => { window.copied = document.activeElement.value })"""
NOTE_WHERE_TO = """document.querySelector('[data-go=l]').addEventListener('click', (e) => {
  e.preventDefault(); window.went = e.currentTarget.pathname
})"""
LIGHT, DARK = "rgb(250, 249, 247)", "rgb(19, 18, 16)"


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: Browser, gallery_url: str) -> AsyncIterator[Page]:
    context = await chromium.new_context(
        base_url=gallery_url,
        viewport={"width": 1280, "height": 800},
        color_scheme="light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield await context.new_page()
    await context.close()


async def test_theme_goes_round_and_is_remembered_before_the_first_paint(page: Page) -> None:
    await page.goto("/sample/landing")
    assert await page.evaluate(BACKGROUND) == LIGHT
    switch = page.locator("[data-theme-switch]")
    await switch.click()
    await switch.click()
    assert await page.evaluate(BACKGROUND) == DARK

    # Stopped at the first parsed body element: only the blocking script can have run by then.
    await page.add_init_script(NOTE_FIRST_THEME)
    await page.reload()
    assert await page.evaluate("first") == "dark"
    assert await page.evaluate(BACKGROUND) == DARK
    await expect(switch).to_have_attribute("aria-label", "Theme: Dark")

    await switch.click()
    assert await page.evaluate(BACKGROUND) == LIGHT
    assert await page.evaluate("localStorage.getItem('refract-theme')") is None


async def test_settings_choose_the_theme_too(page: Page) -> None:
    await page.goto("/sample/settings")
    await page.get_by_role("radio", name="Dark").check()
    assert await page.evaluate(BACKGROUND) == DARK
    await page.reload()
    await expect(page.get_by_role("radio", name="Dark")).to_be_checked()


@pytest.mark.parametrize("keys", ["/", "Control+k", "Meta+k"])
async def test_keys_reach_the_omnibox(page: Page, keys: str) -> None:
    await page.goto("/sample/settings")
    await page.keyboard.press(keys)
    await expect(page.locator("#omnibox")).to_be_focused()
    await expect(page.locator("#omnibox")).to_have_value("")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("https://example.com/a?b", "Enter: Shorten https://example.com/a?b"),
        ("example.com/page", "Enter: Shorten https://example.com/page"),
        ("/roadmap", "Enter: Open /roadmap"),
        ("//evil.test", "Enter: Open /evil.test"),
        ("#planning", "Enter: Links tagged planning"),
        ("what is 1.5", "Enter: Search for “what is 1.5”"),
        ("road map", "Enter: Search for “road map”"),
    ],
)
async def test_omnibox_says_what_enter_will_do(page: Page, text: str, hint: str) -> None:
    await page.goto("/sample/home-full")
    await page.locator("#omnibox").fill(text)
    await expect(page.locator("[data-omnibox-hint]")).to_have_text(hint)


async def test_question_mark_opens_help_but_not_while_typing(page: Page) -> None:
    await page.goto("/sample/settings")
    await page.locator("#omnibox").focus()
    await page.keyboard.type("?")
    await expect(page.locator("#shortcuts")).to_be_hidden()
    await page.keyboard.press("Escape")
    await page.keyboard.type("?")
    await expect(page.locator("#shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#shortcuts")).to_be_hidden()


async def test_g_goes_places_and_j_k_move_between_rows(page: Page) -> None:
    await page.goto("/sample/home-full")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name="/standup")).to_be_focused()
    await page.keyboard.press("k")
    await expect(page.get_by_role("link", name="/roadmap", exact=True)).to_be_focused()
    await page.evaluate(NOTE_WHERE_TO)
    await page.keyboard.press("g")
    await page.keyboard.press("l")
    assert await page.evaluate("went") == "/app/links"


async def test_copy_copies_and_says_so(page: Page) -> None:
    await page.goto("/sample/settings-new-key")
    await page.locator("#key-created [data-copy]").click()
    assert (
        await page.evaluate("navigator.clipboard.readText()")
        == "refract_9hT2kQ7wXv3LmN8pRs4TyU6zAb1CdE5fGh"
    )
    await expect(page.locator("#toasts")).to_contain_text("Copied")


async def test_a_copy_button_says_so_for_a_moment_even_when_pressed_twice(page: Page) -> None:
    await page.goto("/sample/settings-new-key")
    button = page.locator("#key-created [data-copy]")
    picture = button.locator("use")
    await button.click()
    await button.click()
    await expect(button).to_have_text("Copied")
    await expect(picture).to_have_attribute("href", re.compile("#check$"))
    await expect(button).to_have_text("Copy")
    await expect(picture).to_have_attribute("href", re.compile("#copy$"))


async def test_copy_works_on_plain_http_without_the_clipboard_interface(page: Page) -> None:
    await page.add_init_script(NO_CLIPBOARD)
    await page.goto("/sample/signin")
    await page.get_by_label("Copy command").click()
    await expect(page.locator("#toasts")).to_contain_text("Copied refract signin-link")
    assert await page.evaluate("copied") == "refract signin-link"


async def test_a_toast_by_event_offers_undo_that_can_be_taken_over(page: Page) -> None:
    await page.goto("/sample/settings")
    await page.evaluate(
        "document.dispatchEvent(new CustomEvent('refract:toast', {detail: {message: '<b>Gone</b>',"
        " undo: '/app/x/undo'}}))"
    )
    toast = page.locator("#toasts [data-toast]")
    await expect(toast).to_contain_text("<b>Gone</b>")
    await page.evaluate(
        "document.addEventListener('refract:undo', (e) => { e.preventDefault(); window.undone ="
        " e.detail.action })"
    )
    await toast.get_by_role("button", name="Undo").click()
    assert str(await page.evaluate("undone")).endswith("/app/x/undo")
    await expect(toast).to_have_count(0)


async def test_a_toast_without_undo_leaves_by_itself_and_a_wrong_one_stays(page: Page) -> None:
    await page.clock.install()
    await page.goto("/sample/parts")
    await page.evaluate(
        "document.dispatchEvent(new CustomEvent('refract:toast', {detail: {message: 'Saved'}}))"
    )
    await expect(page.locator("#toasts [data-toast]")).to_have_count(3)
    await page.clock.run_for(7_000)
    await expect(page.locator("#toasts [data-toast]")).to_have_count(2)
    await page.clock.run_for(14_000)
    await expect(page.locator("#toasts [data-toast]")).to_have_text(
        [r"Something is not right with that."]
    )


async def test_drawer_opens_from_its_link_and_closes_beside_it(page: Page) -> None:
    await page.goto("/sample/parts")
    await page.get_by_role("link", name="New link").click()
    await expect(page.locator("#new-link")).to_be_visible()
    await page.mouse.click(300, 400)
    await expect(page.locator("#new-link")).to_be_hidden()
    assert page.url.endswith("/sample/parts")


async def test_revoking_asks_first(page: Page) -> None:
    await page.goto("/sample/settings")
    await page.locator(".key").first.get_by_text("Revoke").first.click()
    async with page.expect_request(lambda request: request.method == "POST") as sent:
        await page.get_by_role("button", name="Revoke key").first.click()
    request = await sent.value
    assert request.url.endswith("/app/settings/keys/1/revoke")
    assert request.post_data == "csrf=sample-token"


async def test_everything_works_as_plain_forms_without_script(
    chromium: Browser, gallery_url: str
) -> None:
    context = await chromium.new_context(base_url=gallery_url, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/sample/home")
    await expect(page.locator("[data-theme-switch]")).to_be_hidden()
    await page.get_by_label("Destination URL").fill("https://example.com/x")
    async with page.expect_request(lambda request: request.method == "POST") as sent:
        await page.get_by_role("button", name="Create link").click()
    assert (
        await sent.value
    ).post_data == "csrf=sample-token&destination=https%3A%2F%2Fexample.com%2Fx&name="

    await page.goto("/sample/settings")
    await page.locator(".key").first.get_by_text("Revoke").first.click()
    await expect(page.get_by_role("button", name="Revoke key").first).to_be_visible()
    await page.locator(".menu summary").click()
    await expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()
    await context.close()


async def test_help_names_only_places_that_exist(page: Page) -> None:
    await page.goto("/sample/home-links-only")
    await page.keyboard.type("?")
    places = page.locator("#shortcuts section").filter(
        has=page.get_by_role("heading", name="Go to")
    )
    await expect(places.locator("dt")).to_have_text(["Home", "Links", "Settings"])


@pytest.mark.parametrize("width", [320, 1280])
async def test_a_row_shows_its_clicks_once(page: Page, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    await page.goto("/sample/links")
    cell = page.locator("[data-row]").first.locator(".cell-number")
    assert await cell.inner_text() == ("1,284 clicks" if width == 320 else "1,284")


@pytest.mark.parametrize("name", ["analytics", "link-figures"])
async def test_figures_stand_two_by_two_on_a_phone(page: Page, name: str) -> None:
    """A rule of the page came later than that for phones: "Live" lay over the third figure."""
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"/sample/{name}")
    columns = await page.locator(".figures-row").evaluate(
        "(row) => getComputedStyle(row).gridTemplateColumns.split(' ').length"
    )
    assert columns == 2
