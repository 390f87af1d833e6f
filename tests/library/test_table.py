"""The library as a list: selection, sorting, density, and one box that searches and saves."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import AsyncClient, Response

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.models import ItemStatus
from refract.library.schemas import ItemOut
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.library.conftest import Look, Save

BULK = "/app/library/bulk"
TITLE = re.compile(r"data-row-open>(.*?)</a>")


@pytest.fixture
async def browser(rt: Runtime, ada: User, client: AsyncClient) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_cookie(rt, await make.cookie(session, rt, ada)))
    client.headers["Accept"] = "text/html"
    return client


async def _act(browser: AsyncClient, act: str, *items: ItemOut, **form: str) -> Response:
    data = {"act": act, "ids": [str(item.id) for item in items], **form}
    return await browser.post(BULK, data=data)


async def _say(browser: AsyncClient, response: Response) -> str:
    """Return the toast of the next page."""
    cookies = f"{browser.headers['Cookie']}; {response.headers['set-cookie'].partition(';')[0]}"
    page = (await browser.get("/app/library", headers={"Cookie": cookies})).text
    return page.partition('id="toasts"')[2].partition("</section>")[0]


async def test_selected_items_are_tagged_untagged_and_that_is_undone(
    rt: Runtime, browser: AsyncClient, save: Save, look: Look
) -> None:
    one = await save("One thought.", enrich=False, new_tags=["old"])
    two = await save("Two thoughts.", enrich=False)
    tagged = await _act(browser, "tag", one, two, tag=" New ")
    assert tagged.status_code == 303
    assert "Tagged 2 items" in await _say(browser, tagged)
    assert [tag.name for tag in (await look(one)).tags] == ["New", "old"]
    assert [tag.name for tag in (await look(two)).tags] == ["New"]

    again = await _act(browser, "tag", one, two, tag="new")
    assert "The selected items already have this tag." in await _say(browser, again)

    removed = await _act(browser, "untag", one, two, tag="OLD")
    assert "Removed the tag from 1 item" in await _say(browser, removed)
    assert [tag.name for tag in (await look(one)).tags] == ["New"]
    undo = f"/app/library/undo?ids={one.id}"
    assert undo in await _say(browser, removed)
    assert (await browser.post(undo)).status_code == 303
    assert [tag.name for tag in (await look(one)).tags] == ["New", "old"]
    none = await _act(browser, "untag", one, tag="unknown")
    assert "None of the selected items has this tag." in await _say(browser, none)


async def test_selected_items_are_discarded_and_restored(
    browser: AsyncClient, save: Save, look: Look, clock: ManualClock
) -> None:
    items = [await save(f"Thought {number}.", enrich=False, new_tags=["x"]) for number in range(3)]
    gone = await _act(browser, "discard", *items)
    assert "Discarded 3 items" in await _say(browser, gone)
    assert {(await look(item)).status for item in items} == {ItemStatus.DISCARDED}
    undo = f"/app/library/undo?ids={items[0].id},{items[1].id}"
    assert "Restored 2 items" in await _say(browser, await browser.post(undo))
    back = await _act(browser, "restore", items[2], items[0])
    said = await _say(browser, back)
    assert "Restored 1 item" in said
    assert "1 failed" in said
    for item in items:
        assert [tag.name for tag in (await look(item)).tags] == ["x"]
        assert (await look(item)).status == ItemStatus.ARCHIVED


async def test_items_of_others_are_not_changed(
    browser: AsyncClient, save: Save, bob: User, rt: Runtime
) -> None:
    theirs = await save("A thought of Bob.", by=bob, enrich=False)
    refused = await _act(browser, "discard", theirs)
    assert "not found" in (await _say(browser, refused)).lower()
    added = await _act(browser, "list", theirs)
    assert "Select items that have a URL." in await _say(browser, added)


@on_sqlite
async def test_what_is_missing_is_said(browser: AsyncClient, save: Save) -> None:
    item = await save("A thought.", enrich=False)
    assert "Select at least one item." in await _say(browser, await _act(browser, "discard"))
    assert "Choose an action." in await _say(browser, await _act(browser, "paint", item))
    assert "Enter a tag." in await _say(browser, await _act(browser, "tag", item, tag=" "))
    wrong = await _act(browser, "tag", item, tag="a<b")
    assert "invisible characters" in await _say(browser, wrong)
    long = await _act(browser, "tag", item, tag="x" * 60)
    assert "50" in await _say(browser, long)


@on_sqlite
async def test_urls_of_selected_items_go_to_a_list(browser: AsyncClient, save: Save) -> None:
    one = await save("https://example.com/one", enrich=False)
    note = await save("A note.", enrich=False)
    two = await save("https://example.com/two?a=1&b=2", enrich=False)
    answer = await _act(browser, "list", two, note, one)
    target = urlsplit(answer.headers["location"])
    urls = ["https://example.com/two?a=1&b=2", "https://example.com/one"]
    assert (answer.status_code, target.path, parse_qs(target.query)["url"]) == (
        303,
        "/app/lists/add",
        urls,
    )
    by_script = await browser.post(
        BULK, data={"act": "list", "ids": [str(one.id)]}, headers={"HX-Request": "true"}
    )
    assert (by_script.status_code, by_script.headers["HX-Redirect"]) == (
        204,
        "/app/lists/add?url=https%3A%2F%2Fexample.com%2Fone",
    )
    page = (await browser.get(answer.headers["location"])).text
    assert "https://example.com/two?a=1&amp;b=2\nhttps://example.com/one</textarea>" in page
    added = await browser.post("/app/lists/add", data={"url": "\n".join(urls), "title": "Both"})
    shown = (await browser.get(added.headers["location"])).text
    assert [url.replace("&", "&amp;") in shown for url in urls] == [True, True]


@on_sqlite
async def test_the_notes_have_no_url_for_a_list(browser: AsyncClient, save: Save) -> None:
    note = await save("A note.", enrich=False)
    assert "Select items that have a URL." in await _say(browser, await _act(browser, "list", note))


async def test_the_oldest_come_first_page_by_page(
    browser: AsyncClient, save: Save, clock: ManualClock
) -> None:
    for number in range(27):
        await save(f"Thought {number:02}", enrich=False)
        clock.advance(number % 2)  # some at the same time
    newest = TITLE.findall((await browser.get("/app/library")).text)
    first = (await browser.get("/app/library?sort=oldest")).text
    onward = re.search(r'href="(/app/library\?[^"]*cursor=[^"]*)"', first)
    assert onward is not None
    second = (await browser.get(onward[1].replace("&amp;", "&"))).text
    assert newest == [f"Thought {number:02}" for number in range(26, 1, -1)]
    both = TITLE.findall(first) + TITLE.findall(second)
    assert both == [f"Thought {number:02}" for number in range(27)]
    assert "25 of 27" in first
    api = (await browser.get("/api/v1/library?sort=oldest&limit=2")).json()
    assert [item["title"] or item["text"] for item in api["items"]] == both[:2]


@on_sqlite
async def test_density_is_remembered(browser: AsyncClient, save: Save) -> None:
    await save("A thought.", enrich=False)
    assert "item-list-compact" in (await browser.get("/app/library")).text
    chosen = await browser.post("/app/library/display", data={"density": "comfortable"})
    assert chosen.status_code == 303
    assert "item-list-comfortable" in (await browser.get("/app/library")).text
    assert (await browser.post("/app/library/display", data={"density": "x"})).status_code == 422


@on_sqlite
async def test_one_box_searches_and_saves_without_script(browser: AsyncClient, save: Save) -> None:
    await save("The quick brown fox.", enrich=False)
    page = (await browser.get("/app/library?q=fox&sort=oldest")).text
    main = page.partition("<main")[2]
    assert main.count("<textarea") == 1
    assert 'type="search"' not in main
    assert ">fox</textarea>" in main
    assert "quick brown <mark>fox</mark>" in main
    box = main.partition("data-library-box")[2].partition("</form>")[0]
    assert 'name="sort" value="oldest"' in box
    assert box.index('formmethod="get"') < box.index("data-save"), "Enter searches"
    assert 'type="hidden" name="csrf"' not in box, "no token in the URL of a search"
    saved = await browser.post(
        "/app/items",
        data={"q": "https://example.com/kept"},
        headers={"Referer": f"{browser.base_url}/app/library?q=https"},
    )
    assert (saved.status_code, saved.headers["location"]) == (303, "/app/library")
    empty = await browser.post("/app/items", data={"q": " "})
    assert (empty.status_code, "capture-error" in empty.text) == (422, True)


@on_sqlite
async def test_several_tags_are_chosen_and_put_away(browser: AsyncClient, save: Save) -> None:
    await save("Both.", enrich=False, new_tags=["a", "b"])
    await save("Only one.", enrich=False, new_tags=["a"])
    page = (await browser.get("/app/library?tag=a&tag=b")).text
    assert TITLE.findall(page) == ["Both."]
    assert 'href="/app/library?tag=b"' in page
    assert 'href="/app/library?tag=a"' in page


@on_sqlite
async def test_an_edited_item_leads_back_to_the_list(browser: AsyncClient, save: Save) -> None:
    item = await save("A thought.", enrich=False)
    path = f"/app/library/{item.id}"
    for page in ("/app/library?tag=x", path):
        done = await browser.post(
            path, data={"title": "Changed"}, headers={"Referer": f"{browser.base_url}{page}"}
        )
        assert (done.status_code, done.headers["location"]) == (303, page)
