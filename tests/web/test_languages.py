"""The language of a page: the user's preference, then the browser's. The API is English."""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.enums import FlagReason
from tests import make
from tests.client import by_cookie, on_sqlite


@pytest.fixture
async def ada(rt: Runtime) -> User:
    async with rt.db.write() as session:
        return await make.person(session, rt)


GERMAN = {"Accept": "text/html", "Accept-Language": "de-AT, en;q=0.5"}


@on_sqlite
async def test_a_stranger_reads_the_language_of_the_browser(client: AsyncClient) -> None:
    answer = await client.get("/", headers=GERMAN)

    assert '<html lang="de" dir="ltr"' in answer.text
    assert "Zum Inhalt springen" in answer.text
    assert answer.headers["Content-Language"] == "de"
    assert "Accept-Language" in answer.headers["Vary"]


@on_sqlite
async def test_a_browser_that_asks_for_nothing_reads_english(client: AsyncClient) -> None:
    answer = await client.get("/", headers={"Accept": "text/html"})

    assert '<html lang="en" dir="ltr"' in answer.text
    assert 'id="messages"' not in answer.text


@on_sqlite
async def test_a_preference_wins_and_can_be_taken_back(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | GERMAN
    profile = {"time_zone": "UTC", "language": "en"}

    saved = await client.post(
        "/app/settings/profile", headers=browser, data=profile | {"locale": "zh-Hans"}
    )
    assert saved.status_code == 303
    chinese = await client.get("/", headers=browser)
    assert (chinese.headers["Content-Language"], "跳到正文" in chinese.text) == ("zh-Hans", True)
    assert (await client.get("/api/v1/me", headers=browser)).json()["preferences"][
        "locale"
    ] == "zh-Hans"

    await client.post("/app/settings/profile", headers=browser, data=profile)
    assert (await client.get("/", headers=browser)).headers["Content-Language"] == "zh-Hans", (
        "a form without the field leaves it alone"
    )

    await client.patch("/api/v1/me", headers=browser, json={"preferences": {"locale": None}})
    assert (await client.get("/", headers=browser)).headers["Content-Language"] == "de"

    await client.patch("/api/v1/me", headers=browser, json={"preferences": {"locale": "en"}})
    await client.post(
        "/app/settings/profile", headers=browser, data=profile | {"locale": "browser"}
    )
    assert (await client.get("/", headers=browser)).headers["Content-Language"] == "de", (
        "the form offers it too: as an empty value it was lost"
    )


@on_sqlite
async def test_a_language_that_does_not_exist_is_refused(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | GERMAN

    page = await client.post(
        "/app/settings/profile",
        headers=browser,
        data={"locale": "tlh", "time_zone": "UTC", "language": "en"},
    )
    call = await client.patch(
        "/api/v1/me", headers=browser, json={"preferences": {"locale": "tlh"}}
    )

    assert (page.status_code, "field-error" in page.text) == (422, True)
    assert call.status_code == 422


@on_sqlite
@pytest.mark.parametrize("path", ["/", "/nothing-here", "/app/settings", "/auth/sign-in"])
async def test_every_kind_of_page_is_translated(client: AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=GERMAN)

    assert answer.headers["Content-Language"] == "de"
    assert "Anmelden" in answer.text


@on_sqlite
async def test_programs_read_english_whatever_they_accept(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept-Language": "de"}
    await client.patch("/api/v1/me", headers=browser, json={"preferences": {"locale": "de"}})

    answer = await client.post(
        "/api/v1/links", headers=browser, json={"destination": "https://example.com", "nonsense": 1}
    )

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"] == "This field is unknown. Remove it."
    assert "Content-Language" not in answer.headers
    assert "Vary" not in answer.headers


@on_sqlite
async def test_a_redirect_does_not_depend_on_the_language(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="roadmap")

    answer = await client.get("/roadmap", headers=GERMAN)

    assert answer.status_code == 302
    assert {"vary", "content-language"}.isdisjoint(answer.headers)


@on_sqlite
async def test_pages_of_links_and_lists_are_in_the_language_of_the_browser(
    client: AsyncClient,
) -> None:
    missing = await client.get("/nothing-here", headers=GERMAN)
    report = await client.get("/app/report", headers=GERMAN)
    lists = await client.get("/app/lists", headers=GERMAN)
    state = await client.get("/app/lists/availability?slug=books", headers=GERMAN)

    assert "<title>Seite nicht gefunden · Refract</title>" in missing.text
    assert '<span class="name">/nothing-here</span> gibt es nicht' in missing.text
    assert "Missbrauch melden" in report.text
    assert "Liste erstellen" in lists.text
    assert "„books“ ist verfügbar" in state.text


@on_sqlite
async def test_a_preference_holds_for_a_part_of_a_page(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | GERMAN
    await client.patch("/api/v1/me", headers=browser, json={"preferences": {"locale": "zh-Hans"}})

    state = await client.get("/app/lists/availability?slug=books", headers=browser)

    assert (state.headers["Content-Language"], "“books”可用" in state.text) == ("zh-Hans", True)


@on_sqlite
async def test_the_api_docs_are_kept_once_for_each_language(client: AsyncClient) -> None:
    german = await client.get("/api/docs", headers=GERMAN)
    english = await client.get("/api/docs", headers={"Accept": "text/html"})

    for answer, tag, heading in (
        (german, "de", ">Anleitungen</p>"),
        (english, "en", ">Guides</p>"),
    ):
        assert (answer.headers["Content-Language"], heading in answer.text) == (tag, True)
        assert "Accept-Language" in answer.headers["Vary"]
    assert german.headers["ETag"] != english.headers["ETag"]


@on_sqlite
async def test_a_warning_is_in_the_language_of_the_browser(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="odd")
        link.flagged, link.flag_reason = True, FlagReason.UNCHECKED

    page = await client.get("/odd", headers=GERMAN)

    assert "Diese URL wurde noch nicht geprüft." in page.text


@on_sqlite
async def test_a_form_error_is_in_the_language_of_the_page(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | GERMAN

    page = await client.post(
        "/app/links", headers=browser, data={"destination": "ftp://example.com/", "name": "-x"}
    )
    named = await client.post(
        "/app/links", headers=browser, data={"destination": "https://example.com/", "name": "-"}
    )

    assert page.status_code == named.status_code == 422
    assert "Nur URLs mit http:// und https:// werden unterstützt, nicht ftp:." in page.text
    assert (
        "Der Name „-“ ist ungültig: er muss mit einem Buchstaben oder einer Ziffer beginnen."
        in named.text
    )


@on_sqlite
async def test_an_error_page_is_in_the_language_of_the_page(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
    chinese = {"Accept-Language": "zh-CN"}

    page = await client.get("/app/links/1", headers=browser | chinese)
    call = await client.get("/api/v1/links/1", headers=browser | chinese)

    assert page.status_code == call.status_code == 404
    assert "页面不存在" in page.text
    assert "找不到链接。" in page.text
    assert call.json()["detail"] == "Link not found."


@on_sqlite
async def test_a_toast_about_an_error_is_in_the_language_of_the_page(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | GERMAN

    answer = await client.post("/app/admin/blocked-domains/example.com/remove", headers=browser)
    toast = answer.headers["Set-Cookie"].partition(";")[0]
    page = await client.get(
        "/app/admin/blocked-domains",
        headers=browser | {"Cookie": f"{browser['Cookie']}; {toast}"},
    )

    assert "Die Domain example.com ist nicht blockiert." in page.text
