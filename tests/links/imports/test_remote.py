"""Imports from running installations: paging, crashes, refusals, and where a key may go."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.imports.models import ImportRun
from refract.imports.payloads import RunLinkImport
from refract.jobs.errors import TryAgain
from refract.links.imports import remote
from refract.links.imports.jobs import run_link_import
from refract.links.models import Link
from tests.client import on_sqlite
from tests.conftest import make_settings
from tests.links.imports.test_runs import headers, read, read_rows
from tests.people import Headers

__all__ = ["headers"]
REMOTE = "/api/v1/links/imports/remote"
pytestmark = on_sqlite
Answer = Callable[[str, dict[str, str], dict[str, list[str]]], tuple[int, Any]]


@pytest.fixture
def settings(tmp_path: Path, database: str) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, fetch_allow="127.0.0.0/8")


@asynccontextmanager
async def installation(answer: Answer) -> AsyncIterator[str]:
    """A server that answers requests with JSON."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        given = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        url = urlsplit(first.split(" ")[1])
        status, found = answer(url.path, given, parse_qs(url.query))
        extra = f"Location: {found}\r\n" if status == 302 else ""
        body = json.dumps(found).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def kutt(count: int, asked: list[int]) -> Answer:
    links = [{"address": f"k{n}", "target": f"https://a.example/{n}"} for n in range(count)]

    def answer(path: str, given: dict[str, str], query: dict[str, list[str]]) -> tuple[int, Any]:
        if given.get("x-api-key") != "secret-key":
            return 401, {"error": "Unauthorized."}
        assert path == "/api/v2/links"
        skip, limit = int(query["skip"][0]), int(query["limit"][0])
        asked.append(skip)
        data = links[skip : skip + limit]
        return 200, {"limit": limit, "skip": skip, "total": count, "data": data}

    return answer


def shlink(path: str, given: dict[str, str], query: dict[str, list[str]]) -> tuple[int, Any]:
    assert (path, given["x-api-key"], query["page"]) == ("/rest/v3/short-urls", "secret-key", ["1"])
    link = {"shortCode": "aB", "longUrl": "https://a.example/", "tags": ["old"], "title": "A"}
    return 200, {"shortUrls": {"data": [link], "pagination": {"currentPage": 1, "pagesCount": 1}}}


def yourls(path: str, given: dict[str, str], query: dict[str, list[str]]) -> tuple[int, Any]:
    assert (path, query["signature"]) == ("/yourls-api.php", ["secret-key"])
    link = {"shorturl": "http://sho.rt/ozh", "url": "https://a.example/", "title": "A"}
    return 200, {"links": {"link_1": link}, "stats": {"total_links": "1"}, "statusCode": 200}


async def begin(client: AsyncClient, headers: Headers, **given: Any) -> str:
    body = {"system": "kutt", "key": "secret-key", **given}
    begun = await client.post(REMOTE, headers=headers, json=body)
    assert begun.status_code == 202, begun.text
    assert "secret-key" not in begun.text
    return str(begun.json()["id"])


async def count_links(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(Link)) or 0


@pytest.mark.parametrize(("system", "answer"), [("shlink", shlink), ("yourls", yourls)])
async def test_links_of_a_running_installation(
    rt: Runtime, client: AsyncClient, headers: Headers, system: str, answer: Answer
) -> None:
    async with installation(answer) as url:
        number = await begin(client, headers, system=system, url=f"{url}/")
        await run_link_import(rt, RunLinkImport(import_id=int(number)))
    done = await read(client, headers, number)
    assert (done["status"], done["created"], done["kind"]) == ("DONE", 1, system)


def empty_yourls(path: str, given: dict[str, str], query: dict[str, list[str]]) -> tuple[int, Any]:
    """Return one full page, then what YOURLS sends when nothing is left: no field `links`."""
    if query["start"] != ["0"]:
        return 200, {"stats": {"total_links": "500"}, "statusCode": 200}
    links = {
        f"link_{n}": {"shorturl": f"http://sho.rt/y{n}", "url": f"https://a.example/{n}"}
        for n in range(500)
    }
    return 200, {"links": links, "stats": {"total_links": "500"}, "statusCode": 200}


async def test_a_last_page_of_yourls_without_links_ends_the_import(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    async with installation(empty_yourls) as url:
        number = await begin(client, headers, system="yourls", url=url)
        await run_link_import(rt, RunLinkImport(import_id=int(number)))
    done = await read(client, headers, number)
    assert (done["status"], done["created"]) == ("DONE", 500)


async def test_one_import_from_elsewhere_runs_at_a_time(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    async with installation(kutt(1, [])) as url:
        number = await begin(client, headers, url=url)
        body = {"system": "kutt", "key": "secret-key", "url": url}
        second = await client.post(REMOTE, headers=headers, json=body)
        assert (second.status_code, second.json()["code"]) == (409, "REMOTE_IMPORT_RUNNING")
        await run_link_import(rt, RunLinkImport(import_id=int(number)))
        await begin(client, headers, url=url)


async def test_pages_are_fetched_once_also_after_a_crash_and_the_key_is_erased(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    asked: list[int] = []
    async with installation(kutt(120, asked)) as url:
        number = await begin(client, headers, url=url, dry_run=True)
        assert await remote.fetch_next_page(rt, int(number))
        async with rt.db.read() as session:
            options = (await session.get_one(ImportRun, int(number))).options or {}
        assert (options["source"]["page"], "secret-key" in str(options)) == (1, False)
        await run_link_import(rt, RunLinkImport(import_id=int(number)))
    assert asked == [0, 50, 100]
    done = await read(client, headers, number)
    assert (done["status"], done["dry_run"], done["created"]) == ("DONE", True, 120)
    async with rt.db.read() as session:
        assert "source" not in ((await session.get_one(ImportRun, int(number))).options or {})
    assert await count_links(rt) == 0
    run = await client.post(f"/api/v1/links/imports/{number}/run", headers=headers)
    assert run.status_code == 202
    await run_link_import(rt, RunLinkImport(import_id=int(number)))
    assert await count_links(rt) == 120


async def test_a_wrong_key_stops_the_import_with_a_reason(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    async with installation(kutt(1, [])) as url:
        number = await begin(client, headers, url=url, key="wrong")
        await run_link_import(rt, RunLinkImport(import_id=int(number)))
    assert (await read(client, headers, number))["status"] == "STOPPED"
    ((shown, outcome, why),) = await read_rows(client, headers, number)
    assert (shown, outcome, why) == (url.removeprefix("http://"), "REFUSED", remote.REFUSED_MESSAGE)


async def test_a_server_that_is_away_is_tried_again(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    async with installation(lambda *_: (503, {})) as url:
        number = await begin(client, headers, url=url)
        with pytest.raises(TryAgain) as raised:
            await run_link_import(rt, RunLinkImport(import_id=int(number)))
    assert "secret-key" not in str(raised.value)
    assert (await read(client, headers, number))["status"] == "RUNNING"


async def test_a_key_goes_to_no_other_server_and_no_private_address(
    rt: Runtime, client: AsyncClient, headers: Headers
) -> None:
    seen: list[dict[str, str]] = []

    def note(_path: str, given: dict[str, str], _query: Any) -> tuple[int, Any]:
        seen.append(given)
        return 200, {"data": []}

    async with (
        installation(note) as other,
        installation(lambda *_: (302, f"{other}/api/v2/links")) as url,
    ):
        for base in (url, "http://10.0.0.1"):
            number = await begin(client, headers, url=base)
            await run_link_import(rt, RunLinkImport(import_id=int(number)))
            assert (await read(client, headers, number))["status"] == "STOPPED"
    assert seen == []


@pytest.mark.parametrize(
    "given", [{"url": "ftp://a.example"}, {"url": "https://a.example/?x=1"}, {"key": "a\r\nb: c"}]
)
async def test_sources_that_are_none_are_refused(
    client: AsyncClient, headers: Headers, given: dict[str, str]
) -> None:
    body = {"system": "kutt", "url": "https://kutt.example.com", "key": "k", **given}
    assert (await client.post(REMOTE, headers=headers, json=body)).status_code == 422
