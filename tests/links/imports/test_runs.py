"""Imports of links as objects, by the API and jobs: dry run, report, crash, stop, roll-back."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.models import ImportRow, ImportRun
from refract.imports.payloads import RollBackLinkImport, RunLinkImport
from refract.links.enums import FlagReason
from refract.links.imports.importer import LinkImporter, LinkImportResult
from refract.links.imports.jobs import roll_back_link_import, run_link_import
from refract.links.imports.runs import BATCH_SIZE, IMPORTED_PER_CREATED
from refract.links.models import Link, LinkTag
from refract.links.service import digest, disable_dangerous_link
from refract.names.models import Name
from refract.tags.models import Tag
from tests import make
from tests.client import by_key, on_sqlite
from tests.people import Headers

IMPORTS = "/api/v1/links/imports"
SAMPLES = Path(__file__).parents[2] / "samples" / "imports"


@pytest.fixture
async def headers(rt: Runtime, ada: User) -> Headers:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada))


def shlink(*codes: str, **fields: Any) -> bytes:
    links = [
        {"shortCode": code, "longUrl": f"https://old.example/?{code}", **fields} for code in codes
    ]
    return json.dumps(links).encode()


async def upload(
    client: AsyncClient, headers: Headers, content: bytes, **params: str
) -> dict[str, Any]:
    begun = await client.post(IMPORTS, headers=headers, content=content, params=params)
    assert begun.status_code == 202, begun.text
    return dict(begun.json())


async def read(client: AsyncClient, headers: Headers, number: str) -> dict[str, Any]:
    return dict((await client.get(f"{IMPORTS}/{number}", headers=headers)).json())


async def read_rows(
    client: AsyncClient, headers: Headers, number: str
) -> list[tuple[str, str, str | None]]:
    found = await client.get(f"{IMPORTS}/{number}/rows", headers=headers, params={"limit": 100})
    return [(row["shown"], row["outcome"], row["why"]) for row in found.json()["items"]]


async def run(
    rt: Runtime, client: AsyncClient, headers: Headers, content: bytes, **params: str
) -> dict[str, Any]:
    begun = await upload(client, headers, content, **params)
    await run_link_import(rt, RunLinkImport(import_id=int(begun["id"])))
    return await read(client, headers, begun["id"])


async def roll_back(
    rt: Runtime, client: AsyncClient, headers: Headers, number: str
) -> dict[str, Any]:
    begun = await client.post(f"{IMPORTS}/{number}/rollback", headers=headers)
    assert begun.json()["status"] == "ROLLING_BACK", begun.text
    await roll_back_link_import(rt, RollBackLinkImport(import_id=int(number)))
    return await read(client, headers, number)


async def count(rt: Runtime, *models: type[Any]) -> list[int]:
    async with rt.db.read() as session:
        return [
            await session.scalar(select(func.count()).select_from(model)) or 0 for model in models
        ]


async def test_an_import_is_tried_then_run_then_undone(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, headers: Headers
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, bob, name="taken")
    file = shlink("news", "aB", "ab", "taken", "login", "news", tags=["old"])
    tried = await run(rt, client, headers, file, dry_run="true", name="links.json")
    assert {key: tried[key] for key in ("dry_run", "status", "kind", "name", "waiting")} == {
        "dry_run": True,
        "status": "DONE",
        "kind": "shlink",
        "name": "links.json",
        "waiting": 0,
    }
    counts = ("total", "created", "existing", "skipped", "refused")
    assert [tried[name] for name in counts] == [6, 3, 1, 1, 1]
    assert await count(rt, Link, Tag) == [1, 0]
    would = await read_rows(client, headers, tried["id"])

    again = await client.post(f"{IMPORTS}/{tried['id']}/run", headers=headers)
    assert (again.status_code, again.json()["waiting"], again.json()["dry_run"]) == (202, 6, False)
    await run_link_import(rt, RunLinkImport(import_id=int(tried["id"])))
    done = await read(client, headers, tried["id"])
    assert [done[name] for name in counts] == [6, 3, 1, 1, 1]
    assert await read_rows(client, headers, tried["id"]) == would
    assert [(shown, outcome) for shown, outcome, _ in would] == [
        ("news → https://old.example/?news", "CREATED"),
        ("aB → https://old.example/?aB", "CREATED"),
        ("ab → https://old.example/?ab", "CREATED"),
        ("taken → https://old.example/?taken", "SKIPPED"),
        ("login → https://old.example/?login", "REFUSED"),
        ("news → https://old.example/?news", "EXISTS"),
    ]
    listed = (await client.get(IMPORTS, headers=headers)).json()["items"]
    assert [one["id"] for one in listed] == [tried["id"]]
    assert (await client.get("/api/v1/library/imports", headers=headers)).json()["items"] == [], (
        "they are apart"
    )
    once_more = await run(rt, client, headers, file)
    assert [once_more[name] for name in counts] == [6, 0, 4, 1, 1]

    undone = await roll_back(rt, client, headers, tried["id"])
    assert (undone["status"], undone["kept"]) == ("ROLLED_BACK", 0)
    assert await count(rt, Link, Name, LinkTag) == [1, 1, 0]
    async with rt.db.read() as session:
        assert list(await session.scalars(select(Tag.name).where(Tag.deleted_at.is_(None)))) == []
    closed = await client.post(f"{IMPORTS}/{tried['id']}/rollback", headers=headers)
    assert closed.status_code == 409
    back = await run(rt, client, headers, file)
    assert [back[name] for name in counts] == [6, 3, 1, 1, 1]


async def test_a_roll_back_leaves_what_was_changed_by_hand_and_names_it(
    rt: Runtime, client: AsyncClient, ada: User, headers: Headers
) -> None:
    done = await run(rt, client, headers, shlink("edited", "flagged", "plain"))
    async with rt.db.read() as session:
        links = {link.href: link.id for link in await session.scalars(select(Link))}
    edited = f"/api/v1/links/{links['https://old.example/?edited']}"
    patched = await client.patch(edited, headers=headers, json={"title": "By hand"})
    assert patched.status_code == 200, patched.text
    async with rt.db.write() as session:
        await disable_dangerous_link(
            session,
            links["https://old.example/?flagged"],
            digest("https://old.example/?flagged"),
            FlagReason.BLOCKED,
            None,
            rt.clock.now(),
        )
    undone = await roll_back(rt, client, headers, done["id"])
    assert undone["kept"] == 1
    assert await read_rows(client, headers, done["id"]) == [
        ("edited → https://old.example/?edited", "KEPT", "Changed here since, so it was kept.")
    ]
    assert await count(rt, Link) == [1]


@pytest.mark.parametrize("dry_run", ["false", "true"])
async def test_an_import_goes_on_after_a_crash_without_doubling(
    rt: Runtime, client: AsyncClient, headers: Headers, dry_run: str
) -> None:
    """The process dies in its second batch, before and after that is committed."""
    codes = [f"code-{number}" for number in range(2 * BATCH_SIZE + 10)]
    begun = await upload(client, headers, shlink(*codes, codes[0]), dry_run=dry_run)
    job = RunLinkImport(import_id=int(begun["id"]))
    with pytest.MonkeyPatch.context() as patch:
        _crash_in_second_batch(patch)
        with pytest.raises(_Crash):
            await run_link_import(rt, job)
    half = await read(client, headers, begun["id"])
    assert (half["created"], half["waiting"]) == (BATCH_SIZE, BATCH_SIZE + 11)
    await run_link_import(rt, job)
    await run_link_import(rt, job)  # as after a crash between the commit and the end of the job
    done = await read(client, headers, begun["id"])
    assert (done["status"], done["created"], done["existing"]) == ("DONE", len(codes), 1)
    assert await count(rt, Link) == [0 if dry_run == "true" else len(codes)]


class _Crash(Exception):
    pass


def _crash_in_second_batch(patch: pytest.MonkeyPatch) -> None:
    batches = 0
    original = LinkImporter.import_batch

    async def import_batch(importer: LinkImporter, rows: Any, record: Any) -> Any:
        async def crash(session: WriteSession, results: Sequence[LinkImportResult]) -> None:
            nonlocal batches
            batches += 1
            await record(session, results)
            if batches == 2:
                raise _Crash

        return await original(importer, rows, crash)

    patch.setattr(LinkImporter, "import_batch", import_batch)


@on_sqlite
async def test_an_import_can_be_stopped_and_undone_half_way(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    begun = await upload(client, headers, shlink(*(f"c-{number}" for number in range(300))))
    with pytest.MonkeyPatch.context() as patch:
        _crash_in_second_batch(patch)
        with pytest.raises(_Crash):
            await run_link_import(rt, RunLinkImport(import_id=int(begun["id"])))
    stopped = await client.post(f"{IMPORTS}/{begun['id']}/stop", headers=headers)
    assert (stopped.json()["status"], stopped.json()["created"]) == ("STOPPED", BATCH_SIZE)
    await run_link_import(rt, RunLinkImport(import_id=int(begun["id"])))
    assert await count(rt, Link) == [BATCH_SIZE]
    assert (await roll_back(rt, client, headers, begun["id"]))["status"] == "ROLLED_BACK"
    assert await count(rt, Link, Name, ImportRow) == [0, 0, 0]


@on_sqlite
async def test_imports_are_limited_like_new_links(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    limit = (rt.settings.creates_per_hour or 0) * IMPORTED_PER_CREATED
    rows = b"destination\n" + b"https://example.com/\n" * (limit + 1)
    refused = await client.post(IMPORTS, headers=headers, content=rows)
    assert refused.status_code == 429, refused.text
    assert await count(rt, ImportRun, ImportRow) == [0, 0]


@on_sqlite
async def test_columns_that_are_not_imported_are_named(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    file = b"destination,colour\nhttps://example.com/,red\nftp://example.com/,blue\n"
    done = await run(rt, client, headers, file)
    assert (done["kind"], done["unread"], done["created"]) == ("csv", ["colour"], 1)
    ((_, outcome, why),) = [
        row for row in await read_rows(client, headers, done["id"]) if row[1] != "CREATED"
    ]
    assert outcome == "REFUSED"
    assert why


@on_sqlite
async def test_columns_of_any_table_are_guessed_shown_and_changeable(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    file = (SAMPLES / "table_of_links.csv").read_bytes()
    guessed = await run(rt, client, headers, file, dry_run="true")
    assert guessed["kind"] == "columns"
    assert guessed["columns"]["title"] == "label"
    changed = await run(rt, client, headers, file, column="title=Owner")
    assert changed["columns"]["title"] == "owner"
    async with rt.db.read() as session:
        assert set(await session.scalars(select(Link.title))) == {"ada", "bob"}
    for wrong in ("title=Nothing", "colour=Owner"):
        refused = await client.post(
            IMPORTS, headers=headers, content=file, params={"column": wrong}
        )
        assert refused.status_code == 422, refused.text


@on_sqlite
async def test_links_go_to_their_domain_where_there_is_one(
    rt: Runtime, client: AsyncClient, ada: User, headers: Headers
) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, "dub.test")
    await run(rt, client, headers, (SAMPLES / "dub_links.csv").read_bytes())
    async with rt.db.read() as session:
        placed = select(Link.href, Link.domain).order_by(Link.href)
        assert [tuple(row) for row in await session.execute(placed)] == [
            ("https://example.com/spring", "dub.test"),
            ("https://example.com/x?utm_source=a", None),
        ]
        (why,) = await session.scalars(select(ImportRow.why).where(ImportRow.why.is_not(None)))
    assert why == "go.dub.test is no domain here, so it is on the default domain"
