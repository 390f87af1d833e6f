"""An administrator invites somebody, who joins on a phone and later signs in again."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.visiting import Visit, silent, site, visit

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
async def test_invite_join_and_sign_in_again(chromium: Browser, visit: Visit, script: bool) -> None:
    name = "Grace" if script else "Hopper"
    page = visit.page
    await page.goto("/app/admin/people")
    await page.get_by_role("link", name="Invite").click()
    await page.get_by_role("textbox", name="Name optional").fill(name)
    await page.get_by_role("textbox", name="Note optional").fill("Welcome to the family.")
    await page.get_by_role("button", name="Create invitation").click()
    dialog = page.get_by_role("dialog", name="Invitation link")
    await expect(dialog.get_by_role("button", name="Copy")).to_be_focused()
    url = await dialog.locator("code").inner_text()
    await dialog.get_by_role("button", name="Done").click()
    await expect(page.locator(".key", has_text=name)).to_contain_text("Expires")

    phone = await chromium.new_context(
        base_url=visit.site.url,
        viewport={"width": 390, "height": 844},
        java_script_enabled=script,
    )
    guest = await phone.new_page()
    await guest.goto(url)
    await expect(guest.locator("h1")).to_have_text("Owner invites you to Refract")
    await expect(guest.locator("main")).to_contain_text("Welcome to the family.")
    await expect(guest.get_by_label("Your name")).to_have_value(name)
    await guest.get_by_role("button", name="Create account").click()
    await expect(guest).to_have_url(f"{visit.site.url}/")
    await expect(guest.locator("#toasts")).to_contain_text(f"Welcome, {name}")
    await phone.clear_cookies()

    await page.goto("/app/admin/invitations")
    await expect(page.locator(".key", has_text=name)).to_contain_text("Accepted")
    await page.goto("/app/admin/people")
    await page.get_by_label(f"Actions for {name}").click()
    await page.locator("summary", has_text="Sign-in link").locator("visible=true").click()
    await page.get_by_role("button", name="Create link").locator("visible=true").click()
    again = await page.get_by_role("dialog", name="Sign-in link").locator("code").inner_text()
    await guest.goto(again)
    await expect(guest.locator("main")).to_contain_text(name)
    await guest.get_by_role("button", name="Sign in").click()
    await expect(guest).to_have_url(f"{visit.site.url}/")
    await phone.close()
