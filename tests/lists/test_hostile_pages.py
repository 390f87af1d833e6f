"""No page that a list entry or the new-link form names can hold up the event loop.

The finding: an anonymous list entry whose page is 810 bytes (`<div>` 104,857 times, compressed)
blocked every redirect for 112 s, since the page was parsed on the event loop. `/app/links/look` did
the same for users who pasted such a URL.
"""

import gzip

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists.entry_jobs import FetchEntry, fetch_entry
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.fetching import settings, web
from tests.hostile_pages import SHAPES
from tests.lists.pages_server import Site, page
from tests.lists.test_metadata import _add, _entry
from tests.loop_cpu import measure_loop_cpu

__all__ = ["settings", "web"]

pytestmark = on_sqlite
COMPRESSED = "Content-Encoding: gzip\r\n"


def serve_shapes(web: Site) -> None:
    for number, shape in enumerate(SHAPES.values()):
        web.pages[f"/plain/{number}"] = page(shape.encode())
        web.pages[f"/gzip/{number}"] = page(gzip.compress(shape.encode(), 9), more=COMPRESSED)
    web.pages["/good"] = page(b"<title>Good</title>")
    web.pages["/810"] = page(gzip.compress(b"<html>" + b"<div>" * 104857, 9), more=COMPRESSED)


@pytest.mark.parametrize("sent", ["plain", "gzip"])
async def test_no_page_of_an_entry_holds_up_the_loop(rt: Runtime, web: Site, sent: str) -> None:
    serve_shapes(web)
    addresses = ["/good", "/810", *(f"/{sent}/{number}" for number in range(len(SHAPES)))]
    entries = await _add(rt, *(web.url(address) for address in addresses))
    await fetch_entry(rt, FetchEntry(entry_id=entries[0]))  # starts the extraction process

    with measure_loop_cpu() as cpu:
        for entry_id in entries[1:]:
            await fetch_entry(rt, FetchEntry(entry_id=entry_id))

    cpu.assert_below()
    assert (await _entry(rt, entries[0])).title == "Good"
    assert "pending" not in {(await _entry(rt, entry_id)).fetch_status for entry_id in entries}


async def test_looking_at_a_hostile_page_holds_up_nobody(
    rt: Runtime, client: AsyncClient, web: Site, ada: User
) -> None:
    serve_shapes(web)
    async with rt.db.write() as session:
        headers = by_cookie(rt, await make.cookie(session, rt, ada))

    async def look(path: str) -> str:
        answer = await client.get(
            "/app/links/look", params={"destination": web.url(path)}, headers=headers
        )
        assert answer.status_code == 200
        return answer.text

    assert "Good" in await look("/good")

    with measure_loop_cpu() as cpu:
        for number in range(20):
            assert "data-fill" not in await look(f"/plain/{number}") or number > 2
        await look("/810")

    cpu.assert_below()
