"""The documentation as a website: opened from a directory, searched, and nothing from elsewhere."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, expect

from tests.browser.accessibility import find_violations
from tools.site.__main__ import ROOT, build, read_navigation, write_versions

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages of this version. A link that leads nowhere would fail the build."""
    target = tmp_path_factory.mktemp("site")
    return build(target)


@pytest.mark.parametrize(
    ("page", "scheme"), [("index", "dark"), ("how-to/rules", "light"), ("tutorial", "dark")]
)
async def test_pages_are_accessible_and_load_nothing_from_elsewhere(
    chromium: Browser, site: Path, page: str, scheme: str
) -> None:
    requests: list[str] = []

    def keep(request: Request) -> None:
        requests.append(request.url)

    context = await chromium.new_context(color_scheme="dark" if scheme == "dark" else "light")
    try:
        tab = await context.new_page()
        tab.on("request", keep)
        await tab.goto((site / f"{page}.html").as_uri())
        await expect(tab.locator("h1")).to_be_visible()
        await expect(tab.locator(".md-header")).to_be_visible()

        assert await find_violations(tab) == []
        assert [url for url in requests if not url.startswith("file:")] == []
    finally:
        await context.close()


async def test_the_search_finds_pages_without_a_server(chromium: Browser, site: Path) -> None:
    context = await chromium.new_context()
    try:
        tab: Page = await context.new_page()
        await tab.goto((site / "how-to/lists.html").as_uri())
        await tab.get_by_role("textbox", name="Search").fill("first link minute")
        found = tab.locator(".md-search-result__link").first
        await expect(found).to_contain_text("Your first link")
        await found.click()
        await expect(tab.locator("h1")).to_contain_text("Your first link, in a minute")
    finally:
        await context.close()


async def test_every_page_has_its_place() -> None:
    listed = [
        page
        for section in read_navigation(ROOT / "docs")
        for entries in section.values()
        for entry in ([entries] if isinstance(entries, str) else entries)
        for page in ([entry] if isinstance(entry, str) else entry.values())
    ]
    pages = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages)


async def test_older_versions_stay_and_the_first_page_leads_to_the_newest(tmp_path: Path) -> None:
    for version in ("0.9.0", "0.10.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").write_text("")
    write_versions(tmp_path)
    assert 'url=0.10.0/index.html"' in (tmp_path / "index.html").read_text()
    assert (tmp_path / "versions.json").read_text().index("0.10.0") < (
        tmp_path / "versions.json"
    ).read_text().index("0.9.0")
