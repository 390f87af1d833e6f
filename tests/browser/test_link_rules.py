"""Rules of a link in a browser: written, tried, moved, removed and restored."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.visiting import Visit, silent, site, visit

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _add_rule(page: Page, opener: str, destination: str, part: str) -> Locator:
    """Fill in the form of a rule up to a condition, whose part of the form is opened."""
    rules = page.locator("#rules")
    await rules.get_by_role("link", name=opener).click()
    await rules.get_by_label("Redirect to").fill(destination)
    await rules.locator("summary", has_text=part).click()
    return rules


async def test_rules_are_added_and_tried(visit: Visit) -> None:
    page = visit.page
    made = await visit.ask(
        "POST", "/api/v1/links", destination="https://127.0.0.1:1/default", names=["store"]
    )
    await page.goto(f"/app/links/{made.json()['id']}?tab=rules")
    result = page.locator(".explanation-result")
    await expect(page.locator("#rules")).to_contain_text("A rule sends some visitors elsewhere")
    await expect(result).to_contain_text("No rules yet")
    await page.locator("#field-agent").select_option("iphone")
    await page.locator("#field-language").fill("de")

    rules = await _add_rule(page, "Add your first rule", "https://127.0.0.1:1/ios", "Device")
    await rules.get_by_role("button", name="Save rule").click()
    await expect(rules.locator(".field-error")).to_contain_text("at least one condition")
    await expect(rules.get_by_label("Redirect to")).to_have_value("https://127.0.0.1:1/ios")
    visit.complaints.clear()  # the status of the refusal
    await rules.locator("summary", has_text="Device").click()
    await rules.get_by_role("checkbox", name="iOS").check()
    await rules.get_by_role("button", name="Save rule").click()
    await expect(page.locator("#toasts")).to_contain_text("Added the rule")
    await expect(result).to_contain_text("Rule 1 decides")
    await expect(result).to_contain_text("/ios")

    await _add_rule(page, "Add rule", "https://127.0.0.1:1/de", "Country and language")
    await rules.get_by_label("Languages").fill("de")
    await expect(page.locator("#explanation")).to_contain_text("not saved yet")
    await expect(page.locator("#explanation")).to_contain_text("but an earlier rule decides")
    await expect(page).not_to_have_url(re.compile("csrf|destination"))
    await rules.get_by_role("button", name="Save rule").click()
    await expect(rules.locator(".rule-row")).to_have_count(2)
    await expect(rules.locator(".rule-row").last.locator("dt")).to_have_text("Language")
    await expect(page.locator("#explanation")).to_contain_text("but an earlier rule decides")


async def test_rules_are_moved_by_keyboard_removed_and_restored(visit: Visit) -> None:
    page, rules = visit.page, visit.page.locator("#rules")
    rows, result = rules.locator(".rule-row"), page.locator(".explanation-result")
    await rules.get_by_role("button", name="Move rule 2 up").focus()
    await page.keyboard.press("Enter")
    await expect(rows.first).to_contain_text("/de")
    await expect(rules.get_by_role("button", name="Move rule 1 up")).to_be_focused()
    await expect(result).to_contain_text("/de")

    await page.locator("#field-language").fill("fr")
    await expect(result).to_contain_text("Rule 2 decides")
    await expect(page.locator(".condition-unmet")).to_contain_text("Language: not met")

    await rules.get_by_role("button", name="Remove rule 2").click()
    await expect(rows).to_have_count(1)
    await expect(result).to_contain_text("No rule matches")
    await page.locator("#toasts").get_by_role("button", name="Undo").last.click()
    await expect(rows).to_have_count(2)
    await expect(result).to_contain_text("Rule 2 decides")
