"""The table of links: filters, saved views, display and export."""

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, on_sqlite

pytestmark = on_sqlite


@pytest.fixture
async def as_ada(client: AsyncClient, rt: Runtime, ada: User) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_cookie(rt, await make.cookie(session, rt, ada)))
    return client


async def _make(rt: Runtime, owner: User, *names: str, **given: Any) -> None:
    async with rt.db.write() as session:
        for name in names:
            await make.link(session, rt, owner, name=name, **given)


async def _page(client: AsyncClient, query: str = "") -> str:
    answer = await client.get(f"/app/links{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_only_exceptional_states_have_a_chip(
    as_ada: AsyncClient, rt: Runtime, ada: User
) -> None:
    await _make(rt, ada, "one")
    assert "state-active" not in await _page(as_ada)
    link = (await as_ada.get("/api/v1/links")).json()["items"][0]
    await as_ada.post(f"/api/v1/links/{link['id']}/disable")
    assert "state-disabled" in await _page(as_ada)


async def test_the_head_sorts_and_says_by_what(as_ada: AsyncClient, rt: Runtime, ada: User) -> None:
    await _make(rt, ada, "one")
    page = await _page(as_ada, "?q=one&sort=clicks")
    head = page[page.index("<thead") : page.index("</thead>")]
    assert head.count("aria-sort") == 1
    assert 'class="cell-number" aria-sort="descending"' in head
    assert 'href="/app/links?q=one"' in head


async def test_how_many_of_how_many(as_ada: AsyncClient, rt: Runtime, ada: User) -> None:
    await _make(rt, ada, *(f"link-{number}" for number in range(27)))
    assert "25 of 27" in await _page(as_ada)
    assert "11 links" in await _page(as_ada, "?q=link-1")


async def test_links_are_filtered_by_days_of_the_browser(
    as_ada: AsyncClient, rt: Runtime, ada: User, clock: ManualClock
) -> None:
    await _make(rt, ada, "early")
    clock.advance(timedelta(days=3).total_seconds())
    await _make(rt, ada, "late")
    day = clock.now().date()

    found = await _page(as_ada, f"?since={day - timedelta(days=1)}&until={day + timedelta(days=1)}")
    assert "/late<" in found
    assert "/early<" not in found
    assert "/early<" in await _page(as_ada, f"?until={day - timedelta(days=1)}")
    assert "/early<" in await _page(as_ada, "?since=not-a-day")


async def test_density_and_columns_are_remembered(
    as_ada: AsyncClient, rt: Runtime, ada: User
) -> None:
    await _make(rt, ada, "one")
    assert "table-compact" in await _page(as_ada)
    form = {"density": "comfortable", "column": ["updated", "tags", "unknown"]}
    assert (await as_ada.post("/app/links/display", data=form)).status_code == 303

    page = await _page(as_ada)
    assert "table-comfortable" in page
    head = page[page.index("<thead") : page.index("</thead>")]
    assert "Updated" in head
    assert "Clicks" not in head
    assert (await as_ada.get("/api/v1/me")).json()["preferences"]["locale"] is None


async def test_views_are_saved_renamed_deleted_and_restored(
    as_ada: AsyncClient, rt: Runtime, ada: User
) -> None:
    await _make(rt, ada, "one")
    made = await as_ada.post(
        "/app/links/views", data={"name": "  My <b>  view ", "query": "q=one&tag=x&evil=1"}
    )
    assert made.headers["location"] == "/app/links?q=one&tag=x"
    shown = '<a class="menu-item" href="/app/links?q=one&amp;tag=x"'
    page = await _page(as_ada)
    assert shown in page
    assert "My &lt;b&gt; view" in page

    rename = {"name": "My <b> view", "new_name": "Mine"}
    await as_ada.post("/app/links/views/rename", data=rename)
    assert "My &lt;b&gt; view<" not in (await _page(as_ada)).replace("“", "")
    await as_ada.post("/app/links/views/delete", data={"name": "Mine"})
    page = await _page(as_ada)
    assert shown not in page
    kept = {"name": "Mine", "query": "q=one&tag=x"}
    await as_ada.post("/app/links/views/restore", params=kept)
    assert shown in await _page(as_ada)
    await as_ada.post("/app/links/views", data={"name": " ", "query": "q=nameless"})
    assert "q=nameless" not in await _page(as_ada)


async def test_the_links_of_a_filter_are_exported(
    as_ada: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    await _make(rt, ada, "a-one", "a-two", tags=["x"], title="=1+1")
    await _make(rt, bob, "b-one", visibility="public", notes="for bob")

    answer = await as_ada.get("/app/links/export?format=csv&tag=x&q=two")
    assert answer.headers["content-disposition"] == 'attachment; filename="links.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["names"], row["title"], row["owners"]) == ("a-two", "'=1+1", ada.email)

    found = json.loads((await as_ada.get("/app/links/export?format=json&owner=public")).text)
    (link,) = found["links"]
    assert link["names"] == ["b-one"]
    assert (link["owners"], link["clicks"], link["notes"]) == ([], None, None)
    assert len(json.loads((await as_ada.get("/app/links/export?format=json")).text)["links"]) == 2
