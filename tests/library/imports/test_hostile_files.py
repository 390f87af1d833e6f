"""No uploaded file blocks the event loop.

The finding: a dry run of four megabytes cost up to 11.6 s of CPU, in stretches on the event loop
and without turns between users.
"""

import json
from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.payloads import RunImport
from refract.library.imports.jobs import run_import
from tests import make
from tests.client import by_key, on_sqlite
from tests.loop_cpu import measure_loop_cpu
from tests.people import ada

__all__ = ["ada"]

pytestmark = on_sqlite
SIZE = 128 * 1024
HEAD = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n"


def _filled(unit: str, head: str = "", tail: str = "", size: int = SIZE) -> bytes:
    return (head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail).encode()


def _page(html: str) -> dict[str, Any]:
    return {
        "text": "https://example.com/",
        "created_at": "2026-01-01T00:00:00Z",
        "page": {"html": html, "text": html},
    }


READABLE = {
    "many bookmarks": (
        (
            HEAD
            + "".join(f"<A HREF=http://a.example/{number}>x</A>\n" for number in range(SIZE // 40))
        ).encode()
    ),
    "the same bookmark": _filled("<A HREF=http://a.example>x</A>", HEAD),
    "notes": (
        json.dumps({"items": [{"text": f"note {number}"} for number in range(SIZE // 24)]}).encode()
    ),
    "a saved page": json.dumps({"items": [_page("<b>" * (SIZE // 6))]}).encode(),
    "many tags": (
        (
            HEAD + "<A HREF=http://a.example/"
            f" TAGS='{','.join(f't{number}' for number in range(100_000))}'>x</A>"
        ).encode()
    ),
    "deep folders": _filled("<DL><H3>x</H3>", HEAD, "<A HREF=http://a.example/>x</A>"),
    "endless entity": (HEAD + f"<A HREF=http://a.example/>&#{'9' * 100_000};</A>").encode(),
}
BROKEN = {
    "open tags": _filled("<", HEAD),
    "open comments": _filled("<!--", HEAD),
    "quotes": _filled('"', "url,time_added\n"),
    "columns": _filled(","),
    "deep lists": _filled("["),
    "deep objects": _filled('{"items":'),
    "nothing": b"",
}


@pytest.fixture
async def as_ada(client: AsyncClient, rt: Runtime, ada: User) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_key(await make.key(session, rt, ada)))
    return client


async def test_no_file_holds_up_the_loop(rt: Runtime, as_ada: AsyncClient) -> None:
    async def bring(content: bytes, *, dry_run: bool) -> tuple[int, dict[str, Any]]:
        answer = await as_ada.post(
            f"/api/v1/library/imports?dry_run={str(dry_run).lower()}", content=content
        )
        return answer.status_code, answer.json()

    for dry_run in (True, False):
        await bring(b"<A HREF=http://a.example/warm>x</A>", dry_run=dry_run)
    # the test client builds the OpenAPI document at its first error, to check that it is documented
    await bring(b"", dry_run=True)

    for name, content in READABLE.items():
        with measure_loop_cpu() as cpu:
            tried, _ = await bring(content, dry_run=True)
            begun, made = await bring(content, dry_run=False)
            await run_import(rt, RunImport(import_id=int(made["id"])))
        assert (tried, begun) == (200, 202), name
        cpu.assert_below()
    for name, content in BROKEN.items():
        with measure_loop_cpu() as cpu:
            for dry_run in (True, False):
                status, answered = await bring(content, dry_run=dry_run)
                assert (
                    answered.get("code") == "UNREADABLE_FILE"
                    if status == 422
                    else "refused" in answered
                ), name
        cpu.assert_below()


async def test_a_file_of_too_many_rows_says_so(as_ada: AsyncClient) -> None:
    answer = await as_ada.post(
        "/api/v1/library/imports?dry_run=true",
        content=_filled("<A HREF=http://a>", HEAD, size=2 * 1024 * 1024),
    )

    assert answer.status_code == 422
    assert "more than 100,000 rows. Split it and import the parts" in answer.json()["detail"]
