"""The API page is generated from the OpenAPI document."""

import re
from dataclasses import replace
from itertools import product

import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.extraction.pool import ExtractionPool
from refract.core.runtime import Runtime
from refract.home import api_docs
from refract.web.api_docs import build_sections, describe_schema
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.loop_cpu import measure_loop_cpu

PAGES = ("/api/docs", "/api/docs/links")


@on_sqlite
async def test_every_operation_and_error_code_is_on_the_page(
    app: WebNode, client: AsyncClient
) -> None:
    document = app.api.openapi()
    overview = (await client.get("/api/docs")).text
    sections = {
        tag["name"]: (await client.get(f"/api/docs/{tag['name']}")).text for tag in document["tags"]
    }

    for path, methods in document["paths"].items():
        for operation in methods.values():
            [tag], operation_id = operation["tags"], operation["operationId"]
            assert f'<code class="api-path">{path}</code>' in sections[tag]
            assert f'id="{operation_id}"' in sections[tag]
            assert f'id="{operation_id}"' in overview
            assert f'href="/api/docs/{tag}#{operation_id}"' in overview
    assert "SCOPE_NOT_ALLOWED" in overview + "".join(sections.values())
    assert "{scope}" not in overview + "".join(sections.values())


@on_sqlite
async def test_a_section_that_does_not_exist_is_not_found(client: AsyncClient, rt: Runtime) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))
    for headers in ({}, browser):
        for path in ("/api/docs/nothing", "/api/docs/Links", "/api/docs/<b>"):
            answer = await client.get(path, headers={"Accept": "text/html"} | headers)
            assert answer.status_code == 404, path
            assert "<b>" not in answer.text.partition("<main")[2].partition("<h1")[0]


@on_sqlite
async def test_the_pages_stay_small_however_many_operations_there_are(
    app: WebNode, client: AsyncClient
) -> None:
    """Regression: all on one page were 970 kB and 16,000 elements."""
    tags = [tag["name"] for tag in app.api.openapi()["tags"]]
    for path in ("/api/docs", *(f"/api/docs/{tag}" for tag in tags)):
        page = (await client.get(path)).text
        assert len(page) < 300_000, path
        assert page.count("</") < 5_000, path


@on_sqlite
async def test_it_has_no_inline_script_or_style_and_nothing_from_elsewhere(
    client: AsyncClient, rt: Runtime
) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))
    for path, headers in product(PAGES, ({}, browser)):
        page = (await client.get(path, headers=headers)).text
        assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=", page)
        assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*"', page)


@on_sqlite
async def test_the_example_for_the_terminal_is_whole(app: WebNode) -> None:
    [create] = [
        one
        for chapter in build_sections(app.api.openapi())
        for one in chapter.operations
        if one.id == "create_key"
    ]

    assert create.snippets["curl"] == (
        "curl -X POST http://go.test/api/v1/keys \\\n"
        """  -H "X-API-Key: $API_KEY" \\\n"""
        """  -H 'Content-Type: application/json' \\\n"""
        """  -d '{"name": "Blog automation", "scopes": ["read", "write"]}'"""
    )
    assert create.scope == "account"


@on_sqlite
async def test_snippets_are_programs_of_their_language(app: WebNode) -> None:
    for chapter in build_sections(app.api.openapi()):
        for operation in chapter.operations:
            compile(operation.snippets["python"], operation.id, "exec")
            assert operation.snippets["javascript"].count("{") == (
                operation.snippets["javascript"].count("}")
            )


@on_sqlite
async def test_a_section_begins_with_what_one_does_first(app: WebNode) -> None:
    first = {
        chapter.name: [operation.id for operation in chapter.operations[:3]]
        for chapter in build_sections(app.api.openapi())
    }

    assert first["links"] == ["create_link", "list_links", "read_link"]
    assert first["lists"][:2] == ["create_list", "list_lists"]
    assert first["keys"] == ["create_key", "list_keys", "revoke_key"]


@on_sqlite
async def test_a_search_leaves_the_operations_that_it_finds(client: AsyncClient) -> None:
    """Without script the form is sent; with one, the same words are searched in the index."""
    page = (await client.get("/api/docs?q=revoke+key")).text

    assert 'id="revoke_key"' in page
    assert 'id="create_link"' not in page
    assert "No results" in (await client.get("/api/docs?q=nonsense-xyz")).text


@on_sqlite
async def test_texts_have_code_instead_of_backticks(client: AsyncClient) -> None:
    page, links = [(await client.get(path)).text for path in PAGES]
    outside = re.sub(r"<pre.*?</pre>|data-\S+=\"[^\"]*\"", "", page + links, flags=re.DOTALL)

    assert "`" not in outside
    for title in ("Authentication", "Pagination", "Idempotency", "Conditional requests"):
        assert f">{title}</h2>" in page
    assert "The answer" not in page


def test_values_are_described_in_words() -> None:
    schemas = {"Colour": {"enum": ["red", "blue"]}}

    assert (
        describe_schema({"type": "string", "minLength": 1, "maxLength": 9}, schemas)
        == "text, 1 to 9 characters"
    )
    assert (
        describe_schema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, schemas)
        == "whole number, at least 1 or null"
    )
    assert (
        describe_schema(
            {"type": "array", "items": {"$ref": "#/components/schemas/Colour"}}, schemas
        )
        == "list of one of red, blue"
    )
    lists = {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 9}}
    assert describe_schema(lists, schemas) == "list of texts of at most 9 characters, at most 50"
    assert describe_schema({"type": "string", "format": "date-time"}, schemas) == "date and time"


@on_sqlite
async def test_it_is_prepared_once_compressed_and_answered_by_its_etag(client: AsyncClient) -> None:
    """Regression: each request took 58 ms (page) or 28 ms (document) of the event loop."""
    for path in (*PAGES, "/api/openapi.json"):
        first = await client.get(path)
        assert first.headers["content-encoding"] == "gzip"
        assert int(first.headers["content-length"]) < 100_000, path
        with measure_loop_cpu() as cpu:
            again = await client.get(path)
            plain = await client.get(path, headers={"Accept-Encoding": "identity"})
            known = await client.get(path, headers={"If-None-Match": first.headers["etag"]})
        cpu.assert_below()
        assert again.content == plain.content == first.content
        assert "content-encoding" not in plain.headers
        assert (known.status_code, known.content) == (304, b"")


@on_sqlite
async def test_it_is_built_outside_of_the_loop(client: AsyncClient, rt: Runtime) -> None:
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, await make.person(session, rt)))
    await client.get("/", headers=browser)
    await client.get("/")

    with measure_loop_cpu() as cpu:
        for path in (*PAGES, "/api/openapi.json"):
            await client.get(path)
            for page in PAGES:
                assert "Sign out" in (await client.get(page, headers=browser)).text

    cpu.assert_below()


@on_sqlite
async def test_the_routes_are_analysed_in_a_process_that_ends(
    app: WebNode, client: AsyncClient, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the analysis left 24 MB in the serving process."""
    broken = replace(api_docs.DESCRIBE_API, function="refract.app:nothing")
    with monkeypatch.context() as patch:
        patch.setattr(api_docs, "DESCRIBE_API", broken)
        failed = await client.get("/api/openapi.json")
    assert (failed.status_code, failed.json()["code"]) == (503, "API_DOCS_UNAVAILABLE")

    document = await client.get("/api/openapi.json")

    assert rt.singleton(ExtractionPool).process_count == 0
    assert app.api.openapi.cache_info().currsize == 0  # type: ignore[attr-defined]
    assert document.json() == app.api.openapi()
