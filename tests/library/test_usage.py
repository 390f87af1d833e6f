"""The storage of a library is limited.

The finding: items were unlimited, and a capture cost nothing but its request: one user could fill
the disk and the queue.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.imports.models import ImportSubject
from refract.imports.payloads import RunImport
from refract.imports.service import create_import, start_rollback
from refract.library.enrichment.types import ExtractedPage
from refract.library.imports.importer import add_import_rows
from refract.library.imports.jobs import run_import
from refract.library.imports.rollback import roll_back_batch
from refract.library.imports.rows import Bookmark
from refract.library.jobs import recount_usage
from refract.library.models import Item, LibraryUsage, SavedPage
from refract.library.payloads import RecountUsage
from refract.library.service import storage as service_storage
from refract.library.service.enrichment import store_page
from refract.library.service.storage import StorageUsage
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.conftest import make_settings

LIMITS: dict[str, Any] = {"captures_per_hour": 6, "items_per_person": 4, "storage_per_person": 1000}


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, **LIMITS)


@pytest.fixture
async def headers(rt: Runtime, ada: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada))


async def _save(
    client: AsyncClient, headers: dict[str, str], text: str = "x" * 100
) -> tuple[int, str]:
    answer = await client.post(
        "/api/v1/items", headers=headers, json={"text": text, "enrich": False}
    )
    return answer.status_code, answer.json().get("code", answer.json().get("id"))


async def _stored(rt: Runtime, user: User) -> StorageUsage:
    """Return the recorded usage, after a check that it is the measured one."""
    async with rt.db.read() as session:
        said, real = (
            await service_storage.get_usage(session, user.id),
            await service_storage.measure_usage(session, user.id),
        )
    assert said == real
    return said


async def test_items_are_counted_and_bounded_also_when_many_come_at_once(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], ada: User
) -> None:
    answers = await asyncio.gather(
        *(_save(client, headers, f"note {number}") for number in range(6))
    )

    assert sorted(status for status, _ in answers) == [201] * 4 + [409] * 2
    assert {code for status, code in answers if status == 409} == {"ITEM_LIMIT_REACHED"}
    assert (await _stored(rt, ada)).items == 4


async def test_captures_have_an_hour_and_administrators_none(
    rt: Runtime,
    client: AsyncClient,
    headers: dict[str, str],
    clock: ManualClock,
    ada: User,
    root: User,
) -> None:
    async with rt.db.write() as session:
        admin = by_key(await make.key(session, rt, root))
        for _ in range(5):  # earlier in this hour
            await service_storage.charge_capture(session, rt, ada)
            await service_storage.charge_capture(session, rt, root)

    assert (await _save(client, headers, "the sixth"))[0] == 201
    refused = await client.post(
        "/api/v1/items", headers=headers, json={"text": "late", "enrich": False}
    )
    assert (refused.status_code, refused.json()["code"]) == (429, "CAPTURE_LIMIT_REACHED")
    assert int(refused.headers["retry-after"]) > 0
    assert [(await _save(client, admin, f"n{number}"))[0] for number in range(4)] == [201] * 4
    clock.advance(3600)
    assert (await _save(client, headers))[0] == 201
    assert (await _stored(rt, ada)).items == 2


async def test_texts_that_grow_shrink_and_come_back_are_counted(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], ada: User
) -> None:
    _, number = await _save(client, headers, "x" * 900)
    longer = await client.patch(
        f"/api/v1/items/{number}", headers=headers, json={"text": "y" * 1001}
    )
    shorter = await client.patch(
        f"/api/v1/items/{number}", headers=headers, json={"text": "y" * 10}
    )

    assert (longer.status_code, longer.json()["code"], shorter.status_code) == (
        409,
        "STORAGE_LIMIT_REACHED",
        200,
    )
    assert await _stored(rt, ada) == StorageUsage(1, 10)
    assert (await client.post(f"/api/v1/items/{number}/undo", headers=headers)).status_code == 200
    assert await _stored(rt, ada) == StorageUsage(1, 900)
    told = (await client.get("/api/v1/me/usage", headers=headers)).json()
    assert told == {"items": 1, "items_limit": 4, "bytes": 900, "bytes_limit": 1000}


def _page(size: int) -> ExtractedPage:
    return ExtractedPage(url="https://example.com/", title="T", text="t" * size, html="h" * size)


async def test_a_page_that_does_not_fit_is_kept_without_its_words(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], ada: User
) -> None:
    _, number = await _save(client, headers, "https://example.com/")
    for size, kept in ((100, 200), (400, 800), (600, 0), (50, 100)):
        async with rt.db.write() as session:
            await store_page(session, rt, await session.get_one(Item, int(number)), _page(size))
        assert await _stored(rt, ada) == StorageUsage(1, 20 + kept)
        async with rt.db.read() as session:
            assert (await session.get_one(SavedPage, int(number))).title == "T"


async def test_an_import_counts_for_storage_only_and_stops_at_the_limit(
    rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        one = await create_import(session, rt, ada.id, "netscape", "b.html")
        rows = [
            Bookmark(f"bookmark {number}", f"https://example.com/{number}") for number in range(3)
        ]
        await add_import_rows(session, one, rows)
    await run_import(rt, RunImport(import_id=one.id))
    before = await _stored(rt, ada)
    async with rt.db.write() as session:
        two = await create_import(session, rt, ada.id, "netscape", "c.html")
        await add_import_rows(
            session,
            two,
            [
                Bookmark(f"bookmark {number}", f"https://example.org/{number}")
                for number in range(3)
            ],
        )
    await run_import(rt, RunImport(import_id=two.id))
    async with rt.db.read() as session:
        told = await session.get_one(type(two), two.id)

    assert (before.items, (await _stored(rt, ada)).items, told.status, told.refused) == (
        3,
        3,
        "DONE",
        3,
    )
    async with rt.db.write() as session:
        await start_rollback(session, rt, ada, ImportSubject.LIBRARY, one.id)
    while await roll_back_batch(rt, one.id):
        pass
    assert await _stored(rt, ada) == StorageUsage()


async def test_who_was_there_before_is_counted_with_the_first_change(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], ada: User
) -> None:
    for _ in range(2):
        await _save(client, headers, "old")
    async with rt.db.write() as session:
        await session.delete(await session.get_one(LibraryUsage, ada.id))
    await asyncio.gather(*(_save(client, headers, "new") for _ in range(3)))

    assert (await _stored(rt, ada)).items == 4


async def test_drift_is_set_right(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], ada: User
) -> None:
    await _save(client, headers, "one")
    async with rt.db.write() as session:
        row = await session.get_one(LibraryUsage, ada.id)
        row.items, row.bytes = 77, 7777
    await recount_usage(rt, RecountUsage())

    assert await _stored(rt, ada) == StorageUsage(1, 3)


@on_sqlite
async def test_the_settings_say_what_the_library_takes(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], ada: User
) -> None:
    await _save(client, headers, "x" * 123)
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    page = await client.get("/app/settings", headers=browser)

    assert "1 of 4" in page.text
    assert "123 B of 1 kB" in page.text
