"""Large exports do not block the event loop: they are written in batches, long ones in a thread.

The finding: an account's export took up to 118 ms of the event loop at a time; one item with its
page may have a megabyte.
"""

import json
from functools import partial
from typing import Any

from httpx import AsyncClient
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.payloads import RunImport
from refract.library.imports.jobs import run_import
from refract.library.models import Item
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.loop_cpu import repeat_until_below

LONG = 'word and "quoted"\n' * 40_000


@on_sqlite
async def test_exports_hold_up_nobody(rt: Runtime, as_ada: AsyncClient, ada: User) -> None:
    page = {"url": "https://example.com/", "text": LONG, "html": f"<p>{LONG}</p>"}
    items: list[dict[str, Any]] = [
        {"text": f"https://a.example/{number}", "tags": [f"t{number % 30}"]}
        for number in range(500)
    ]
    items += [{"text": f"https://b.example/{number}", "page": page} for number in range(2)]
    begun = await as_ada.post(
        "/api/v1/library/imports", content=json.dumps({"items": items}).encode()
    )
    await run_import(rt, RunImport(import_id=int(begun.json()["id"])))
    async with rt.db.write() as session:
        for number in range(300):
            await make.link(session, rt, ada, destination=f"https://example.com/{number}")

    for path in (
        "/api/v1/library/export",
        "/api/v1/library/export?format=html",
        "/api/v1/me/export",
    ):
        await _read(as_ada, path)
        size = await repeat_until_below(partial(_read, as_ada, path))
        assert size > 50_000


async def _read(client: AsyncClient, path: str, **headers: str) -> int:
    async with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        return sum([len(piece) async for piece in answer.aiter_raw()])


@on_sqlite
async def test_reading_a_long_saved_page_holds_up_nobody(
    rt: Runtime, as_ada: AsyncClient, ada: User
) -> None:
    page = {"url": "https://example.com/", "text": LONG, "html": "<b>" * 200_000 + LONG}
    content = json.dumps({"items": [{"text": "https://b.example/", "page": page}]}).encode()
    begun = await as_ada.post("/api/v1/library/imports", content=content)
    await run_import(rt, RunImport(import_id=int(begun.json()["id"])))
    async with rt.db.read() as session:
        item_id = await session.scalar(select(Item.id))
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada))

    for path, headers in (
        (f"/api/v1/items/{item_id}/reader", {}),
        (f"/app/library/{item_id}", browser),
    ):
        await _read(as_ada, path, **headers)
        await repeat_until_below(partial(_read, as_ada, path, **headers))
