"""Stories on a real server: by mouse, by keyboard alone and without scripts."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.browser.visiting import PAYLOADS, Visit, silent, site, visit
from tests.waiting import PATIENCE

__all__ = ["silent", "site", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="session")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


async def test_the_first_link_takes_two_actions_after_signing_in(visit: Visit) -> None:
    """Paste (the field has the focus), Enter: the link is there, to be copied."""
    await visit.page.goto("/")
    await visit.page.keyboard.insert_text("https://example.com/a/long/way?to=go")
    await visit.page.keyboard.press("Enter")

    await expect(visit.page.locator(".created")).to_contain_text(
        "Destination: example.com/a/long/way?to=go"
    )
    await expect(visit.page.locator(".created").get_by_role("button", name="Copy")).to_be_visible()


async def test_a_missing_go_link_is_created_where_it_is_missed(visit: Visit) -> None:
    answer = await visit.page.goto("/jira")
    visit.complaints.clear()  # browsers report the status of the page itself
    assert answer is not None
    assert answer.status == 404
    await visit.page.get_by_label("Destination URL").fill(f"{visit.site.url}/health?issue={{1}}")
    await visit.page.get_by_role("button", name="Create /jira").click()
    await expect(visit.page.locator("#field-destination-error")).to_contain_text(
        "already a Refract link"
    )  # no loops
    visit.complaints.clear()
    await visit.page.get_by_label("Destination URL").fill("https://issues.example.com/browse/{1}")
    await visit.page.get_by_role("button", name="Create link").click()

    await expect(visit.page.locator(".short-url")).to_contain_text("/jira")
    await visit.page.locator("#try-path").fill("PROJ-1")
    await expect(visit.page.locator("#try-out")).to_contain_text("issues.example.com/browse/PROJ-1")


async def test_rename_in_the_drawer_disable_and_undo(visit: Visit) -> None:
    await visit.page.goto("/app/links")
    await visit.page.keyboard.press("j")
    await visit.page.keyboard.press("e")
    title = visit.page.locator("#drawer").get_by_label("Title")
    await title.fill("Issue tracker")
    await visit.page.locator("#drawer").get_by_role("button", name="Save").click()
    await expect(visit.page.locator("#toasts")).to_contain_text("Saved changes to /jira")
    await expect(visit.page.locator("[data-row]").first).to_contain_text("Issue tracker")
    await visit.page.locator("[data-row-open]").first.click()
    await expect(visit.page.locator(".link-says")).to_contain_text("Issue tracker")

    await visit.page.get_by_label("More actions for /jira").click()
    await visit.page.get_by_role("button", name="Disable").click()
    await expect(visit.page.locator(".link-title")).to_contain_text("Disabled")
    await visit.page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(visit.page.locator(".link-title")).not_to_contain_text("Disabled")


async def test_names_owners_and_history_on_the_page_of_a_link(visit: Visit) -> None:
    tabs = visit.page.get_by_role("navigation", name="This link")
    await tabs.get_by_role("link", name="Settings").click()
    await visit.page.get_by_label("Add a name").fill("jira")
    await expect(visit.page.locator("#name-state")).to_contain_text("in use")
    await visit.page.get_by_label("Add a name").fill("tickets")
    await expect(visit.page.locator("#name-state")).to_contain_text("is available")
    await visit.page.locator("#names").get_by_role("button", name="Add").click()
    await expect(visit.page.locator("#names")).to_contain_text("/tickets")

    await tabs.get_by_role("link", name="People").click()
    await visit.page.get_by_label("Co-owner’s email").fill("nobody@example.com")
    await visit.page.locator("#owners").get_by_role("button", name="Invite").click()
    await expect(visit.page.locator("#wrong-owner")).to_be_visible()
    await expect(visit.page.get_by_label("Co-owner’s email")).to_have_value("nobody@example.com")
    visit.complaints.clear()  # the answer's status, which is the refusal

    await tabs.get_by_role("link", name="History").click()
    await (
        visit.page.locator("#history")
        .get_by_role("button", name="Restore this version")
        .last.click()
    )
    await expect(visit.page.locator("#toasts")).to_contain_text("Restored version 1")
    await expect(visit.page.locator(".link-says")).to_have_count(0)


async def test_delete_by_keyboard_and_take_it_back(visit: Visit) -> None:
    await visit.page.goto("/app/links")
    await visit.page.keyboard.press("j")
    await visit.page.keyboard.type("x")
    await expect(visit.page.locator("[data-bulk-bar]")).to_contain_text("1 selected")
    await visit.page.keyboard.type("#")
    await expect(visit.page.locator("#toasts")).to_contain_text("Deleted 1 link")
    await expect(visit.page.locator("[data-row]")).to_have_count(1)
    await visit.page.locator("#toasts").get_by_role("button", name="Undo").last.click()
    await expect(visit.page.locator("[data-row]")).to_have_count(2)


async def test_the_omnibox_finds_opens_and_commands(visit: Visit) -> None:
    await visit.page.keyboard.press("/")
    await visit.page.keyboard.type("tick")
    await expect(visit.page.locator(".omnibox-option").first).to_contain_text("Search for “tick”")
    await expect(visit.page.locator(".omnibox-option").nth(1)).to_contain_text("/tickets")
    await visit.page.locator("#omnibox").fill("keys")
    await expect(visit.page.locator(".omnibox-option").nth(1)).to_contain_text("API keys")
    await visit.page.keyboard.press("ArrowDown")
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(re.compile("/app/settings#keys-section"))


async def test_a_link_that_is_off_says_so_and_leads_its_owner_to_it(visit: Visit) -> None:
    link = (
        await visit.ask(
            "POST", "/api/v1/links", destination="https://example.com/", names=["off-now"]
        )
    ).json()
    assert (await visit.ask("POST", f"/api/v1/links/{link['id']}/disable")).status_code == 200
    answer = await visit.page.goto("/off-now")
    visit.complaints.clear()  # browsers report the status of the page itself
    assert answer is not None
    assert answer.status == 410
    await visit.page.get_by_role("link", name="Manage link").click()
    await expect(visit.page).to_have_url(re.compile(f"/app/links/{link['id']}"))
    await visit.page.get_by_role("button", name="Enable").click()
    await visit.page.goto("/off-now+")
    await expect(visit.page.get_by_role("link", name="Manage")).to_be_visible()
    await visit.page.goto("/app/settings")


async def test_a_key_is_made_shown_once_and_revoked(visit: Visit) -> None:
    await visit.page.get_by_label("Name", exact=True).fill("Story")
    await visit.page.get_by_role("button", name="Create key").click()
    key = await visit.page.locator("#new-key").inner_text()
    assert (await visit.ask("GET", "/api/v1/me", key=key)).status_code == 200

    await visit.page.goto("/app/settings")
    assert key not in await visit.page.content()
    await visit.page.locator("#keys-section .key").get_by_text("Revoke").first.click()
    await visit.page.get_by_role("button", name="Revoke key").click()
    await expect(visit.page.locator("#keys-section .key")).to_contain_text("Revoked")
    assert (await visit.ask("GET", "/api/v1/me", key=key)).status_code == 401


async def test_a_click_ticks_on_the_page_of_its_link_without_reload(visit: Visit) -> None:
    link = (
        await visit.ask(
            "POST", "/api/v1/links", destination="https://example.com/watched", names=["watched"]
        )
    ).json()
    await visit.page.goto(f"/app/links/{link['id']}")
    await visit.page.evaluate("window.same = true")
    people = visit.page.locator("[data-live-period]")
    await expect(visit.page.locator("[data-live-state]")).to_have_class(re.compile("live-on"))
    await expect(people).to_have_text("0")
    for count in ("1", "2"):
        async with httpx.AsyncClient(
            base_url=visit.site.url, headers={"User-Agent": FIREFOX}, timeout=PATIENCE
        ) as somebody:
            assert (await somebody.get("/watched")).headers[
                "location"
            ] == "https://example.com/watched"
        await expect(people).to_have_text(count)
        await expect(visit.page.locator("[data-chart]")).to_have_attribute(
            "data-chart", re.compile(f", ?{count}]")
        )
    assert await visit.page.evaluate("window.same")
    await visit.page.goto("/app/settings")


async def test_a_filtered_chart_is_saved_as_png_and_svg(visit: Visit) -> None:
    made = await visit.ask(
        "POST", "/api/v1/links", destination="https://example.com/charted", names=["charted"]
    )
    async with httpx.AsyncClient(
        base_url=visit.site.url, headers={"User-Agent": FIREFOX}, timeout=PATIENCE
    ) as somebody:
        assert (await somebody.get("/charted")).status_code == 302
    page = visit.page
    await page.goto(f"/app/links/{made.json()['id']}?range=7d")
    await page.get_by_role("tab", name="Browsers").click()
    await page.get_by_role("link", name="Firefox").click()
    await expect(page.locator(".chip-filter")).to_contain_text("Firefox")
    await expect(page.locator("[data-live-period], .figure-value").first).to_have_text("1")
    for role, name, first in (
        ("button", "Chart as PNG", b"\x89PNG"),
        ("link", "Chart as SVG", b"<svg"),
    ):
        async with page.expect_download() as saved:
            await page.get_by_role(role, name=name).click()  # type: ignore[arg-type]
        picture = await (await saved.value).path()
        assert (await asyncio.to_thread(picture.read_bytes)).startswith(first)
    await page.goto("/app/settings")


async def _hostile_list_and_item(visit: Visit, number: int, payload: str) -> str:
    item = await visit.ask("POST", "/api/v1/items", text=f"{payload} {number}", enrich=False)
    assert item.status_code == 201, item.text
    drafted = (await visit.ask("POST", "/api/v1/lists", title=payload, description=payload)).json()
    urls = [f"https://example.com/{number}?{payload}"]
    assert (
        await visit.ask("POST", f"/api/v1/lists/{drafted['id']}/entries", urls=urls)
    ).status_code < 300
    published = await visit.ask(
        "POST", f"/api/v1/lists/{drafted['id']}/publish", slug=f"hostile-{number}"
    )
    assert published.status_code == 200, published.text
    return str(drafted["id"])


async def test_nothing_that_people_type_ever_runs(visit: Visit) -> None:
    lists = []
    for number, payload in enumerate(PAYLOADS):
        typed: dict[str, Any] = {
            "title": payload,
            "notes": payload,
            "names": [f"x{number}"],
            "tags": ["Tag"],
        }
        made = await visit.ask(
            "POST",
            "/api/v1/links",
            destination=f"https://example.com/{number}?{payload}#{payload}",
            **typed,
        )
        assert made.status_code == 201, made.text
        assert (await visit.ask("POST", "/api/v1/keys", name=payload)).status_code == 201
        lists.append(await _hostile_list_and_item(visit, number, payload))
    links = (await visit.ask("GET", "/api/v1/links")).json()["items"]
    items = (await visit.ask("GET", "/api/v1/library")).json()["items"]
    pages = [
        "/",
        "/app/links",
        "/app/tags",
        "/app/settings",
        "/app/links?q=" + PAYLOADS[0],
        "/x0+",
        "/app/links/new?destination=" + PAYLOADS[1],
    ]
    pages += [
        "/app/lists",
        f"/app/lists/{lists[0]}",
        "/app/library",
        "/app/tags/mine",
        "/app/search?q=window",
        "/hostile-0",
        "/hostile-4",
    ]
    pages += [f"/app/library/{item['id']}" for item in items[:2]]
    pages += [f"/app/links/{link['id']}" for link in links[:3]] + [
        f"/app/links/{links[0]['id']}/edit"
    ]
    for path in pages:
        await visit.page.goto(path)
        assert await visit.page.evaluate("window.ran") is None, path
    await visit.page.goto("/app/settings")
    for payload in PAYLOADS:
        await visit.page.locator("#omnibox").fill(payload)
        await expect(visit.page.locator(".omnibox-option").first).to_contain_text(payload)
    await visit.page.locator("#omnibox").fill("window")
    await expect(visit.page.locator(".omnibox-option").nth(2)).to_be_visible()
    assert await visit.page.evaluate("window.ran") is None


async def test_everything_works_without_script(chromium: Browser, visit: Visit) -> None:
    context = await chromium.new_context(base_url=visit.site.url, java_script_enabled=False)
    await context.add_cookies(await visit.context.cookies())  # type: ignore[arg-type]
    page = await context.new_page()
    await page.goto("/app/links/new")
    await page.get_by_label("Destination URL").fill("https://example.com/plain/form")
    await page.get_by_role("textbox", name="Name optional").fill("plain-form")
    await page.get_by_role("button", name="Create link").click()
    await expect(page.locator("#toasts")).to_contain_text("Created /plain-form")

    await page.goto("/app/links")
    await page.get_by_role("searchbox", name="Search links").fill("plain")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.locator("[data-row]")).to_have_count(1)
    await page.get_by_label("Select /plain-form").check()
    await page.get_by_role("button", name="Disable").click()
    await expect(page.locator("[data-row]")).to_contain_text("Disabled")
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator("[data-row]")).not_to_contain_text("Disabled")
    await page.locator("#omnibox").fill("#Tag")
    await page.get_by_role("button", name="Go").click()
    await expect(page.locator("[data-row]")).to_have_count(len(PAYLOADS))
    await context.close()


async def test_browsers_get_a_keyword_with_suggestions_and_an_app_to_install(visit: Visit) -> None:
    await visit.page.goto("/")
    described = await visit.page.locator("link[rel=search]").get_attribute("href")
    xml = await visit.ask("GET", described or "", stranger=True)
    assert f'template="{visit.site.url}/app/go?q={{searchTerms}}"' in xml.text
    assert (await visit.ask("GET", "/app/suggest?q=tick")).json()[1] == ["tickets"]
    assert (await visit.ask("GET", "/app/suggest?q=tick", stranger=True)).json()[
        1
    ] == []  # of public ones alone
    assert (await visit.ask("GET", "/app/go?q=go/tickets PROJ-7")).headers[
        "location"
    ] == "/tickets/PROJ-7"
    manifest = (await visit.ask("GET", "/manifest.webmanifest", stranger=True)).json()
    for icon in manifest["icons"]:
        assert (await visit.ask("GET", icon["src"], stranger=True)).status_code == 200
    shared = await visit.ask(
        "GET", f"{manifest['share_target']['action']}?text=Look https://example.com/s"
    )
    assert "destination=https%3A%2F%2Fexample.com%2Fs" in shared.text
