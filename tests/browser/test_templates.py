"""Every template, at three widths, in light and dark: readable by everyone, silent in the console, alone on the network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

from tests.browser.gallery import WEB
from tests.browser.samples import PAGES

SIZES = [320, 768, 1280]
THEMES = ["light", "dark"]
WATCH_CSP = """window.refused = [];
document.addEventListener('securitypolicyviolation', (e) => refused.push(e.violatedDirective + ' ' + e.blockedURI))"""
# Elements that stick out of the page, named so that a failure says where to look. The client's width: the window's includes the scrollbar.
TOO_WIDE = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return [];
  const out = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > page.clientWidth + 0.5);
  return [`${page.scrollWidth} > ${page.clientWidth}`, ...out.slice(0, 5).map((e) => e.tagName + '.' + e.getAttribute('class'))];
}"""


@dataclass
class Watched:
    """A page and what it has complained about since it was last asked."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    hosts: set[str | None] = field(default_factory=set)


async def watch(browser: Browser, width: int, theme: Any) -> Watched:
    context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme, reduced_motion="reduce")
    await context.add_init_script(WATCH_CSP)
    watched = Watched(await context.new_page())
    watched.page.on("console", lambda message: watched.complaints.append(message.text) if message.type in {"error", "warning"} else None)
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("requestfailed", lambda request: watched.complaints.append(f"failed: {request.url}"))
    watched.page.on("request", lambda request: watched.hosts.add(urlsplit(request.url).hostname))
    return watched


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def screens(chromium: Browser) -> AsyncIterator[dict[tuple[int, str], Watched]]:
    yield {(width, theme): await watch(chromium, width, theme) for width in SIZES for theme in THEMES}


def test_every_template_has_a_sample() -> None:
    frames = {"base.html", "frame.html", "public.html"}
    templates = {path.name for path in (WEB / "templates").glob("*.html")}
    assert templates - frames <= {page.template for page in PAGES.values()}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", PAGES)
async def test_template(gallery_url: str, screens: dict[tuple[int, str], Watched], name: str, width: int, theme: str) -> None:
    watched = screens[width, theme]
    watched.complaints.clear()
    watched.hosts.clear()

    answer = await watched.page.goto(f"{gallery_url}/sample/{name}", wait_until="load")
    results = await Axe().run(watched.page, options={"resultTypes": ["violations"]})

    assert answer is not None
    assert answer.status == 200
    grave = [violation for violation in results.response["violations"] if violation["impact"] in {"serious", "critical"}]
    assert [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in grave] == []
    assert await watched.page.evaluate("refused") == []
    assert await watched.page.evaluate(TOO_WIDE) == []
    assert watched.complaints == []
    assert watched.hosts == {"127.0.0.1"}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "opener",
    ["[data-dialog-open=new-link]", "[data-dialog-open=sample-dialog]", ".menu summary", ".confirm summary", ".chart-figures summary"],
)
async def test_what_unfolds(gallery_url: str, screens: dict[tuple[int, str], Watched], opener: str, theme: str) -> None:
    watched = screens[320, theme]
    await watched.page.goto(f"{gallery_url}/sample/parts", wait_until="load")
    while await watched.page.locator("#toasts [data-toast]").count():
        await watched.page.locator("[data-toast-close]").first.click()
    await watched.page.locator(opener).first.click()

    results = await Axe().run(watched.page, options={"resultTypes": ["violations"]})

    assert [violation["id"] for violation in results.response["violations"] if violation["impact"] in {"serious", "critical"}] == []
    assert await watched.page.evaluate(TOO_WIDE) == []
