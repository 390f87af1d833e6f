"""Nothing is silent, off-screen or lost: failures, messages, secrets, drafts, autosave, undo."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.visiting import Visit, silent, site, visit
from tests.waiting import eventually

__all__ = ["silent", "site", "visit"]
pytestmark = pytest.mark.asyncio(loop_scope="session")
IN_VIEW = """(element) => {
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}"""


async def _forget_session(visit: Visit) -> list[object]:
    """Delete the cookies and return them: the session has ended elsewhere."""
    cookies = await visit.context.cookies()
    await visit.context.clear_cookies()
    return list(cookies)


def _expect_refusal(visit: Visit, status: int) -> None:
    """Forget the browser's own console line for a refused request, and nothing else."""
    visit.complaints[:] = [line for line in visit.complaints if str(status) not in line]


async def _toast(page: Page, text: str | re.Pattern[str]) -> None:
    await expect(page.locator("#toasts")).to_contain_text(text)


async def test_a_partial_update_after_the_session_ended_leads_to_the_sign_in(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/links?sort=updated")
    cookies = await _forget_session(visit)

    await page.locator("#filter-q").fill("anything")

    await expect(page).to_have_url(re.compile("/auth/sign-in"))
    back = [one["name"] for one in await visit.context.cookies()]
    assert any("refract_return" in name for name in back)
    await visit.context.add_cookies(cookies)  # type: ignore[arg-type]
    _expect_refusal(visit, 401)


@pytest.mark.parametrize("status", [403, 404, 409, 500])
async def test_a_failed_partial_update_says_why(visit: Visit, status: int) -> None:
    page = visit.page
    await page.goto("/app/links")

    async def fail(route: Route) -> None:
        body = '<main><p class="lead" data-problem>The server is resting.</p></main>'
        await route.fulfill(status=status, body=body, content_type="text/html")

    await page.route("**/app/links?*", fail)
    await page.locator("#filter-q").fill("anything")

    await _toast(page, "The server is resting.")
    await expect(page.locator("#results")).to_be_visible()
    await page.unroute_all(behavior="ignoreErrors")
    _expect_refusal(visit, status)


async def test_saving_an_item_that_is_still_fetched_says_so(visit: Visit) -> None:
    """The review form gets 409 and shows the form again, with the reason."""
    page = visit.page
    await visit.ask("POST", "/api/v1/items", text="A note for the feedback test")
    await page.goto("/app/review")
    item = await page.locator("[data-deck-form]").get_attribute("action")
    assert item is not None
    await visit.ask("POST", f"/api/v1/items/{item.rpartition('/')[2]}/discard")

    await page.locator("[data-confirm]").click()

    await expect(page.locator(".notice-wrong")).to_contain_text("discarded")
    _expect_refusal(visit, 409)


async def test_a_new_key_is_shown_in_a_dialog_with_a_copy_button(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/settings")
    form = page.locator("form[action^='/app/settings/keys']:not(.confirm-panel)")
    await form.get_by_label("Name").fill("In a dialog")
    await form.get_by_role("button", name="Create key").click()

    dialog = page.get_by_role("dialog", name="API key created")
    await expect(dialog).to_be_visible()
    await expect(dialog.get_by_role("button", name="Copy")).to_be_focused()
    assert await dialog.locator("#new-key").evaluate(IN_VIEW)
    await dialog.get_by_role("button", name="Done").click()
    await expect(dialog).to_be_hidden()


async def test_what_a_form_was_refused_for_is_in_view_and_has_the_focus(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/settings")
    field = page.get_by_label("to confirm")
    await field.fill("no")
    await page.get_by_role("button", name="Delete my account").click()

    await expect(field).to_be_focused()
    assert await field.evaluate(IN_VIEW)
    _expect_refusal(visit, 422)


async def test_n_and_e_focus_the_fields_that_they_name(visit: Visit) -> None:
    page = visit.page
    await visit.ask("POST", "/api/v1/items", text="Another note to review")
    await page.goto("/app/library")
    await page.keyboard.press("n")
    await expect(page.locator("main [data-key=n]")).to_be_focused()
    await page.goto("/app/review")
    await expect(page.locator("[data-deck-form]")).to_be_visible()
    await page.keyboard.press("e")
    await expect(page.locator("[data-key=e]")).to_be_focused()


DRAFTS = "Object.keys(localStorage).filter((key) => key.startsWith('refract-draft:'))"


async def test_what_was_typed_survives_a_reload_until_it_is_sent(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/links/new")
    await page.get_by_label("Destination URL").fill("https://example.com/kept")
    await page.locator("#field-title").fill("Kept")
    await eventually(lambda: page.evaluate(f"{DRAFTS}.length"))

    await page.reload()

    await _toast(page, "Restored what you typed")
    await expect(page.get_by_label("Destination URL")).to_have_value("https://example.com/kept")
    await page.get_by_role("button", name="Create link").click()
    await expect(page).not_to_have_url(re.compile("/new"))
    assert await page.evaluate(DRAFTS) == []
    await page.goto("/app/links/new")
    await expect(page.get_by_label("Destination URL")).to_have_value("")


async def test_what_was_typed_survives_a_session_that_has_ended(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/library")
    box = page.locator("main [data-key=n]")
    await box.fill("A thought that must not be lost")
    cookies = await _forget_session(visit)
    await box.press("Control+Enter")
    await expect(page.locator("[data-problem]")).to_be_visible()

    await visit.context.add_cookies(cookies)  # type: ignore[arg-type]
    await page.goto("/app/library")

    await expect(box).to_have_value("A thought that must not be lost")
    await box.press("Control+Enter")
    await _toast(page, re.compile("."))
    assert await page.evaluate(DRAFTS) == []
    _expect_refusal(visit, 403)
    _expect_refusal(visit, 401)


async def test_drafts_hold_no_secrets_and_end_with_the_session(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/settings")
    await page.get_by_label("to confirm").fill("dele")
    await page.get_by_label("Nickname").fill("Countess")
    await eventually(lambda: page.evaluate(f"{DRAFTS}.length"))
    kept = await page.evaluate("JSON.stringify(localStorage)")
    assert "dele" not in kept
    assert "csrf" not in kept
    assert "Countess" in kept

    await page.evaluate(
        "document.querySelector('form[action=\"/auth/sign-out\"]').addEventListener("
        "'submit', (event) => event.preventDefault())"
    )
    await page.locator(".menu summary").first.click()
    await page.get_by_role("button", name="Sign out", exact=True).click()

    assert await page.evaluate(DRAFTS) == []


async def _new_list(visit: Visit, title: str, *urls: str) -> str:
    made = (await visit.ask("POST", "/api/v1/lists", title=title)).json()
    for url in urls:
        await visit.ask("POST", f"/api/v1/lists/{made['id']}/entries", url=url)
    return str(made["id"])


async def test_a_list_saves_itself_while_it_is_edited(visit: Visit) -> None:
    page = visit.page
    number = await _new_list(visit, "First title", "https://example.com/one")
    await page.goto(f"/app/lists/{number}")
    await page.locator("#field-title").fill("Second title")
    await expect(page.locator("[data-autosave-state=details]")).to_have_text("Saved")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Second title")

    entry = page.locator("[data-entry]").first
    await entry.locator("summary").click()
    await entry.get_by_label("Title").fill("By hand")
    await expect(entry.locator("[data-autosave-state]")).to_have_text("Saved")
    await page.reload()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Second title")
    await expect(page.locator(".entry-title")).to_have_text("By hand")


async def test_publishing_publishes_what_is_on_the_screen(visit: Visit) -> None:
    page = visit.page
    number = await _new_list(visit, "Saved before", "https://example.com/one")
    await page.goto(f"/app/lists/{number}")
    await page.locator("#field-title").fill("Typed last")
    await page.get_by_text("Publish…").click()
    await page.locator("[data-slug]").fill("typed-last")
    await page.get_by_role("button", name="Publish", exact=True).click()

    await _toast(page, "Published /typed-last")
    seen = (await visit.ask("GET", f"/api/v1/lists/{number}")).json()
    assert (seen["title"], seen["slug"], seen["status"]) == (
        "Typed last",
        "typed-last",
        "published",
    )


async def test_a_removed_entry_comes_back_and_the_typed_title_stays(visit: Visit) -> None:
    page = visit.page
    number = await _new_list(visit, "Undo", "https://example.com/one", "https://example.com/two")
    await page.goto(f"/app/lists/{number}")
    await page.locator("#field-title").fill("Not lost")
    await page.locator("[data-entry]").first.get_by_role("button", name="Remove").click()
    await expect(page.locator("[data-entry]")).to_have_count(1)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Not lost")

    await page.locator("#toasts").get_by_role("button", name="Undo").click()

    await expect(page.locator("[data-entry]")).to_have_count(2)
    await _toast(page, "Restored")
    urls = [
        entry["url"]
        for entry in (await visit.ask("GET", f"/api/v1/lists/{number}")).json()["entries"]
    ]
    assert urls == ["https://example.com/one", "https://example.com/two"]


async def test_on_a_phone_buttons_and_panels_are_on_the_screen(visit: Visit) -> None:
    page = visit.page
    await page.set_viewport_size({"width": 320, "height": 640})
    try:
        await page.goto("/app/links/new")
        button = page.get_by_role("button", name="Create link")
        bar = page.locator(".rail")
        lower = await bar.evaluate("(element) => element.getBoundingClientRect().top")
        assert await button.evaluate("(e) => e.getBoundingClientRect().bottom") <= lower

        number = await _new_list(visit, "On a phone", "https://example.com/one")
        await page.goto(f"/app/lists/{number}")
        await page.locator("summary", has_text="Delete list").click()
        panel = page.locator(".confirm[open] .confirm-panel")
        assert await panel.evaluate(IN_VIEW)
        assert await panel.evaluate("(e) => e.getBoundingClientRect().right <= innerWidth")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        await page.set_viewport_size({"width": 1280, "height": 800})


async def test_a_key_without_permissions_is_refused(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/settings")
    form = page.locator("form[action='/app/settings/keys']")
    await form.get_by_label("Name").fill("Nothing allowed")
    for box in await form.get_by_role("checkbox").all():
        await box.uncheck()
    await form.get_by_role("button", name="Create key").click()

    error = page.locator(".field-error")
    await expect(error).to_have_text("Select at least one permission.")
    await expect(error).to_be_focused()
    assert await error.evaluate(IN_VIEW)
    _expect_refusal(visit, 422)
