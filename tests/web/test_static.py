"""Static files: one digest, one stylesheet, no waterfall of modules."""

import re

import pytest
from httpx import AsyncClient

from refract.web.static_files import (
    STATIC,
    STYLESHEET,
    read_static,
    static,
    static_digest,
    static_files,
)
from tests.client import on_sqlite

IMPORT = re.compile(r'^import .*?from "\./([\w.]+)";$', re.MULTILINE | re.DOTALL)


def test_every_file_lies_below_the_same_digest() -> None:
    assert {static(name).split("/")[2] for name in static_files()} == {static_digest()}
    with pytest.raises(KeyError):
        static("js/absent.js")


def test_the_stylesheet_holds_every_stylesheet_once() -> None:
    served = read_static(STYLESHEET).decode()
    imported = re.findall(r'@import "([^"]+)"', (STATIC / STYLESHEET).read_text())
    files = [
        path.relative_to(STATIC / "css").as_posix() for path in (STATIC / "css").rglob("*.css")
    ]
    assert sorted([*imported, "app.css"]) == sorted(files)
    assert "@import" not in served
    assert "/*" not in served
    assert served.count("{") == served.count("}")
    assert len(re.findall(r"^@layer \w+ \{$", served, re.MULTILINE)) == len(imported) - 1, (
        "all but the fonts are in a layer"
    )


@on_sqlite
async def test_what_modules_import_is_preloaded_by_every_page(client: AsyncClient) -> None:
    page = (await client.get("/")).text
    preloaded = set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', page))
    imported = {
        static(f"js/{name}")
        for module in (STATIC / "js").glob("*.js")
        for name in IMPORT.findall(module.read_text())
    }
    assert imported == preloaded


@on_sqlite
@pytest.mark.parametrize(
    "name",
    ["css/tokens.css", "css/pages/home.css", "js/dom.js", "vendor/htmx.min.js", "inter.woff2"],
)
async def test_a_file_in_a_folder_is_served(client: AsyncClient, name: str) -> None:
    response = await client.get(static(name))
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert response.content == read_static(name)


@on_sqlite
@pytest.mark.parametrize(
    "name",
    [
        "",
        "js",
        "js/",
        "js//dom.js",
        "%2e%2e/render.py",
        "js/%2e%2e/js/dom.js",
        "%2Fetc%2Fpasswd",
        "js/absent.js",
    ],
)
async def test_only_names_of_files_are_served(client: AsyncClient, name: str) -> None:
    response = await client.get(f"/static/{static_digest()}/{name}", follow_redirects=True)
    assert response.status_code == 404


@on_sqlite
async def test_a_page_of_another_version_gets_the_file_of_today(client: AsyncClient) -> None:
    response = await client.get("/static/0123456789/js/dom.js")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-cache"
