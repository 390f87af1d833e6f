"""The pages of moving in: preview, run, report, undo, without script."""

from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.imports.payloads import RollBackLinkImport, RunLinkImport
from refract.links.imports.jobs import roll_back_link_import, run_link_import
from refract.links.models import Link
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.people import Headers

PAGE = "/app/links/imports"
FILE = b"Alias;Long URL;Owner\nspring;https://example.com/;ada\nbad;ftp://example.com/;bob\n"


@pytest.fixture
async def as_ada(rt: Runtime, ada: User) -> Headers:
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}


async def post(client: AsyncClient, headers: Headers, path: str, **more: Any) -> str:
    answer = await client.post(path, headers=headers, **more)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def count(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(Link)) or 0


@on_sqlite
async def test_a_file_is_tried_imported_and_undone(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    path = await post(client, as_ada, PAGE, files={"file": ("old.csv", FILE)})
    number = int(path.rpartition("/")[2])
    assert "Checking…" in (await client.get(path, headers=as_ada)).text
    await run_link_import(rt, RunLinkImport(import_id=number))
    tried = (await client.get(path, headers=as_ada)).text
    assert "Import 1 link<" in tried
    assert "Not imported: owner." in tried
    assert await count(rt) == 0
    assert await post(client, as_ada, f"{path}/run") == path
    await run_link_import(rt, RunLinkImport(import_id=number))
    done = (await client.get(path, headers=as_ada, params={"outcome": "REFUSED"})).text
    assert "line 3" in done
    assert "line 2" not in done
    assert "old.csv" in (await client.get(PAGE, headers=as_ada)).text
    assert await count(rt) == 1
    assert await post(client, as_ada, f"{path}/rollback") == path
    await roll_back_link_import(rt, RollBackLinkImport(import_id=number))
    assert "Undone" in (await client.get(path, headers=as_ada)).text
    assert await count(rt) == 0


@on_sqlite
async def test_a_file_that_is_none_is_refused_on_the_page(
    client: AsyncClient, as_ada: Headers
) -> None:
    for files in ({"file": ("x.csv", b"nothing\n")}, {"file": ("", b"")}):
        answer = await client.post(PAGE, headers=as_ada, files=files)
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text
