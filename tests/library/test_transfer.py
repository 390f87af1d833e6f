"""Imports and exports by API and jobs: dry run, report, duplicates, stop, roll-back, round trip."""

import json
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select, update

from refract.core.clock import ManualClock
from refract.core.db.types import Model
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.jobs import stop_stuck_imports
from refract.imports.models import ImportRow, ImportRun, ImportStatus
from refract.imports.payloads import (
    ABANDONED_AFTER,
    RollBackImport,
    RunImport,
    StopStuckImports,
    enqueue_abandoned_import_check,
)
from refract.imports.service import create_import
from refract.jobs.models import Job, JobStatus
from refract.library.export import LibraryExportFormat, stream_library
from refract.library.imports.importer import add_import_rows, import_batch
from refract.library.imports.jobs import roll_back_import, run_import
from refract.library.imports.rows import Bookmark
from refract.library.models import READING_STATES, Item, ItemStatus, ItemTag, SavedPage
from refract.library.queries.browse import search_items
from refract.library.recognition import recognize_text
from refract.library.search.models import ItemSearch
from refract.registry import build_worker
from refract.tags.models import Tag
from tests import make
from tests.client import by_key, on_sqlite
from tests.library.imports.test_formats import SAMPLES
from tests.tags import items

IMPORTS = "/api/v1/library/imports"


@pytest.fixture
async def as_ada(rt: Runtime, ada: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada))


async def bring(
    rt: Runtime, client: AsyncClient, headers: dict[str, str], content: bytes, **asked: str
) -> dict[str, Any]:
    begun = await client.post(IMPORTS, headers=headers, content=content, params=asked)
    assert begun.status_code == 202, begun.text
    await run_import(rt, RunImport(import_id=int(begun.json()["id"])))
    found: dict[str, Any] = (
        await client.get(f"{IMPORTS}/{begun.json()['id']}", headers=headers)
    ).json()
    return found


async def count(rt: Runtime, model: type[Model]) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


async def test_an_import_tells_of_every_row_and_can_be_repeated_and_taken_back(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: dict[str, str]
) -> None:
    content = (SAMPLES / "chrome.html").read_bytes()
    async with rt.db.write() as session:
        await items.item(session, rt, ada, "Recipes", text="https://example.com/other")
    tried = await client.post(IMPORTS, headers=as_ada, content=content, params={"dry_run": "true"})
    assert (
        tried.status_code,
        tried.json()["created"],
        tried.json()["refused"],
        await count(rt, Item),
    ) == (200, 4, 1, 1)
    assert [row["outcome"] for row in tried.json()["rows"]] == [
        "CREATED",
        "CREATED",
        "REFUSED",
        "CREATED",
        "CREATED",
    ]

    done = await bring(rt, client, as_ada, content, name="bookmarks.html")
    assert {
        key: done[key]
        for key in ("kind", "name", "status", "total", "created", "existing", "refused", "waiting")
    } == {
        "kind": "netscape",
        "name": "bookmarks.html",
        "status": "DONE",
        "total": 5,
        "created": 4,
        "existing": 0,
        "refused": 1,
        "waiting": 0,
    }
    refused = (
        await client.get(
            f"{IMPORTS}/{done['id']}/rows", headers=as_ada, params={"outcome": "REFUSED"}
        )
    ).json()["items"]
    assert [(row["number"], row["place"], row["item_id"]) for row in refused] == [
        (3, "bookmark 3", None)
    ]
    listed = (await client.get("/api/v1/library", headers=as_ada, params={"q": "soup"})).json()[
        "items"
    ]
    assert [
        (one["title"], one["summary"], [tag["name"] for tag in one["tags"]]) for one in listed
    ] == [("Soup", "A warm one,\nfor winter.", ["Recipes"])]

    again = await bring(rt, client, as_ada, content)
    assert (again["created"], again["existing"], await count(rt, Item)) == (0, 4, 5)

    assert (await client.post(f"{IMPORTS}/{done['id']}/rollback", headers=as_ada)).json()[
        "status"
    ] == "ROLLING_BACK"
    await roll_back_import(rt, RollBackImport(import_id=int(done["id"])))
    assert (await client.get(f"{IMPORTS}/{done['id']}", headers=as_ada)).json()[
        "status"
    ] == "ROLLED_BACK"
    assert (
        await client.post(f"{IMPORTS}/{done['id']}/rollback", headers=as_ada)
    ).status_code == 409
    async with rt.db.read() as session:
        assert await search_items(session, ada.id, "soup", 5) == []
        assert [(tag.name, tag.usage_count) for tag in await session.scalars(select(Tag))] == [
            ("Recipes", 1)
        ]
    assert [await count(rt, model) for model in (Item, ItemTag, ItemSearch)] == [1, 1, 0]


@on_sqlite
async def test_an_import_can_be_stopped_and_goes_on_after_a_crash(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"text": f"https://example.com/{number}", "tags": [f"t{number % 3}"]}
        for number in range(450)
    ]
    begun = (await client.post(IMPORTS, headers=as_ada, content=json.dumps(rows).encode())).json()
    number = int(begun["id"])
    assert await import_batch(rt, number)
    half = (await client.get(f"{IMPORTS}/{number}", headers=as_ada)).json()
    assert (half["status"], half["created"], half["waiting"]) == ("RUNNING", 200, 250)
    stopped = (await client.post(f"{IMPORTS}/{number}/stop", headers=as_ada)).json()
    assert (stopped["status"], stopped["created"]) == ("STOPPED", 200)
    await run_import(rt, RunImport(import_id=number))
    assert await count(rt, Item) == 200

    whole = await bring(rt, client, as_ada, json.dumps(rows).encode())
    assert (whole["created"], whole["existing"], await count(rt, Item)) == (250, 200, 450)
    await run_import(
        rt, RunImport(import_id=int(whole["id"]))
    )  # once more, as after a crash between commit and end
    assert await count(rt, Item) == 450
    async with rt.db.read() as session:
        assert {tag.usage_count for tag in await session.scalars(select(Tag))} == {150}


@on_sqlite
@pytest.mark.parametrize("to_the_end", [True, False])
async def test_an_import_whose_command_was_killed_counts_as_stopped_a_day_later(
    rt: Runtime, clock: ManualClock, ada: User, to_the_end: bool
) -> None:
    async with rt.db.write() as session:
        one = await create_import(session, rt, ada.id, "netscape", "bookmarks.html")
        await enqueue_abandoned_import_check(session, rt, one)
        await add_import_rows(session, one, [Bookmark("bookmark 1", "https://example.com/soup")])
    if to_the_end:
        await run_import(rt, RunImport(import_id=one.id))

    async def status() -> str:
        async with rt.db.read() as session:
            return (await session.get_one(ImportRun, one.id)).status

    clock.advance(ABANDONED_AFTER.total_seconds() - 60)
    await build_worker(rt).run_due_jobs()
    assert await status() == (ImportStatus.DONE if to_the_end else ImportStatus.RUNNING)
    clock.advance(120)
    await build_worker(rt).run_due_jobs()
    assert await status() == (ImportStatus.DONE if to_the_end else ImportStatus.STOPPED)


@pytest.mark.parametrize("is_rolling_back", [False, True])
async def test_an_import_whose_job_died_is_stopped_and_can_be_rolled_back(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], is_rolling_back: bool
) -> None:
    rows = [{"text": f"https://example.com/{number}"} for number in range(250)]
    started = await client.post(IMPORTS, headers=as_ada, content=json.dumps(rows).encode())
    number = int(started.json()["id"])
    await import_batch(rt, number)
    if is_rolling_back:
        await client.post(f"{IMPORTS}/{number}/rollback", headers=as_ada)
    async with rt.db.write() as session:
        await session.execute(update(Job).values(status=JobStatus.DEAD, finished_at=rt.clock.now()))

    async def get_status() -> str:
        await stop_stuck_imports(rt, StopStuckImports())
        return str((await client.get(f"{IMPORTS}/{number}", headers=as_ada)).json()["status"])

    assert await get_status() == "STOPPED"
    await client.post(f"{IMPORTS}/{number}/rollback", headers=as_ada)
    assert await get_status() == "ROLLING_BACK", "it has a new job"
    await roll_back_import(rt, RollBackImport(import_id=number))
    assert (await get_status(), await count(rt, Item)) == ("ROLLED_BACK", 0)


async def test_a_roll_back_ends_an_import_and_removes_what_it_did(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str]
) -> None:
    rows = [{"text": f"https://example.com/{number}", "tags": ["new"]} for number in range(250)]
    number = int(
        (await client.post(IMPORTS, headers=as_ada, content=json.dumps(rows).encode())).json()["id"]
    )
    await import_batch(rt, number)
    await client.post(f"{IMPORTS}/{number}/rollback", headers=as_ada)
    await run_import(rt, RunImport(import_id=number))
    await roll_back_import(rt, RollBackImport(import_id=number))
    assert [await count(rt, model) for model in (Item, Tag, ItemTag, ItemSearch, ImportRow)] == [
        0,
        0,
        0,
        0,
        0,
    ]
    assert await count(rt, ImportRun) == 1


async def test_tags_of_several_imports_go_with_the_last_of_them(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], ada: User
) -> None:
    """An interrupted import and the one that resumes it are two imports.

    The first created the tags, and both use them.
    """
    async with rt.db.write() as session:
        gone = await items.tag(session, rt, ada, "revived")
        gone.deleted_at = rt.clock.now()
    rows = [
        [{"text": f"https://example.com/{number}", "tags": ["new", "revived"]}]
        for number in range(2)
    ]
    first, second = [await bring(rt, client, as_ada, json.dumps(some).encode()) for some in rows]
    for one, left in (
        (first, {"new": (1, False), "revived": (1, False)}),
        (second, {"revived": (0, True)}),
    ):
        await client.post(f"{IMPORTS}/{one['id']}/rollback", headers=as_ada)
        await roll_back_import(rt, RollBackImport(import_id=int(one["id"])))
        async with rt.db.read() as session:
            tags = {
                tag.name: (tag.usage_count, tag.deleted_at is not None)
                for tag in await session.scalars(select(Tag))
            }
        assert tags == left


@on_sqlite
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing,of,use\n1,2,3",
        b"{",
        b"\xff\xfe\xfd",
        b"{}",
        b"[]",
        b'{"items": []}',
        b"url,title\n",
    ],
)
async def test_a_file_that_is_none_changes_nothing(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], content: bytes
) -> None:
    refused = await client.post(IMPORTS, headers=as_ada, content=content)
    assert (refused.status_code, refused.json()["code"]) == (422, "UNREADABLE_FILE")
    assert await count(rt, ImportRun) == 0


@pytest.mark.parametrize("form", list(LibraryExportFormat))
async def test_what_is_exported_imports_back_equal(
    rt: Runtime,
    client: AsyncClient,
    ada: User,
    bob: User,
    as_ada: dict[str, str],
    clock: ManualClock,
    form: LibraryExportFormat,
) -> None:
    async with rt.db.write() as session:
        as_bob = by_key(await make.key(session, rt, bob))
        saved: list[Item] = []
        for text, title, summary in (
            (
                'https://example.com/a?b=1&c="2"',
                'A & <b>"quoted"</b>',
                "Lines\nand <i>marks</i> & more",
            ),
            ("A thought.\n\n  with  spaces, commas & <tags>", "A thought", None),
            ("https://example.org/ü", None, None),
            ("https://example.org/same", "https://example.org/same", None),
            ("日本語 😀 \u202e", "=1+1", "&amp;"),
        ):
            clock.advance(61.5)
            seen = recognize_text(text)
            fields = {
                "text": text,
                "title": title,
                "summary": summary,
                "url": seen.url,
                "type": seen.type,
                "url_digest": seen.url_digest,
                "notes": f"Mine: {title}\n\n& <b>more</b>" if len(saved) % 2 else None,
                **dict.fromkeys(READING_STATES[: len(saved)], True),
            }
            saved.append(await items.item(session, rt, ada, "One", "c++ & co", **fields))
        made = saved[-1]
        made.set_status(ItemStatus.READY_TO_CONFIRM)
        made.confirmed_at = None
        tag = await items.tag(session, rt, ada, "One")
        tag.color = "#123456"
        page = {
            "url": "https://x.test/",
            "keywords": ["k"],
            "text": "Saved text",
            "html": "<p>Saved text</p>",
            "author": "Ann",
        }
        session.add(SavedPage(item_id=made.id, fetched_at=rt.clock.now(), **page))

    answer = await client.get(
        "/api/v1/library/export", headers=as_ada, params={"format": form.value}
    )
    assert answer.headers["content-disposition"].startswith("attachment")
    done = await bring(rt, client, as_bob, answer.content)
    assert (done["refused"], done["existing"]) == (0, 0)

    first, second = await _facts(rt, ada, form), await _facts(rt, bob, form)
    assert second == first
    assert len(first) == 5
    repeated = await bring(rt, client, as_ada, answer.content)
    assert (
        repeated["existing"] + (2 if form is LibraryExportFormat.JSON else 0) == repeated["total"]
    )
    if form is LibraryExportFormat.JSON:
        async with rt.db.read() as session:
            assert (
                await session.scalar(select(Tag.color).where(Tag.space == bob.id, Tag.key == "one"))
                == "#123456"
            )


async def _facts(rt: Runtime, owner: User, form: LibraryExportFormat) -> list[Any]:
    """Return everything that an export of this form must keep, in the order of capture."""
    text = "".join(
        [piece async for piece in stream_library(rt, owner.id, LibraryExportFormat.JSON)]
    )
    kept = (
        "text",
        "url",
        "title",
        "summary",
        "notes",
        *READING_STATES,
        "type",
        "created_at",
        "confirmed_at",
        "tags",
        *(("page",) if form is LibraryExportFormat.JSON else ()),
    )
    return [{name: one[name] for name in kept} for one in json.loads(text)["items"]]
