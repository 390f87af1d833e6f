"""The share target: phones put the URL into any field."""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.home.browser_integration import SharedContent, parse_shared
from tests import make
from tests.client import by_cookie, on_sqlite

PAGE = "https://example.com/a"
LONG = f"{'Something that was said at length. ' * 8}{PAGE}"


@pytest.mark.parametrize(
    ("url", "text", "title", "meant"),
    [
        (PAGE, "", "A page", SharedContent(PAGE, PAGE)),
        ("", PAGE, "", SharedContent(PAGE, PAGE)),
        ("", f"A page {PAGE}", "", SharedContent(PAGE, PAGE)),
        ("", "", f"A page {PAGE}", SharedContent(PAGE, PAGE)),
        ("", LONG, "", SharedContent(LONG, PAGE)),
        ("", "A thought.", "", SharedContent("A thought.", None)),
        ("", "", "A title alone", SharedContent("A title alone", None)),
        (
            "",
            "HTTPS://EXAMPLE.COM",
            "",
            SharedContent("HTTPS://EXAMPLE.COM", "HTTPS://EXAMPLE.COM"),
        ),
        ("", "", "", SharedContent("", None)),
    ],
)
def test_what_was_handed_over_is_understood(
    url: str, text: str, title: str, meant: SharedContent
) -> None:
    assert parse_shared(url, text, title) == meant


@on_sqlite
async def test_it_is_shown_and_nothing_happens_until_somebody_says_so(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    shown = await client.get(
        "/app/share", headers=browser, params={"url": PAGE, "title": '"><script>alert(1)</script>'}
    )

    assert shown.status_code == 200
    assert PAGE in shown.text
    assert "/app/links/new?destination=https%3A%2F%2Fexample.com%2Fa" in shown.text
    assert "<script>alert" not in shown.text
    assert (await client.get("/api/v1/items/pending", headers=browser)).json()["items"] == []
    saved = await client.post("/app/items", headers=browser, data={"text": PAGE})
    assert saved.status_code == 303
    assert [
        item["url"]
        for item in (await client.get("/api/v1/items/pending", headers=browser)).json()["items"]
    ] == [PAGE]
