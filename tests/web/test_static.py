"""Static files: one digest, few stylesheets, no waterfall of modules."""

import re

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.web.static_files import (
    STATIC,
    list_imports,
    read_static,
    static,
    static_digest,
    static_files,
)
from tests import make
from tests.client import by_cookie, on_sqlite


def test_every_file_lies_below_the_same_digest() -> None:
    assert {static(name).split("/")[2] for name in static_files()} == {static_digest()}
    with pytest.raises(KeyError):
        static("js/absent.js")


def test_every_stylesheet_is_in_one_that_pages_load() -> None:
    bundles = [path for path in (STATIC / "css").glob("*.css") if "@import" in path.read_text()]
    imported = [
        name for path in bundles for name in re.findall(r'@import "([^"]+)"', path.read_text())
    ]
    files = [
        path.relative_to(STATIC / "css").as_posix() for path in (STATIC / "css").rglob("*.css")
    ]
    assert sorted([*imported, *(path.name for path in bundles)]) == sorted(files)
    for path in bundles:
        served = read_static(f"css/{path.name}").decode()
        assert "@import" not in served
        assert "/*" not in served
        assert served.count("{") == served.count("}")
        layers = len(re.findall(r"^@layer \w+ \{$", served, re.MULTILINE))
        assert layers == len(re.findall(r"@import .* layer\(", path.read_text()))


def test_only_comments_and_indentation_are_left_out_of_scripts() -> None:
    for path in (STATIC / "js").glob("*.js"):
        lines = [line.strip() for line in path.read_text().splitlines()]
        code = [line for line in lines if not line.startswith(("//", "/**", "* ", "*/"))]
        code = [line for line in code if line != "*"]
        served = read_static(f"js/{path.name}").decode().splitlines()
        assert [line for line in served if line] == [line for line in code if line]
        within_one_line = [line.count("`") % 2 == 0 for line in code]
        assert all(within_one_line), f"{path.name}: a text over several lines has indentation"


@on_sqlite
@pytest.mark.parametrize("path", ["/", "/app/links/new", "/app/lists", "/app/library"])
async def test_what_modules_import_is_loaded_beside_them(
    client: AsyncClient, rt: Runtime, path: str
) -> None:
    async with rt.db.write() as session:
        user = await make.person(session, rt)
        browser = by_cookie(rt, await make.cookie(session, rt, user))
    head = (await client.get(path, headers=browser)).text.partition("</head>")[0]
    modules = re.findall(r'<script type="module" src="/static/\w+/js/(\w+)\.js"', head)
    preloaded = re.findall(r'<link rel="modulepreload" href="/static/\w+/js/(\w+)\.js"', head)
    needed = {name for module in modules for name in list_imports(module)}
    assert sorted(preloaded) == sorted(needed), "each once, and nothing else"


def test_imports_of_imports_are_found() -> None:
    assert "tag_field" in list_imports("link_form")
    assert list_imports("omnibox") == ("dom", "feedback", "http", "i18n", "recent", "toast")


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
