"""The list editor in a browser: fetched details, order by drag and keyboard, the name check."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.lists.pages_server import Site, held, page, site
from tests.serving import Served, serving
from tests.waiting import eventually
from tools.servers import free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")
PLACES = (
    "[...document.querySelectorAll('[data-entry]')].map((entry) =>"
    " entry.querySelector('.address-tail').textContent)"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with another host name than the collected pages: our own URL is no entry."""
    port = free_port()
    settings = {
        "REFRACT_FETCH_ALLOW": "127.0.0.1/32",
        "REFRACT_BASE_URL": f"http://localhost:{port}",
    }
    settings |= {"REFRACT_ANONYMOUS_NAMES": "true"}
    with serving(tmp_path_factory.mktemp("served") / "data", port=port, **settings) as here:
        here.url = settings["REFRACT_BASE_URL"]
        yield here


@pytest_asyncio.fixture(loop_scope="session")
async def web() -> AsyncIterator[Site]:
    async with site() as here:
        yield here


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(chromium: Browser, served: Served) -> AsyncIterator[Page]:
    """A visitor without an account. Any console error fails the test."""
    context = await chromium.new_context(
        base_url=served.url, viewport={"width": 1280, "height": 900}
    )
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on(
        "console",
        lambda message: (
            complaints.append(message.text) if message.type in {"error", "warning"} else None
        ),
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    assert complaints == []
    await context.close()


async def _start(stranger: Page, *urls: str) -> None:
    await stranger.goto("/app/lists")
    await stranger.get_by_label("Links").fill("\n".join(urls))
    await stranger.get_by_role("button", name="Create list").click()
    await expect(stranger.locator("[data-entry]")).to_have_count(len(urls))


async def _kept(stranger: Page, expected: list[str]) -> None:
    """Reload the page once everything was sent, and return the order."""
    await expect(stranger.locator("[data-order]:not([aria-busy])")).to_have_count(1)
    await stranger.reload()
    assert await stranger.evaluate(PLACES) == expected


async def test_entries_fill_in_without_reload_and_typing_is_left_alone(
    stranger: Page, web: Site
) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    web.pages["/slow"] = held(gate, page(b"<title>Came later &amp; alone</title>"), reached)
    web.pages["/typed"] = held(gate, page(b"<title>Theirs</title>"), asyncio.Event())
    await _start(stranger, web.url("/slow"), web.url("/typed"))
    await reached.wait()
    await stranger.evaluate("window.same = true")
    await expect(stranger.locator(".entry-waiting")).to_have_count(2)
    typed = stranger.locator("[data-entry]").nth(1)
    await typed.locator("summary").click()
    await typed.get_by_label("Title").fill("My own words")

    gate.set()

    await expect(stranger.locator(".entry-title").first).to_have_text("Came later & alone")
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)
    assert await stranger.evaluate("window.same")
    await expect(typed.get_by_label("Title")).to_have_value("My own words")
    await typed.get_by_role("button", name="Save").click()
    await expect(stranger.locator(".entry-title").nth(1)).to_have_text("My own words")


async def test_order_by_keyboard_by_button_and_by_drag(stranger: Page, web: Site) -> None:
    await _start(stranger, web.url("/one"), web.url("/two"), web.url("/three"))
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)
    entries = stranger.locator("[data-entry]")

    await entries.nth(2).locator("summary").focus()
    await stranger.keyboard.press("Alt+ArrowUp")
    await expect(stranger.locator("#list-said")).to_have_text("Moved to position 2 of 3")
    await stranger.keyboard.press("Alt+ArrowUp")
    assert await stranger.evaluate(PLACES) == ["/three", "/one", "/two"]
    await expect(entries.first.locator("summary")).to_be_focused()
    await _kept(stranger, ["/three", "/one", "/two"])

    await entries.first.get_by_role("button", name="Move down").click()
    await expect(entries.first.locator(".address-tail")).to_have_text("/one")
    await _kept(stranger, ["/one", "/three", "/two"])

    await (
        entries.nth(2)
        .locator("[data-grip]")
        .drag_to(entries.first, target_position={"x": 200, "y": 3})
    )
    assert await stranger.evaluate(PLACES) == ["/two", "/one", "/three"]
    await _kept(stranger, ["/two", "/one", "/three"])


async def test_a_name_is_judged_as_it_is_typed_and_the_list_published(
    stranger: Page, web: Site
) -> None:
    web.pages["/one"] = page(b"<title>First</title>")
    await _start(stranger, web.url("/one"), web.url("/two"))
    await expect(stranger.locator(".entry-title").first).to_have_text("First")
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)
    name, state = stranger.locator("[data-slug]"), stranger.locator("#slug-state")

    await stranger.locator("#publish summary").click()
    await name.press_sequentially("ad")
    await expect(state).to_contain_text("3 to 40 characters")
    await name.press_sequentially("min")
    await expect(state).to_contain_text("is reserved")
    await name.fill("")
    await name.press_sequentially("My Reading_List!")
    await expect(name).to_have_value("my-reading-list")
    await expect(state).to_contain_text("is available")

    await stranger.locator("#publish .confirm-panel button").click()
    await expect(stranger.locator("dialog#share")).to_be_visible()
    await stranger.goto("/my-reading-list")
    await expect(stranger.get_by_role("link", name="First")).to_have_attribute(
        "href", "/my-reading-list/1"
    )
    await stranger.get_by_role("button", name="Open all").click()
    both = {
        web.url("/one"),
        web.url("/two"),
    }  # they open at once, and which of them is told of first is the browser's business
    await eventually(lambda: both <= {opened.url for opened in stranger.context.pages})


async def test_stale_answers_about_names_are_dropped(stranger: Page, web: Site) -> None:
    """A late response to an earlier check is ignored: the state belongs to the current text."""
    await _start(stranger, web.url("/one"))
    first = asyncio.Event()

    async def slow(route: object) -> None:
        await first.wait()
        await route.continue_()  # type: ignore[attr-defined]

    await stranger.route("**/availability?slug=admin&*", slow)
    await stranger.locator("#publish summary").click()
    name, state = stranger.locator("[data-slug]"), stranger.locator("#slug-state")
    async with stranger.expect_request("**/availability?slug=admin&*") as earlier:
        await name.fill("admin")
    await name.fill("a-free-name")
    await expect(state).to_contain_text("is available")
    first.set()
    if late := await (await earlier.value).response():  # none if the page has given it up
        await late.finished()
    await stranger.evaluate("() => new Promise((done) => setTimeout(done))")

    await expect(state).to_contain_text("“a-free-name” is available")
    await stranger.unroute_all(behavior="ignoreErrors")


async def _tab_to(stranger: Page, what: str) -> None:
    """Move the focus by Tab; the focused element must be visible."""
    for _ in range(60):
        await stranger.keyboard.press("Tab")
        if await stranger.evaluate("(what) => document.activeElement.matches(what)", what):
            assert await stranger.evaluate(
                "document.activeElement.checkVisibility({ visibilityProperty: true,"
                " opacityProperty: true })"
            )
            return
    raise AssertionError(f"{what} is never reached by Tab")


async def _move_and_rename_the_last(stranger: Page) -> None:
    press = stranger.keyboard.press
    await _tab_to(stranger, "[data-entry]:nth-child(3) summary")
    await press("Alt+ArrowUp")
    await press("Alt+ArrowUp")
    await expect(stranger.locator("#list-said")).to_have_text("Moved to position 1 of 3")
    await press("Enter")  # the entry that has the focus is edited in place
    await _tab_to(stranger, "[data-entry]:first-child input[name=title]")
    await press("Control+a")
    await stranger.keyboard.type("Mine to name")
    await press("Enter")
    await expect(stranger.locator(".entry-title").first).to_have_text("Mine to name")


async def test_from_the_start_page_to_a_published_list_by_keyboard_alone(
    stranger: Page, web: Site
) -> None:
    for place in ("/one", "/two", "/three"):
        web.pages[place] = page(f"<title>Page {place}</title>".encode())
    web.pages["/favicon.ico"] = page(b"", kind="image/x-icon")
    press, write, entries = (
        stranger.keyboard.press,
        stranger.keyboard.type,
        stranger.locator("[data-entry]"),
    )
    await stranger.goto("/")
    await _tab_to(stranger, "textarea[name=urls]")
    await write(f"{web.url('/one')}\n{web.url('/two')}")
    await _tab_to(stranger, "form[action='/app/lists'] button")
    await press("Enter")
    await expect(entries).to_have_count(2)

    await _tab_to(stranger, "#add textarea")
    await write(web.url("/three"))
    await _tab_to(stranger, "#add button")
    await press("Enter")
    await expect(entries).to_have_count(3)
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)
    await stranger.reload()

    await _move_and_rename_the_last(stranger)
    await _tab_to(stranger, "#about input[name=title]")
    await write("By keyboard alone")
    await press("Enter")
    await expect(stranger.get_by_role("heading", level=1)).to_have_text("By keyboard alone")

    await _tab_to(stranger, "#publish summary")
    await press("Enter")
    await _tab_to(stranger, "[data-slug]")
    await write("by-keyboard")
    await expect(stranger.locator("#slug-state")).to_contain_text("is available")
    await _tab_to(stranger, "#publish .confirm-panel button")
    await press("Enter")
    await expect(stranger.locator("dialog#share")).to_be_visible()

    await _tab_to(stranger, "#share .share-url")
    await press("Enter")
    await expect(stranger).to_have_url(re.compile("/by-keyboard$"))
    await expect(stranger.locator(".list-page-link")).to_have_text(
        ["Mine to name", "Page /one", "Page /two"]
    )
    await _tab_to(stranger, ".list-page-link")
    await press("Enter")
    await expect(stranger).to_have_url(web.url("/three"))


async def test_the_preview_follows_every_change(stranger: Page, web: Site) -> None:
    web.pages["/one"] = page(b"<title>First</title>")
    await _start(stranger, web.url("/one"), web.url("/two"))
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)
    shown = stranger.frame_locator("[data-preview]")
    await expect(shown.locator(".list-page-link").first).to_have_text("First")

    await stranger.get_by_label("Title optional").fill("Weekend")
    await expect(shown.get_by_role("heading", level=1)).to_have_text("Weekend")
    await stranger.get_by_label("Waves").check()
    await expect(shown.locator(".list-page-cover")).to_be_visible()
    await stranger.get_by_label("Compact").check()
    await expect(shown.locator(".list-page-compact")).to_have_count(1)
    await stranger.get_by_label("Plum").check()
    await expect(shown.locator("html[data-palette=plum]")).to_have_count(1)
    await stranger.locator("[data-entry] [data-move='1']").first.click()
    await expect(shown.locator(".list-page-link").nth(1)).to_have_text("First")
    await expect(stranger.locator("[data-autosave-state=details]")).to_have_text("Saved")


async def test_headings_are_added_dragged_and_removed_with_undo(stranger: Page, web: Site) -> None:
    await _start(stranger, web.url("/one"), web.url("/two"))
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)
    await stranger.get_by_label("Add section").fill("Later")
    await stranger.get_by_role("button", name="Add section").click()
    items = stranger.locator("[data-item]")
    await expect(items.nth(2)).to_contain_text("Later")
    await stranger.evaluate("scrollTo(0, 0)")  # the page has jumped to the new heading

    await (
        items.nth(2)
        .locator("[data-grip]")
        .drag_to(items.nth(1), target_position={"x": 200, "y": 3})
    )
    await expect(items.nth(1)).to_contain_text("Later")
    await expect(stranger.locator("[data-order]:not([aria-busy])")).to_have_count(1)
    await stranger.reload()
    await expect(items.nth(1)).to_contain_text("Later")
    shown = stranger.frame_locator("[data-preview]")
    await expect(shown.get_by_role("heading", level=2)).to_have_text("Later")

    await stranger.get_by_role("button", name="Remove Later").click()
    await expect(items).to_have_count(2)
    await stranger.get_by_role("button", name="Undo").click()
    await expect(items.nth(1)).to_contain_text("Later")


async def test_rows_are_dense_and_publish_is_in_sight(stranger: Page, web: Site) -> None:
    await stranger.set_viewport_size({"width": 1280, "height": 800})
    web.pages["/one"] = page(b"<title>First</title>")
    web.pages["/two"] = page(b"<title>Second</title>")
    await _start(stranger, web.url("/one"), web.url("/two"))
    await expect(stranger.locator("#waiting[hx-trigger]")).to_have_count(0)

    heights = await stranger.evaluate(
        "[...document.querySelectorAll('[data-entry]')].map((row) => row.offsetHeight)"
    )
    publish = await stranger.locator("#publish summary").bounding_box()

    assert all(52 <= height <= 64 for height in heights), heights
    assert publish is not None
    assert publish["y"] + publish["height"] < 800


async def test_another_url_is_fetched_and_a_failed_one_again(stranger: Page, web: Site) -> None:
    web.pages["/two"] = page(b"<title>Second</title>")
    await _start(stranger, web.url("/one"))
    first = stranger.locator("[data-entry]").first
    again = first.get_by_role("button", name="Fetch details again")
    await expect(again).to_be_visible()

    web.pages["/one"] = page(b"<title>Up again</title>")
    await again.click()
    await expect(first.locator(".entry-title")).to_have_text("Up again")
    await first.locator("summary").click()
    await first.get_by_label("URL").fill(web.url("/two"))
    await first.get_by_role("button", name="Save").click()
    await expect(first.locator(".entry-title")).to_have_text("Second")


async def test_on_a_phone_the_preview_takes_the_place_of_the_form(
    stranger: Page, web: Site
) -> None:
    await stranger.set_viewport_size({"width": 390, "height": 800})
    await _start(stranger, web.url("/one"))
    toggle = stranger.locator("[data-preview-toggle]")
    await expect(stranger.locator("[data-preview]")).to_be_hidden()

    await toggle.click()
    await expect(stranger.locator("[data-preview]")).to_be_visible()
    await expect(stranger.locator("#about")).to_be_hidden()
    await expect(toggle).to_have_text("Edit")
    await toggle.click()
    await expect(stranger.locator("#about")).to_be_visible()


async def test_a_public_list_prints_on_one_page_without_buttons(stranger: Page, web: Site) -> None:
    web.pages["/one"] = page(b"<title>First</title>")
    await _start(stranger, web.url("/one"))
    await expect(stranger.locator(".entry-title").first).to_have_text("First")
    await stranger.locator("#publish summary").click()
    await stranger.locator("[data-slug]").fill("to-print")
    await stranger.locator("#publish .confirm-panel button").click()
    await expect(stranger.locator("dialog#share")).to_be_visible()
    await expect(stranger.locator("#embed-code")).to_contain_text("/to-print?embed")
    await stranger.goto("/to-print")

    printed = await stranger.pdf(format="A4")
    await stranger.emulate_media(media="print")

    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert await stranger.locator("button:visible, .public-head:visible").count() == 0
    await expect(stranger.get_by_role("heading", level=1)).to_be_visible()
    await expect(stranger.locator(".list-page-link")).to_be_visible()
