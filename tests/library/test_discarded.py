"""Discarded items are restored or erased at any time; an undo leaves nothing behind."""

from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.jobs.worker import JobWorker
from refract.library.models import Item, SavedPage
from refract.library.service.storage import get_usage, measure_usage
from refract.tags.models import Tag
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.library.conftest import Look, Save
from tests.library.http import Site, page

HTML = {"Accept": "text/html"}


async def test_a_discarded_item_is_restored_as_it_was_within_a_day_and_later(
    as_ada: AsyncClient, clock: ManualClock, save: Save, look: Look
) -> None:
    saved, waiting = await save("Saved before", new_tags=["Kept"]), await save("Never saved")
    await as_ada.post(f"/api/v1/items/{saved.id}/confirm", json={})
    for item in (saved, waiting):
        assert (await as_ada.post(f"/api/v1/items/{item.id}/discard")).status_code == 200
    clock.advance(2 * 86_400)
    late = await as_ada.post(f"/api/v1/items/{saved.id}/undo")
    assert (late.status_code, late.json()["code"]) == (409, "NOTHING_TO_UNDO")

    for item in (saved, waiting):
        assert (await as_ada.post(f"/api/v1/items/{item.id}/restore")).status_code == 200

    assert (await look(saved)).status == "ARCHIVED"
    assert [tag.name for tag in (await look(saved)).tags] == ["Kept"]
    assert (await look(waiting)).status in ("ENRICHING", "READY_TO_CONFIRM")
    again = await as_ada.post(f"/api/v1/items/{saved.id}/restore")
    assert (again.status_code, again.json()["code"]) == (409, "INVALID_STATE_TRANSITION")


async def test_a_discarded_item_is_erased_for_good(
    rt: Runtime, ada: User, as_ada: AsyncClient, save: Save
) -> None:
    item = await save("Words that must go")
    refused = await as_ada.post(f"/api/v1/items/{item.id}/erase")
    assert (refused.status_code, refused.json()["code"]) == (409, "INVALID_STATE_TRANSITION")
    await as_ada.post(f"/api/v1/items/{item.id}/discard")

    assert (await as_ada.post(f"/api/v1/items/{item.id}/erase")).status_code == 204

    assert (await as_ada.get(f"/api/v1/items/{item.id}")).status_code == 404
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(Item)) == 0
        assert (await get_usage(session, ada.id)).items == 0


@on_sqlite
async def test_the_page_of_a_discarded_item_offers_what_works(
    rt: Runtime, ada: User, as_ada: AsyncClient, client: AsyncClient, save: Save
) -> None:
    item = await save("On the page")
    await as_ada.post(f"/api/v1/items/{item.id}/discard")
    async with rt.db.write() as session:
        me = by_cookie(rt, await make.cookie(session, rt, ada)) | HTML
    shown = (await client.get(f"/app/library/{item.id}", headers=me)).text
    assert f"/app/library/{item.id}/restore" in shown
    assert f"/app/library/{item.id}/erase" in shown
    assert f'action="/app/library/{item.id}"' not in shown

    restored = await client.post(f"/app/library/{item.id}/restore", headers=me)

    assert restored.status_code == 303
    await as_ada.post(f"/api/v1/items/{item.id}/discard")
    erased = await client.post(f"/app/library/{item.id}/erase", headers=me)
    assert erased.headers["location"] == "/app/library?discarded=true"


async def test_undoing_a_confirmation_removes_the_tags_that_it_made(
    rt: Runtime, as_ada: AsyncClient, clock: ManualClock, save: Save
) -> None:
    older = await save("Older", new_tags=["Before"])
    item = await save("Confirmed with tags")
    clock.advance(5)
    await as_ada.post(
        f"/api/v1/items/{item.id}/confirm", json={"new_tags": ["Before", "Made here"]}
    )

    assert (await as_ada.post(f"/api/v1/items/{item.id}/undo")).status_code == 200

    async with rt.db.read() as session:
        names = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
    assert names == {"Before": 1}
    assert older.id


async def test_an_item_need_not_wait_for_its_page_to_be_saved(
    as_ada: AsyncClient, save: Save, work: JobWorker, look: Look
) -> None:
    item = await save("https://unreachable.invalid/page")

    answer = await as_ada.post(f"/api/v1/items/{item.id}/confirm", json={"title": "Mine"})

    assert (answer.status_code, answer.json()["status"]) == (200, "ARCHIVED")
    await work.run_due_jobs()
    assert ((await look(item)).status, (await look(item)).title) == ("ARCHIVED", "Mine")


async def test_another_text_drops_the_page_of_the_old_one(
    rt: Runtime, ada: User, as_ada: AsyncClient, save: Save, work: JobWorker, site: Site
) -> None:
    site.pages["/engines"] = page("Engines", "Separate condensers save coal. " * 20)
    item = await save(site.url("/engines"))
    await work.run_due_jobs()
    async with rt.db.read() as session:
        assert await session.get(SavedPage, item.id) is not None

    await as_ada.patch(f"/api/v1/items/{item.id}", json={"text": "A thought of my own"})

    async with rt.db.read() as session:
        assert await session.get(SavedPage, item.id) is None
        assert await get_usage(session, ada.id) == await measure_usage(session, ada.id)
    found = await as_ada.get("/api/v1/library?q=condensers")
    assert found.json()["items"] == []


@on_sqlite
async def test_items_and_links_know_each_other(
    rt: Runtime, ada: User, client: AsyncClient, save: Save
) -> None:
    url = "https://example.com/both"
    item = await save(url)
    async with rt.db.write() as session:
        me = by_cookie(rt, await make.cookie(session, rt, ada)) | HTML
        link = await make.link(session, rt, ada, url, name="both-ways")
        other = await make.link(session, rt, ada, "https://example.com/elsewhere", name="other")

    assert (
        f'href="/app/links/{link.id}">/both-ways'
        in (await client.get(f"/app/library/{item.id}", headers=me)).text
    )
    on_link = (await client.get(f"/app/links/{link.id}", headers=me)).text
    assert f'href="/app/library/{item.id}">' in on_link
    elsewhere = (await client.get(f"/app/links/{other.id}", headers=me)).text
    assert "Save to library" in elsewhere
    assert "In your library" not in elsewhere
