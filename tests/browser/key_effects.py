"""What each shortcut does, and what must be so before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

FOCUSED_ROW = "document.activeElement.matches('[data-row-open]')"
Step = Callable[[Page], Awaitable[None]]


async def _drawer_is_open(page: Page) -> None:
    await expect(page.locator("#drawer form[method=post]")).to_be_visible()
    for _ in range(2):  # first out of a field
        if await page.locator("#drawer[open]").count():
            await page.keyboard.press("Escape")
    await expect(page.locator("#drawer")).to_be_hidden()


async def _bar_is_focused(page: Page) -> None:
    await expect(page.locator("#omnibox")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("#omnibox")).not_to_be_focused()


async def _help_is_open(page: Page) -> None:
    await expect(page.locator("#shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")


async def _nothing_is_open(page: Page) -> None:
    await expect(page.locator("dialog[open]")).to_have_count(0)


async def _row_is_focused(page: Page) -> None:
    assert await page.evaluate(FOCUSED_ROW)


async def _copied(page: Page) -> None:
    await expect(page.locator("#toasts")).to_contain_text("Copied")


async def _qr_is_open(page: Page) -> None:
    await expect(page.locator("#qr")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#qr")).to_be_hidden()


def _is_focused(selector: str) -> Step:
    async def check(page: Page) -> None:
        await expect(page.locator(selector)).to_be_focused()
        await page.keyboard.press("Escape")

    return check


def _is_true(script: str) -> Step:
    async def check(page: Page) -> None:
        assert await page.evaluate(script), script

    return check


def _sent(value: str) -> Step:
    return _is_true(f"sent?.endsWith({value!r})")


went, sent = _is_true("went"), _is_true("sent")
first_ticked = _is_true("document.querySelector('[data-tick]').checked")
two_ticked = _is_true("document.querySelectorAll('[data-tick]:checked').length === 2")
EFFECTS: dict[tuple[str, str], Step] = {
    ("Global", "New link"): _drawer_is_open,
    ("Global", "Search or jump to…"): _bar_is_focused,
    ("Global", "Open command bar"): _bar_is_focused,
    ("Global", "Show shortcuts"): _help_is_open,
    ("Global", "Close or cancel"): _nothing_is_open,
    ("Global", "Back to the list"): went,
    ("Forms", "Save or send"): sent,
    ("Undo", "Undo"): _is_true("sent?.includes('/undo')"),
    ("Rows", "Next"): _row_is_focused,
    ("Rows", "Previous"): _row_is_focused,
    ("Rows", "Open"): went,
    ("Links", "New link"): _drawer_is_open,
    ("Links", "Edit"): _drawer_is_open,
    ("Links", "Select"): first_ticked,
    ("Links", "Select and go to the next link"): two_ticked,
    ("Links", "Copy"): _copied,
    ("Links", "Delete"): _sent("delete"),
    ("This link", "Edit"): _drawer_is_open,
    ("This link", "Copy"): _copied,
    ("This link", "QR code"): _qr_is_open,
    ("Lists", "New list"): _is_focused("#field-urls"),
    ("Library", "Search or save"): _is_focused("#capture"),
    ("Items", "Edit"): _drawer_is_open,
    ("Items", "Select"): first_ticked,
    ("Items", "Select and go to the next item"): two_ticked,
    ("Items", "Mark as read or unread"): _sent("unread"),
    ("Items", "Add or remove favorite"): _sent("favorite"),
    ("Items", "Archive or unarchive"): _sent("archive"),
    ("Items", "Discard"): _sent("discard"),
    ("This item", "Edit"): _is_true("document.querySelector('#edit details').open"),
    ("This item", "Open original"): went,
    ("This item", "Mark as read or unread"): _sent("unread"),
    ("This item", "Add or remove favorite"): _sent("favorite"),
    ("This item", "Archive or unarchive"): _sent("archive"),
    ("This item", "Discard"): _sent("/discard"),
    ("Tags", "Select"): first_ticked,
    ("Tags", "Merge selected tags"): _sent("/merge"),
    ("Review", "Save a URL or note"): _is_focused("#capture"),
    ("Review", "Toggle tag"): _is_true("document.querySelector('[data-proposal]').checked"),
    ("Review", "Accept all"): _is_true("document.querySelector('[data-proposal]').checked"),
    ("Review", "Reject all"): _is_true("!document.querySelector('[data-proposal]').checked"),
    ("Review", "Edit title"): _is_focused("#field-title"),
    ("Review", "Open original"): went,
    ("Review", "Save and next"): _sent("confirm"),
    ("Review", "Discard and next"): _sent("discard"),
    ("Review", "Retry"): _sent("retry"),
    ("Review", "Next"): went,
    ("Review", "Previous"): went,
}


async def _focus_first_row(page: Page) -> None:
    await page.locator("[data-row-open]").first.focus()


async def _tick(page: Page, count: int) -> None:
    script = "(ticks, count) => ticks.forEach((tick, at) => { tick.checked = at < count; })"
    await page.locator("[data-tick]").evaluate_all(script, count)
    await page.locator("body").dispatch_event("change")


async def _select_none(page: Page) -> None:
    await _tick(page, 0)
    await _focus_first_row(page)


async def _select_two(page: Page) -> None:
    await _tick(page, 2)


async def _clear_proposals(page: Page) -> None:
    script = "(boxes) => boxes.forEach((box) => { box.checked = false; })"
    await page.locator("[data-proposal]").evaluate_all(script)


async def _focus_form(page: Page) -> None:
    """Put the cursor into a field of the first form, shown and without its rules."""
    script = """() => {
      const forms = [...document.querySelectorAll('main form[method=post]:not([data-omnibox])')];
      const isField = 'textarea, input:not([type=hidden])';
      const field = forms.map((form) => form.querySelector(isField)).find(Boolean);
      field.form.noValidate = true;
      for (let part = field; part; part = part.parentElement)
        if (part.matches('details')) part.open = true;
      field.focus();
    }"""
    await page.evaluate(script)


PREPARED: dict[tuple[str, str], Step] = {
    ("Forms", "Save or send"): _focus_form,
    ("Tags", "Merge selected tags"): _select_two,
    ("Review", "Toggle tag"): _clear_proposals,
    ("Review", "Accept all"): _clear_proposals,
    **{
        (group, words): _select_none
        for group, words in EFFECTS
        if group in {"Links", "Items"} or (group, words) in {("Tags", "Select"), ("Rows", "Open")}
    },
}
"""What must be so before a key has an effect."""
