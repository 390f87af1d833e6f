"""A newcomer's walk through the whole product, on a desktop and on a phone.

Each step starts where the one before has ended. None of the hesitations may return that the first
walk had:

- the answer to an action was off the screen, under a bar, or missing (every step ends in `_see`)
- no field had the focus on the first page, so a URL could not be pasted at once
- a phone hid the only button of the form behind its bar
- a link with a placeholder did not show where a path leads
- publishing lost the title that had just been typed
- the command line printed a sign-in link to another port than that of the server
- claiming lists, saving and revoking said nothing
- an item could not be saved while its page was being fetched
- a new key was below the fold, without a way to copy it
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.lists.pages_server import Site, page, site
from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE, eventually
from tools.servers import free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
ARTICLE = b"""<!doctype html><html lang="en"><title>Engines that rest</title>
<meta name="description" content="Why an engine should be switched off at night.">
<article><h1>Engines that rest</h1><p>An engine that runs all night burns fuel for nobody. Switch
it off, and it will be cold in the morning, but it will still be there in ten years.</p>
<p>Most engines fail in the hour after a start. So start them slowly.</p></article>"""
BOOKMARKS = b"""<!DOCTYPE NETSCAPE-Bookmark-file-1>
<DL><p>
<DT><A HREF="https://example.com/one" TAGS="moved">One</A>
<DT><A HREF="https://example.com/two" TAGS="moved">Two</A>
</DL><p>"""
# Visible in the window, and not behind a bar or a dialog.
SEEN = """(element) => {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  if (top < 0 || left < 0 || top >= innerHeight || right > innerWidth + 0.5) return false;
  const y = Math.min((top + bottom) / 2, innerHeight - 1);
  const shown = document.elementFromPoint((left + right) / 2, y);
  return shown !== null && (element.contains(shown) || shown.contains(element));
}"""


@dataclass
class Newcomer:
    """A browser, the server that it uses, and the directory of that server."""

    tab: Page
    served: Served
    data: Path
    web: Site
    has_keyboard: bool

    async def submit(self, button: Locator) -> None:
        """Scroll to a button unless it can be seen, and press it."""
        await expect(button).to_be_visible()
        if not await button.evaluate(SEEN):
            await button.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
        await _see(button)
        await button.click()

    async def sign_in(self, link: str) -> None:
        await self.tab.goto(link)
        await self.submit(self.tab.get_by_role("button", name="Sign in"))


async def _see(answer: Locator) -> None:
    """Expect an answer where a person sees it."""
    await expect(answer).to_be_visible()
    await eventually(lambda: answer.evaluate(SEEN), pause=0.1)


async def _see_toast(tab: Page, words: str) -> None:
    toast = tab.locator("#toasts [data-toast]", has_text=words).last
    await _see(toast)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def served(data: Path) -> Iterator[Served]:
    port = free_port()
    settings = {
        "REFRACT_FETCH_ALLOW": "127.0.0.1/32",
        "REFRACT_BASE_URL": f"http://localhost:{port}",
        "REFRACT_ANONYMOUS_NAMES": "true",
    }
    with serving(data, port=port, **settings) as here:
        here.url = settings["REFRACT_BASE_URL"]
        yield here


@pytest_asyncio.fixture(params=["desktop", "phone"], loop_scope="session")
async def newcomer(
    request: pytest.FixtureRequest, chromium: Browser, served: Served, data: Path
) -> AsyncIterator[Newcomer]:
    phone = request.param == "phone"
    context = await chromium.new_context(
        base_url=served.url,
        viewport={"width": 390, "height": 844} if phone else {"width": 1280, "height": 800},
        has_touch=phone,
        is_mobile=phone,
        reduced_motion="reduce",
    )
    tab = await context.new_page()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on(
        "console",
        lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None,
    )
    async with site() as web:
        web.pages["/engines"] = page(ARTICLE)
        yield Newcomer(tab, served, data, web, not phone)
    assert complaints == []
    await context.close()


async def test_the_walk_of_a_newcomer(newcomer: Newcomer) -> None:
    await newcomer.sign_in(newcomer.served.signin_link)
    await _create_first_link(newcomer)
    await _see_its_statistics(newcomer)
    await _create_go_link(newcomer)
    await _publish_list_without_account(newcomer)
    await _claim_it(newcomer)
    await _save_and_review(newcomer)
    await _import_bookmarks(newcomer)
    await _create_key(newcomer)


async def _create_first_link(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    destination = tab.get_by_label("Destination URL")
    await expect(destination).to_be_focused()
    await tab.keyboard.insert_text("https://example.com/a/long/way?to=go")
    await tab.keyboard.press("Enter")
    created = tab.locator(".created")
    await _see(created)
    await _see(created.get_by_role("button", name="Copy"))


async def _see_its_statistics(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    short_url = await tab.locator(".created-url").get_attribute("href")
    assert short_url is not None
    row = tab.locator("[data-row-open]").first
    await newcomer.submit(row)
    clicks = tab.locator("[data-live-period]")
    await _see(clicks)
    await expect(clicks).to_have_text("0")
    await expect(tab.locator("[data-live-state]")).to_have_class(re.compile("live-on"))
    async with httpx.AsyncClient(headers={"User-Agent": FIREFOX}, timeout=PATIENCE) as somebody:
        assert (await somebody.get(short_url)).status_code == 302
    await expect(clicks).to_have_text("1")
    chart = tab.locator("[data-chart]").first
    await chart.scroll_into_view_if_needed()
    await _see(chart)


async def _create_go_link(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    await tab.goto("/app/links/new")
    await tab.get_by_label("Destination URL").fill("https://issues.example.com/browse/{1=open}")
    await tab.get_by_role("textbox", name="Name optional").fill("jira")
    await expect(tab.locator("#name-state")).to_contain_text("is available")
    await newcomer.submit(tab.get_by_role("button", name="Create link"))
    await _see_toast(tab, "/jira")
    path = tab.locator("#try-path")
    await path.scroll_into_view_if_needed()
    await path.fill("PROJ-1")
    leads_to = tab.locator("#try-out")
    await expect(leads_to).to_contain_text("issues.example.com/browse/PROJ-1")
    await _see(leads_to)


async def _publish_list_without_account(newcomer: Newcomer) -> None:
    tab, web = newcomer.tab, newcomer.web
    await tab.goto("/app/settings")
    await _sign_out(newcomer)
    await tab.goto("/")
    await tab.locator("#hero-urls").fill(f"{web.url('/engines')}\nhttps://example.com/two")
    await newcomer.submit(tab.get_by_role("button", name="Create list"))
    await expect(tab.locator("[data-entry]")).to_have_count(2)
    await expect(tab.locator(".entry-title").first).to_have_text("Engines that rest")
    await tab.locator("#about input[name=title]").fill("Typed just before")
    await newcomer.submit(tab.locator("#publish summary"))
    await tab.locator("[data-slug]").fill("my-engines")
    await expect(tab.locator("#slug-state")).to_contain_text("is available")
    await newcomer.submit(tab.locator("#publish .confirm-panel button"))
    share = tab.locator("dialog#share")
    await _see(share)
    await _see(share.get_by_role("button", name="Copy").first)
    async with httpx.AsyncClient(base_url=newcomer.served.url, timeout=PATIENCE) as somebody:
        shown = (await somebody.get("/my-engines")).text
    assert "Typed just before" in shown


async def _sign_out(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    await tab.locator(".menu summary").first.click()
    await newcomer.submit(tab.get_by_role("button", name="Sign out", exact=True))
    await _see(tab.get_by_role("heading", level=1))


async def _claim_it(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    printed = refract("signin-link", "--data-dir", str(newcomer.data)).stdout.strip()
    assert printed.startswith(newcomer.served.url)
    await newcomer.sign_in(printed)
    offer = tab.get_by_role("form", name="Your lists on this device")
    await _see(offer)
    await expect(offer).to_contain_text("Typed just before")
    await newcomer.submit(offer.get_by_role("button", name="Add to my account"))
    await _see_toast(tab, "Added 1 list to your account")
    await _see(tab.get_by_role("link", name="Typed just before").first)


async def _save_and_review(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    await tab.goto("/app/library")
    box = tab.locator("main [data-key=n]")
    await box.fill(newcomer.web.url("/engines"))
    await box.press("Enter")
    await _see_toast(tab, "1 item to review")
    await tab.goto("/app/review")
    await expect(tab.locator("[data-deck-form]").get_by_label("Title")).to_have_value(
        "Engines that rest"
    )
    await newcomer.submit(tab.locator("[data-confirm]"))
    await _see(tab.get_by_role("heading", name="You’re all caught up"))
    await _see_toast(tab, "Engines that rest")


async def _import_bookmarks(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    await tab.goto("/app/library")
    await newcomer.submit(tab.get_by_role("link", name="Import"))
    await tab.wait_for_load_state()
    await tab.locator("#field-file").set_input_files(
        {"name": "moving.html", "mimeType": "text/html", "buffer": BOOKMARKS}
    )
    await newcomer.submit(tab.get_by_role("button", name="Preview import"))
    await expect(tab.locator("#trial")).to_contain_text("2 to import, 0 duplicates")
    await _see(tab.locator("#trial"))
    await newcomer.submit(tab.get_by_role("button", name="Import", exact=True))
    progress = tab.locator("#progress")
    await expect(progress).to_contain_text("2 of 2")
    await _see(progress)


async def _create_key(newcomer: Newcomer) -> None:
    tab = newcomer.tab
    await tab.goto("/app/settings#keys-section")
    await tab.get_by_label("Name", exact=True).fill("First script")
    await newcomer.submit(tab.get_by_role("button", name="Create key"))
    dialog = tab.get_by_role("dialog", name="API key created")
    await _see(dialog.locator("#new-key"))
    await expect(dialog.get_by_role("button", name="Copy")).to_be_focused()
    key = await dialog.locator("#new-key").inner_text()
    async with httpx.AsyncClient(base_url=newcomer.served.url, timeout=PATIENCE) as script:
        answer = await script.get("/api/v1/links", headers={"X-API-Key": key})
    assert len(answer.json()["items"]) == 2
