"""Every listed 5xx error is sent for its real cause, by an operation that lists it."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from refract.app import WebNode
from refract.clicks.archive.models import ArchiveFile
from refract.clicks.models import SpoolCheckpoint
from refract.clicks.stats.export import MAX_EXPORTS, ExportSlots
from refract.clicks.stats.live import MAX_STREAMS, LiveTotalsWatcher
from refract.core.db import engine as db_engine
from refract.core.extraction.pool import MAX_WAITING_PER_OWNER
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.core.worker_ids import LeasedIds
from tests import make
from tests.client import by_key, client_of
from tests.conftest import make_settings
from tests.documented import documented_errors, operations_of
from tests.errors.site import many, open_runtime
from tests.identity.issuer import CLIENT, bearer, claims, sign

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
NEW_LINK = {"destination": make.DESTINATION}


@dataclass
class Stage:
    """An installation on SQLite, with a user."""

    rt: Runtime
    app: WebNode
    file: Path
    headers: dict[str, str]
    link_id: int

    async def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, **given: Any
    ) -> Response:
        return await _ask(self.app, method, path, headers or self.headers, **given)

    async def ask_another(self, app: WebNode, method: str, path: str, **given: Any) -> Response:
        """Send a request to an application of its own."""
        try:
            return await _ask(app, method, path, self.headers, **given)
        finally:
            if app.engine is not None:
                app.engine.spool.close()
            await app.rt.close()


async def _ask(
    app: WebNode, method: str, path: str, headers: dict[str, str], **given: Any
) -> Response:
    async with client_of(app) as client:
        return await client.request(method, f"/api/v1{path}", headers=headers, **given)


Scene = Callable[[Stage], Awaitable[Response]]
SCENES: dict[str, Scene] = {}
"""How each error is caused."""


def sends(code: str) -> Callable[[Scene], Scene]:
    def register(scene: Scene) -> Scene:
        SCENES[code] = scene
        return scene

    return register


@pytest.fixture
def settings(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(
        db_engine, "LOCK_TIMEOUT", 1.0
    )  # how long a test waits for a lock and for a connection
    issuers = {"work": Issuer(url="http://127.0.0.1:9", client_id="refract")}
    return make_settings(tmp_path / "data", database_url=database, issuers=issuers)


@pytest.fixture
async def stage(rt: Runtime, app: WebNode, tmp_path: Path) -> Stage:
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        headers = by_key(await make.key(session, rt, ada))
        link = await make.link(session, rt, ada)
    return Stage(rt, app, tmp_path / "refract.db", headers, link.id)


@sends("STORE_BUSY")
async def locked_file(stage: Stage) -> Response:
    with sqlite3.connect(stage.file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        response = await stage.ask("POST", "/links", json=NEW_LINK)
        other.execute("ROLLBACK")
    return response


@sends("STORE_OVERLOADED")
async def connection_that_does_not_come_back(stage: Stage) -> Response:
    async with stage.rt.db.write() as session:
        await session.connection()
        return await stage.ask("POST", "/links", json=NEW_LINK)


@sends("STORE_FULL")
async def database_without_a_free_page(stage: Stage) -> Response:
    async with stage.rt.db.write() as session:
        connection = await (await session.connection()).get_raw_connection()
        assert connection.driver_connection is not None
        await connection.driver_connection.execute("PRAGMA max_page_count = 1")
    rows = [
        {"destination": f"{make.DESTINATION}{number}", "notes": "n" * 900} for number in range(500)
    ]
    return await stage.ask("POST", "/links/bulk", json={"links": rows})


@sends("STORE_DAMAGED")
async def file_full_of_noise(stage: Stage) -> Response:
    await stage.rt.db.close()
    for path in stage.file.parent.glob("refract.db-*"):
        path.unlink()
    stage.file.write_bytes(b"SQLite format 3\0" + b"\xff" * 100_000)
    return await stage.ask("GET", "/links")


@sends("STORE_ACCESS_DENIED")
async def file_that_may_not_be_opened(stage: Stage) -> Response:
    await stage.rt.db.close()
    for path in stage.file.parent.glob("refract.db*"):
        path.unlink()
    stage.file.symlink_to(stage.file.parent / "absent" / "refract.db")
    return await stage.ask("GET", "/links")


@sends("STORE_UNAVAILABLE")
async def server_that_is_not_there(stage: Stage) -> Response:
    settings = make_settings(
        stage.rt.settings.data_dir, database_url="postgresql://postgres@127.0.0.1:9/refract"
    )
    async with open_runtime(settings) as rt:
        return await stage.ask_another(WebNode(rt), "GET", "/links")


@sends("CLOCK_MOVED_BACKWARDS")
async def clock_that_was_set_back(stage: Stage) -> Response:
    stage.rt.clock.advance(-3600)  # type: ignore[attr-defined]  # a ManualClock
    return await stage.ask("POST", "/links", json=NEW_LINK)


@sends("WORKER_ID_LOST")
async def process_without_a_worker_id(stage: Stage) -> Response:
    """A process before its first lease, or after a failed renewal."""
    rt = replace(stage.rt, ids=LeasedIds(stage.rt.db, stage.rt.clock))
    return await stage.ask_another(WebNode(rt), "POST", "/links", json=NEW_LINK)


@sends("ISSUER_UNAVAILABLE")
async def provider_that_does_not_answer(stage: Stage) -> Response:
    token = sign(claims(stage.rt.clock.now(), iss="http://127.0.0.1:9", aud=CLIENT))
    return await stage.ask("GET", "/links", headers=bearer(token))


@sends("IMPORTS_BUSY")
async def files_at_the_same_time(stage: Stage) -> Response:
    count = stage.rt.settings.extraction_processes + MAX_WAITING_PER_OWNER + 1
    requests = [
        stage.ask(
            "POST", "/library/imports", json=[{"text": "A thought."}], params={"dry_run": "true"}
        )
        for _ in range(count)
    ]
    return max(await asyncio.gather(*requests), key=lambda response: response.status_code)


@sends("TOO_MANY_STREAMS")
async def streams_of_everybody(stage: Stage) -> Response:
    live = stage.rt.singleton(LiveTotalsWatcher)
    with many(live.watch(number) for number in range(MAX_STREAMS)):
        return await stage.ask("GET", f"/links/{stage.link_id}/stats/live")


@sends("TOO_MANY_EXPORTS")
async def exports_of_everybody(stage: Stage) -> Response:
    with many(stage.rt.singleton(ExportSlots).acquire() for _ in range(MAX_EXPORTS)):
        return await stage.ask("GET", f"/links/{stage.link_id}/stats/export")


@sends("ARCHIVE_FILE_MISSING")
async def archived_day_without_its_file(stage: Stage) -> Response:
    now = stage.rt.clock.now()
    day = (now - timedelta(days=2)).date()
    async with stage.rt.db.write() as session:
        moments = {"first_at": now, "last_at": now, "created_at": now}
        session.add(
            ArchiveFile(
                day=day, part=1, name="absent.parquet", events=1, link_events=1, size=1, **moments
            )
        )
    return await stage.ask("GET", f"/links/{stage.link_id}/stats/export")


@sends("TOO_MANY_RECENT_CLICKS")
async def filter_of_more_clicks_than_fit_into_memory(stage: Stage) -> Response:
    async with stage.rt.db.write() as session:
        session.add(
            SpoolCheckpoint(
                spool_id=1, segment=1, place=0, node="x", stored=10**9, torn=0, damaged=0,
                updated_at=stage.rt.clock.now(),
            )
        )  # fmt: skip
    return await stage.ask("GET", f"/links/{stage.link_id}/stats?device=mobile")


def listed(app: WebNode) -> dict[str, set[str]]:
    """Return the 5xx codes of the document, each with the operations that list it."""
    found: dict[str, set[str]] = {}
    for operation, codes in documented_errors(app).operations.items():
        for code, status in codes.items():
            if status >= 500:
                found.setdefault(code, set()).add(operation)
    return found


async def test_every_server_error_of_the_document_has_a_scene(app: WebNode) -> None:
    assert set(listed(app)) == set(SCENES)


@pytest.mark.parametrize("code", SCENES)
async def test_a_server_error_is_sent_for_its_cause(stage: Stage, code: str) -> None:
    response = await SCENES[code](stage)

    assert (response.status_code, response.json()["code"]) == (503, code)
    operation = documented_errors(stage.app).operation_at(
        response.request.method, response.request.url.path
    )
    assert operation in listed(stage.app)[code]


async def test_whatever_uses_the_database_lists_what_a_database_does(app: WebNode) -> None:
    by_code = listed(app)
    every = {name for name, _ in operations_of(app.api.openapi()) if "/api/v1/" in name}

    for code in (
        "STORE_BUSY",
        "STORE_OVERLOADED",
        "STORE_FULL",
        "STORE_DAMAGED",
        "STORE_ACCESS_DENIED",
        "STORE_UNAVAILABLE",
    ):
        assert by_code[code] == every
    assert (
        by_code["WORKER_ID_LOST"]
        == by_code["CLOCK_MOVED_BACKWARDS"]
        == every - {"GET /api/v1/public/lists/{slug}", "GET /api/v1/domains/tls"}
    )
