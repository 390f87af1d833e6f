"""Stories of the library, by keyboard where that is promised."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.visiting import Visit, silent, site, visit
from tests.waiting import eventually

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")
THOUGHTS = 10


async def _keep(visit: Visit, text: str, *tags: str) -> None:
    answer = await visit.ask("POST", "/api/v1/items", text=text, enrich=False, new_tags=list(tags))
    assert answer.status_code == 201, answer.text


async def _press(visit: Visit, key: str) -> None:
    """Press a key once the page's script is ready: the items are there a moment before."""
    await visit.page.wait_for_load_state()
    await visit.page.keyboard.press(key)


async def _until(one: Locator, holds: str) -> None:
    await eventually(lambda: one.evaluate(holds), pause=0.1)


async def _described(page: Page) -> bool:
    """Reload the page; return whether every item has suggestions."""
    await page.reload()
    return not await page.locator("[data-queue] .tone-accent").count()


async def test_ten_items_are_reviewed_by_keyboard_only(visit: Visit) -> None:
    await _keep(visit, "An engine burns fuel.", "engines")
    for number in range(THOUGHTS):
        answer = await visit.ask(
            "POST", "/api/v1/items", text=f"Thought {number} about engines: they burn fuel."
        )
        assert answer.status_code == 201
    await visit.page.goto("/app/links")
    await expect(visit.page.locator(".rail .badge")).to_contain_text(
        str(THOUGHTS)
    )  # on a page that has nothing to do with it
    await visit.page.goto("/app/review")
    await eventually(lambda: _described(visit.page), pause=0.5)
    await expect(visit.page.locator("[data-queue]")).to_have_count(THOUGHTS)

    for left in range(THOUGHTS - 1, 0, -1):
        await _press(visit, "y" if left % 2 else "1")
        await _press(visit, "Backspace" if left == 5 else "Enter")
        await expect(visit.page.locator("[data-queue]")).to_have_count(left)
        if left == 5:  # the discarded one comes back
            await _press(visit, "z")
            await expect(visit.page.locator("[data-queue]")).to_have_count(left + 1)
            await _press(visit, "Enter")
            await expect(visit.page.locator("[data-queue]")).to_have_count(left)
    await _press(visit, "Enter")
    await expect(visit.page.get_by_role("heading", name="You’re all caught up")).to_be_visible()

    await _press(visit, "g")
    await _press(visit, "i")
    await expect(visit.page.locator(".item")).to_have_count(THOUGHTS + 1)


async def test_the_library_finds_reads_and_changes(visit: Visit) -> None:
    await _keep(
        visit, "The quick brown fox jumps over the lazy dog, and nobody writes it down.", "animals"
    )
    await visit.page.goto("/app/library")
    await visit.page.locator("#capture").fill("brown fox")
    await expect(visit.page.locator(".item")).to_have_count(1)
    await visit.page.locator(".item-title a").click()
    await expect(visit.page.locator(".prose")).to_contain_text("lazy dog")
    await visit.page.locator("summary", has_text="Edit").click()
    await visit.page.get_by_role("textbox", name="Tags").fill("animals, pangrams")
    await visit.page.get_by_role("button", name="Save").click()
    await expect(visit.page.locator("#edit .chips")).to_contain_text("pangrams")
    await visit.page.get_by_role("button", name="Discard").click()
    await expect(visit.page.locator("#toasts")).to_contain_text("Discarded")
    await visit.page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(visit.page.locator(".prose")).to_contain_text("lazy dog")


async def test_bookmarks_are_tried_out_imported_watched_and_taken_back(visit: Visit) -> None:
    icon = (  # as browsers write it: most of the file, and more than the server reads
        f'ICON="data:image/png;base64,{"A" * 3_000}"'
    )
    rows = [
        f'<DT><A HREF="https://example.com/moved/{number}" {icon} TAGS="moved in">Moved'
        f" {number}</A>"
        for number in range(1500)
    ]
    rows.append('<DT><A HREF="javascript:void(0)">A script</A>')
    file = "\n".join(["<!DOCTYPE NETSCAPE-Bookmark-file-1>", "<DL><p>", *rows, "</DL><p>"]).encode()
    page = visit.page
    await page.goto("/app/library")
    await page.get_by_role("link", name="Import").click()
    await page.wait_for_load_state()
    await page.locator("#field-file").set_input_files(
        {"name": "huge.json", "mimeType": "application/json", "buffer": b" " * len(file)}
    )
    await _until(
        page.locator("#field-file"),
        "one => one.validationMessage.includes('refract import library')",
    )
    await page.locator("#field-file").set_input_files(
        {"name": "moving.html", "mimeType": "text/html", "buffer": file}
    )
    await _until(page.locator("#field-file"), "one => one.files[0].size < 1e6")
    await page.get_by_role("button", name="Preview import").click()
    await expect(page.locator("#trial")).to_contain_text("1,500 to import, 0 duplicates, 1 skipped")
    await expect(page.locator("#trial")).to_contain_text("javascript")

    await page.get_by_role("button", name="Import", exact=True).click()  # the file is still chosen
    await expect(page.get_by_role("heading", name="moving.html")).to_be_visible()
    await expect(page.locator("#progress")).to_contain_text(
        "Done"
    )  # without anybody loading the page again
    await expect(page.locator("#progress")).to_contain_text("1,501 of 1,501")
    await page.get_by_role("link", name=re.compile("Skipped")).click()
    await expect(page.get_by_role("row")).to_have_count(2)
    assert "moved in" in (await visit.ask("GET", "/app/library?q=moved")).text

    await page.get_by_text("Undo import").click()
    await page.get_by_role("button", name="Remove imported items").click()
    await expect(page.locator("#progress")).to_contain_text("Undone")
    assert "moved in" not in (await visit.ask("GET", "/app/library?q=moved")).text


async def test_a_rule_is_made_and_what_it_proposes_is_filed_without_asking(visit: Visit) -> None:
    page = visit.page
    await page.goto("/app/tags/mine")
    await page.get_by_role("link", name="Rules").click()
    await page.get_by_label("When the URL or text matches").fill('"locomotive"')
    await page.get_by_role("textbox", name="Suggest these tags").fill("railways")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("list", name="Rules")).to_contain_text("railways")
    await page.goto("/app/settings")
    await page.get_by_label("Auto-approve saves").select_option(label="Only when my rules match")
    await page.get_by_role("button", name="Save suggestions").click()
    assert (
        await visit.ask("POST", "/api/v1/items", text="A locomotive is heavy.")
    ).status_code == 201

    async def filed() -> bool:
        return "railways" in (await visit.ask("GET", "/app/library?q=locomotive")).text

    await eventually(filed, pause=0.5)

    await page.goto("/app/settings")
    await page.get_by_label("Auto-approve saves").select_option(label="Never (review everything)")
    await page.get_by_role("button", name="Save suggestions").click()
    await page.goto("/app/tags/rules")
    await page.get_by_role("button", name="Delete the rule").click()
    await expect(page.get_by_role("list", name="Rules")).to_have_count(0)


async def test_tags_are_merged_by_keyboard_and_by_dragging_and_taken_back(visit: Visit) -> None:
    await _keep(visit, "One.", "colour")
    await _keep(visit, "Two.", "color")
    await visit.page.goto("/app/tags/mine?sort=name&q=col")
    rows = visit.page.locator("[data-tag-row]")
    await expect(rows).to_have_count(2)
    for _ in range(2):
        await visit.page.keyboard.press("j")
        await visit.page.keyboard.press("x")
    await visit.page.keyboard.press("m")
    await expect(visit.page.locator("#toasts")).to_contain_text("Merged into “color”")
    await visit.page.locator("#toasts").get_by_role("button", name="Undo").click()
    await visit.page.goto("/app/tags/mine?sort=name&q=col")
    await expect(rows).to_have_count(2)

    await rows.nth(0).drag_to(rows.nth(1))
    await expect(visit.page.locator("#toasts")).to_contain_text("Merged into “colour”")


async def test_an_item_becomes_a_link_and_the_link_an_entry_of_a_list(visit: Visit) -> None:
    await _keep(visit, "https://example.com/worth/keeping")
    await visit.page.goto("/app/library?q=keeping")
    await visit.page.get_by_role("link", name="Create short link").click()
    drawer = visit.page.locator("#drawer")
    await expect(drawer.get_by_label("Destination URL")).to_have_value(
        "https://example.com/worth/keeping"
    )
    await drawer.get_by_role("textbox", name="Name optional").fill("keeper")
    await expect(drawer.locator("#name-state")).to_have_text("/keeper is available")
    await drawer.get_by_role("button", name="Create link").click()
    await expect(visit.page.locator("h1")).to_contain_text("keeper")

    await visit.page.get_by_label("More actions for /keeper").click()
    await visit.page.get_by_role("link", name="Add to list").click()
    await visit.page.locator("#drawer").get_by_label("List title").fill("Worth it")
    await visit.page.locator("#drawer").get_by_role("button", name="Add").click()
    await expect(visit.page.get_by_role("heading", name="Worth it")).to_be_visible()
    await expect(visit.page.locator(".entry")).to_contain_text("Synced with your link")

    await visit.page.locator("#omnibox").fill("worth")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(re.compile("/app/search"))
    await expect(visit.page.locator(".hits")).to_have_count(3)
    visit.complaints.clear()  # leaving a page ends the question that the omnibox had just asked


async def test_the_omnibox_saves_to_the_library(visit: Visit) -> None:
    await visit.page.goto("/app/links")
    await visit.page.locator("#omnibox").fill("https://example.com/for/later")
    await expect(visit.page.locator(".omnibox-option", has_text="Save to library")).to_be_visible()
    await visit.page.keyboard.press("ArrowDown")
    await visit.page.keyboard.press("ArrowDown")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(re.compile("/app/links"))  # where it was saved from
    await expect(visit.page.locator("#toasts")).to_contain_text("Saved. 1 item to review")
    await visit.page.goto("/app/review")
    await expect(visit.page.locator("[data-queue]")).to_contain_text("example.com/for/later")


async def test_one_box_saves_what_is_a_url_and_searches_what_is_not(visit: Visit) -> None:
    page = visit.page
    await _keep(visit, "Whales sing in the deep sea.", "animals")
    await page.goto("/app/library")
    box = page.locator("#capture")
    await box.fill("whales")
    await expect(page.locator(".item")).to_have_count(1)
    await expect(page.locator(".item mark")).to_have_text("Whales")
    await expect(page).to_have_url(re.compile("q=whales"))
    await expect(page.locator("#library-head .tab").first).to_contain_text("1")
    await box.fill("https://example.com/from-the-box")
    await expect(page.locator("[data-save]")).to_have_class(re.compile("button-primary"))
    await box.press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("Saved.")
    await expect(box).to_have_value("")
    await expect(page).to_have_url(f"{visit.site.url}/app/library")


async def test_items_are_selected_tagged_and_discarded_by_keyboard(visit: Visit) -> None:
    page = visit.page
    for number in range(3):
        await _keep(visit, f"Selected {number}", "chosen")
    await page.goto("/app/library?tag=chosen")
    await expect(page.locator(".item")).to_have_count(3)
    await _press(visit, "j")
    await _press(visit, "Shift+J")
    await expect(page.locator("[data-bulk-count]")).to_have_text("2")
    await page.locator("#bulk-tag").fill("second")
    await page.locator("#bulk-tag").press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("Tagged 2 items")
    await expect(page.locator(".item .chips", has_text="second")).to_have_count(2)
    await page.locator("[data-row-open]").first.focus()
    await _press(visit, "#")
    await expect(page.locator(".item")).to_have_count(2)
    await expect(page.locator("#toasts")).to_contain_text("Discarded 1 item")
    await _press(visit, "z")
    await expect(page.locator(".item")).to_have_count(3)


async def test_items_are_marked_by_keyboard_and_the_focus_goes_on(visit: Visit) -> None:
    page = visit.page
    for number in range(3):
        await _keep(visit, f"Marked {number}", "marked")
    await page.goto("/app/library?tag=marked")
    rows = page.locator(".item")
    tab = page.locator(".table-head .tab")
    await _press(visit, "j")
    await _press(visit, "j")
    await _press(visit, "r")
    await expect(page.locator("#toasts")).to_contain_text("Marked 1 item as unread")
    await expect(rows.nth(1).get_by_role("img", name="Unread")).to_be_visible()
    await expect(tab.filter(has_text="Unread")).to_contain_text("1")
    await expect(rows.nth(1).locator("[data-row-open]")).to_be_focused()
    await _press(visit, "s")
    await expect(rows.nth(1).get_by_role("img", name="Favorite")).to_be_visible()
    await expect(rows.nth(1).locator("[data-row-open]")).to_be_focused()
    await _press(visit, "s")
    await expect(page.get_by_role("img", name="Favorite")).to_have_count(0)
    await expect(rows.nth(1).locator("[data-row-open]")).to_be_focused()
    await _press(visit, "a")
    await expect(rows).to_have_count(2)
    await expect(tab.filter(has_text="Archive")).to_contain_text("1")
    await expect(rows.nth(1).locator("[data-row-open]")).to_be_focused()
    await _press(visit, "z")
    await expect(rows).to_have_count(3)

    await page.locator("[data-tick]").first.check()
    await page.locator("[data-tick]").nth(1).check()
    await page.locator(".bulk-menu summary").click()
    await page.get_by_role("button", name="Archive", exact=True).click()
    await expect(page.locator("#toasts")).to_contain_text("Archived 2 items")
    await tab.filter(has_text="Archive").click()
    await expect(rows).to_have_count(2)


async def test_an_item_is_edited_in_the_drawer_of_the_list(visit: Visit) -> None:
    page = visit.page
    await _keep(visit, "To be edited", "edited")
    await page.goto("/app/library?tag=edited")
    await _press(visit, "j")
    await _press(visit, "e")
    await page.locator("#drawer").get_by_role("textbox", name="Title").fill("Edited in place")
    await page.locator("#drawer").get_by_role("button", name="Save").click()
    await expect(page.locator("#toasts")).to_contain_text("Saved changes")
    await expect(page).to_have_url(f"{visit.site.url}/app/library?tag=edited")
    await expect(page.locator(".item-title")).to_have_text("Edited in place")


async def test_selected_items_become_a_list(visit: Visit) -> None:
    page = visit.page
    for number in range(2):
        await _keep(visit, f"https://example.com/for-a-list/{number}", "listed")
    await page.goto("/app/library?tag=listed")
    await page.locator("[data-tick]").first.check()
    await page.locator("[data-tick]").nth(1).check()
    await page.get_by_role("button", name="Add to list").click()
    await expect(page.get_by_role("textbox", name="URLs")).to_have_value(
        "https://example.com/for-a-list/1\nhttps://example.com/for-a-list/0"
    )
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".entries .entry", has_text="for-a-list")).to_have_count(2)
    visit.complaints.clear()  # the pages of example.com cannot be fetched here
