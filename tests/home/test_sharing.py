"""What other programs hand over: phones put an address anywhere."""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.home.sharing import Shared, read
from tests import make
from tests.client import by_cookie, on_sqlite

PAGE = "https://example.com/a"
LONG = f"{'Something that was said at length. ' * 8}{PAGE}"


@pytest.mark.parametrize(
    ("url", "text", "title", "meant"),
    [
        (PAGE, "", "A page", Shared(PAGE, PAGE)),
        ("", PAGE, "", Shared(PAGE, PAGE)),
        ("", f"A page {PAGE}", "", Shared(PAGE, PAGE)),
        ("", "", f"A page {PAGE}", Shared(PAGE, PAGE)),
        ("", LONG, "", Shared(LONG, PAGE)),
        ("", "A thought.", "", Shared("A thought.", None)),
        ("", "", "A title alone", Shared("A title alone", None)),
        ("", "HTTPS://EXAMPLE.COM", "", Shared("HTTPS://EXAMPLE.COM", "HTTPS://EXAMPLE.COM")),
        ("", "", "", Shared("", None)),
    ],
)
def test_what_was_handed_over_is_understood(url: str, text: str, title: str, meant: Shared) -> None:
    assert read(url, text, title) == meant


@on_sqlite
async def test_it_is_shown_and_nothing_happens_until_somebody_says_so(rt: Runtime, client: AsyncClient) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    shown = await client.get("/app/share", headers=browser, params={"url": PAGE, "title": '"><script>alert(1)</script>'})

    assert shown.status_code == 200
    assert PAGE in shown.text
    assert "/app/links/new?destination=https%3A%2F%2Fexample.com%2Fa" in shown.text
    assert "<script>alert" not in shown.text
    assert (await client.get("/api/v1/items/pending", headers=browser)).json()["items"] == []
    saved = await client.post("/app/items", headers=browser, data={"text": PAGE})
    assert saved.status_code == 303
    assert [item["url"] for item in (await client.get("/api/v1/items/pending", headers=browser)).json()["items"]] == [PAGE]
