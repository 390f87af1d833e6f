"""Forms of the library, without script: imports, their progress and undo; tag rules."""

import pytest
from httpx import AsyncClient, Response
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.payloads import RollBackImport, RunImport
from refract.library.imports.jobs import roll_back_import, run_import
from refract.library.imports.service import MAX_PREVIEW_ROWS
from refract.library.models import Item
from refract.library.schemas import MAX_RULES
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.library.imports.test_formats import SAMPLES

IMPORTS, RULES = "/app/library/imports", "/app/tags/rules"


@pytest.fixture
async def browser(rt: Runtime, ada: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}


async def upload(
    client: AsyncClient, browser: dict[str, str], content: bytes, **fields: str
) -> Response:
    return await client.post(
        IMPORTS,
        headers=browser,
        files={"file": ("bookmarks.html", content, "text/html")},
        data=fields,
    )


async def count(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(Item)) or 0


@on_sqlite
async def test_bookmarks_are_tried_out_brought_watched_and_taken_back(
    rt: Runtime, client: AsyncClient, browser: dict[str, str]
) -> None:
    content = (SAMPLES / "chrome.html").read_bytes()
    tried = await upload(client, browser, content, try_out="true")
    assert (tried.status_code, await count(rt)) == (200, 0)
    assert "Nothing has been imported yet" in tried.text
    assert "javascript" in tried.text, "what would not come is told"

    begun = await upload(client, browser, content)
    assert begun.status_code == 303
    page = begun.headers["location"]
    running = await client.get(page, headers=browser)
    assert (
        "Running" in running.text,
        "0 of 5" in running.text,
        "hx-refresh" in running.headers,
    ) == (True, True, False)
    await run_import(rt, RunImport(import_id=int(page.rpartition("/")[2])))
    done = await client.get(page, headers=browser | {"HX-Request": "true"})
    assert (
        "Done" in done.text,
        "5 of 5" in done.text,
        done.headers["hx-refresh"],
        await count(rt),
    ) == (True, True, "true", 4)
    refused = await client.get(page, headers=browser, params={"outcome": "REFUSED"})
    assert ("bookmark 3" in refused.text, "bookmark 1<" in refused.text) == (True, False)
    assert "bookmarks.html" in (await client.get(IMPORTS, headers=browser)).text

    assert (await client.post(f"{page}/rollback", headers=browser)).status_code == 303
    assert "Undoing…" in (await client.get(page, headers=browser)).text
    await roll_back_import(rt, RollBackImport(import_id=int(page.rpartition("/")[2])))
    assert ("Undone" in (await client.get(page, headers=browser)).text, await count(rt)) == (
        True,
        0,
    )
    again = await client.post(f"{page}/rollback", headers=browser)
    assert again.status_code == 303, "twice is once, and says so"


@on_sqlite
async def test_a_trial_tells_of_what_would_not_come_however_late_in_the_file(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    rows = [
        f'<DT><A HREF="https://example.com/{number}">About {number}</A>'
        for number in range(MAX_PREVIEW_ROWS)
    ]
    rows.append('<DT><A HREF="javascript:void(0)">The last one</A>')
    tried = await upload(
        client,
        browser,
        "\n".join(["<!DOCTYPE NETSCAPE-Bookmark-file-1>", *rows]).encode(),
        try_out="true",
    )
    assert (tried.status_code, "The last one" in tried.text, "About 0" in tried.text) == (
        200,
        True,
        False,
    )


@on_sqlite
async def test_an_import_is_stopped_from_its_page(
    rt: Runtime, client: AsyncClient, browser: dict[str, str]
) -> None:
    page = (await upload(client, browser, (SAMPLES / "chrome.html").read_bytes())).headers[
        "location"
    ]
    assert (await client.post(f"{page}/stop", headers=browser)).status_code == 303
    await run_import(rt, RunImport(import_id=int(page.rpartition("/")[2])))
    assert ("Stopped" in (await client.get(page, headers=browser)).text, await count(rt)) == (
        True,
        0,
    )


@on_sqlite
@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02", b"Dear diary,\nnothing in here is an address.\n"]
)
async def test_a_file_that_is_none_is_refused_with_a_word(
    rt: Runtime, client: AsyncClient, browser: dict[str, str], content: bytes
) -> None:
    refused = await upload(client, browser, content)
    assert (refused.status_code, "field-error" in refused.text, await count(rt)) == (422, True, 0)


@on_sqlite
async def test_no_file_at_all_is_asked_for(client: AsyncClient, browser: dict[str, str]) -> None:
    for fields in (
        {"files": {"file": ("", b"", "application/octet-stream")}},
        {"data": {"kind": "auto"}},
    ):
        nothing = await client.post(IMPORTS, headers=browser, **fields)
        assert (nothing.status_code, "Choose a file" in nothing.text) == (422, True)


@on_sqlite
async def test_what_is_discarded_lies_there_and_comes_back(
    rt: Runtime, client: AsyncClient, browser: dict[str, str], clock: ManualClock
) -> None:
    made = await client.post(
        "/api/v1/items", headers=browser, json={"text": "A thought about steam.", "enrich": False}
    )
    item = f"/app/library/{made.json()['id']}"
    away = {"discarded": "true"}
    assert (
        "No discarded items"
        in (await client.get("/app/library", headers=browser, params=away)).text
    )
    assert (await client.post(f"{item}/discard", headers=browser)).status_code == 303
    assert "about steam" not in (await client.get("/app/library", headers=browser)).text
    assert "about steam" in (await client.get("/app/library", headers=browser, params=away)).text
    assert "Restore" in (await client.get(item, headers=browser)).text

    undo = f"/app/items/{made.json()['id']}/undo"
    assert (await client.post(undo, headers=browser)).status_code == 303
    assert "about steam" in (await client.get("/app/library", headers=browser)).text
    assert (await client.post(f"{item}/discard", headers=browser)).status_code == 303
    clock.advance(25 * 3600)
    late = await client.post(undo, headers=browser)
    assert (late.status_code, late.headers["location"]) == (303, item)
    assert "about steam" not in (await client.get("/app/library", headers=browser)).text


@on_sqlite
async def test_a_tag_that_is_too_long_is_refused_beside_its_field(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    made = await client.post(
        "/api/v1/items", headers=browser, json={"text": "A note about steam.", "enrich": False}
    )
    refused = await client.post(
        f"/app/library/{made.json()['id']}", headers=browser, data={"tags": "x" * 201}
    )
    error = refused.text.partition('id="item-tags-error"')[2].partition("</p>")[0]
    assert (refused.status_code, "Enter at most 200 characters." in error) == (422, True)


@on_sqlite
async def test_pages_messages_and_rows_are_in_the_language_of_the_browser(
    rt: Runtime, client: AsyncClient, browser: dict[str, str]
) -> None:
    german = browser | {"Accept-Language": "de"}
    assert ">Bibliothek</h1>" in (await client.get("/app/library", headers=german)).text
    saved = await client.post(
        "/app/items", headers=german, data={"text": "Dampf.", "plain": "true"}
    )
    cookies = f"{german['Cookie']}; {saved.headers['set-cookie'].partition(';')[0]}"
    shown = await client.get("/app/library", headers=german | {"Cookie": cookies})
    assert "1 Eintrag gespeichert" in shown.text
    tried = await upload(client, german, (SAMPLES / "chrome.html").read_bytes(), try_out="true")
    assert "Lesezeichen 3" in tried.text
    assert "Nur http- und https-Links werden unterstützt, nicht javascript:." in tried.text
    empty = await upload(client, german, b"")
    assert "Die Datei ist leer." in empty.text


@on_sqlite
async def test_rules_are_added_joined_and_removed(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    for pattern, tags in (
        ("https://www.GitHub.com/", "code"),
        ("github.com", "Code, tools"),
        ('"espresso"', "coffee"),
    ):
        assert (
            await client.post(RULES, headers=browser, data={"pattern": pattern, "tags": tags})
        ).status_code == 303
    rules = (await client.get("/api/v1/me/tag-rules", headers=browser)).json()["items"]
    assert rules == [
        {"pattern": "github.com", "tags": ["code", "tools"]},
        {"pattern": '"espresso"', "tags": ["coffee"]},
    ]

    page = (await client.get(RULES, headers=browser)).text
    first = page.partition(f'action="{RULES}/')[2].partition("/delete")[0]
    assert (await client.post(f"{RULES}/{first}/delete", headers=browser)).status_code == 303
    assert [
        rule["pattern"]
        for rule in (await client.get("/api/v1/me/tag-rules", headers=browser)).json()["items"]
    ] == ['"espresso"']
    assert (await client.post(f"{RULES}/{first}/delete", headers=browser)).status_code == 404


@on_sqlite
@pytest.mark.parametrize(
    ("pattern", "tags", "said"),
    [
        ("nonsense", "code", "enter a domain"),
        ("", "code", "Enter a domain"),
        ("github.com", " , ", "Enter 1 to 10 tags"),
        ("github.com", "a<b", "tag"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused_with_what_was_typed(
    client: AsyncClient, browser: dict[str, str], pattern: str, tags: str, said: str
) -> None:
    refused = await client.post(RULES, headers=browser, data={"pattern": pattern, "tags": tags})
    assert (refused.status_code, said in refused.text, "field-error" in refused.text) == (
        422,
        True,
        True,
    )
    assert pattern in refused.text
    assert (await client.get("/api/v1/me/tag-rules", headers=browser)).json()["items"] == []


@on_sqlite
async def test_rules_have_an_end(client: AsyncClient, browser: dict[str, str]) -> None:
    full = {
        "items": [
            {"pattern": f"{number}.example.com", "tags": ["a"]} for number in range(MAX_RULES)
        ]
    }
    assert (await client.put("/api/v1/me/tag-rules", headers=browser, json=full)).status_code == 200
    refused = await client.post(
        RULES, headers=browser, data={"pattern": "github.com", "tags": "code"}
    )
    assert (refused.status_code, f"{MAX_RULES} rules" in refused.text) == (422, True)
    joined = await client.post(
        RULES, headers=browser, data={"pattern": "1.example.com", "tags": "b"}
    )
    assert joined.status_code == 303


@on_sqlite
async def test_an_address_with_no_id_in_it_is_nobodys(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    for path in (
        "/app/library/nonsense",
        "/app/library/imports/nonsense",
        "/app/links/nonsense",
        "/app/lists/nonsense",
    ):
        answer = await client.get(path, headers=browser)
        assert (answer.status_code, "Page not found" in answer.text) == (404, True), path
    assert (await client.get("/api/v1/items/nonsense", headers=browser)).status_code == 422
