"""Every template at three widths, light and dark: accessible, no console errors or requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Browser, Page

from refract.app import TEMPLATES
from refract.web.templating import template_loader
from tests.browser.samples import PAGES

SIZES = [320, 768, 1280]
THEMES: list[Literal["light", "dark"]] = ["light", "dark"]
AXE = Path(AXE_FILE_PATH).read_text()
EVERYTHING: dict[str, Any] = {"resultTypes": ["violations"]}
# A new width or theme has been drawn, and whatever moves or fades because of it has ended.
SETTLED = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.allSettled(document.getAnimations().map((one) => one.finished));
  await new Promise((done) => requestAnimationFrame(done));
}"""
# Names and roles do not depend on how wide or dark a page is; these rules may.
SIZE_RULES = ["scrollable-region-focusable", "target-size"]
LOOKS = [
    *SIZE_RULES,
    "color-contrast",
    "link-in-text-block",
    "aria-hidden-focus",
    "label",
    "select-name",
]


def _only(rules: list[str]) -> dict[str, Any]:
    return {"resultTypes": ["violations"], "runOnly": {"type": "rule", "values": rules}}


# Colours are compared at both ends: what a page of 768 pixels shows, one of the two shows as well.
JUDGED: dict[tuple[str, int], dict[str, Any]] = {
    ("light", 320): EVERYTHING,
    ("light", 768): _only(SIZE_RULES),
    ("light", 1280): _only(LOOKS),
    ("dark", 320): _only(LOOKS),
    ("dark", 1280): EVERYTHING,
}
WATCH_CSP = """window.refused = [];
document.addEventListener('securitypolicyviolation', (e) =>
  refused.push(e.violatedDirective + ' ' + e.blockedURI))"""
# Elements that overflow the page, named so that a failure says where to look. The client's width
# is used, since the window's includes the scrollbar.
TOO_WIDE = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return [];
  const out = [...document.querySelectorAll('body *')]
    .filter((e) => e.getBoundingClientRect().right > page.clientWidth + 0.5);
  const names = out.slice(0, 5).map((e) => e.tagName + '.' + e.getAttribute('class'));
  return [`${page.scrollWidth} > ${page.clientWidth}`, ...names];
}"""


@dataclass
class Watched:
    """A page and its console messages since they were last read."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    hosts: set[str | None] = field(default_factory=set)

    async def judge(self, options: dict[str, Any]) -> list[tuple[str, list[str]]]:
        """Return serious and critical findings of axe on the current page."""
        if not await self.page.evaluate("typeof axe === 'object'"):
            await self.page.evaluate(AXE)
        await self.page.evaluate(SETTLED)
        found = await self.page.evaluate("(options) => axe.run(document, options)", options)
        grave = [one for one in found["violations"] if one["impact"] in {"serious", "critical"}]
        return [(one["id"], [node["html"] for node in one["nodes"]]) for one in grave]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def watched(chromium: Browser) -> AsyncIterator[Watched]:
    """A page for all samples: it is resized and re-themed instead of reloaded."""
    context = await chromium.new_context(
        viewport={"width": 320, "height": 800}, color_scheme="light", reduced_motion="reduce"
    )
    await context.add_init_script(WATCH_CSP)
    watched = Watched(await context.new_page())
    watched.page.on(
        "console",
        lambda message: (
            watched.complaints.append(message.text)
            if message.type in {"error", "warning"}
            else None
        ),
    )
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on(
        "requestfailed", lambda request: watched.complaints.append(f"failed: {request.url}")
    )
    watched.page.on("request", lambda request: watched.hosts.add(urlsplit(request.url).hostname))
    yield watched
    await context.close()


def test_every_template_has_a_sample() -> None:
    frames = {"base.html", "frame.html", "public.html", "admin/frame.html"}
    templates = {
        name for name in template_loader(*TEMPLATES).list_templates() if not _is_partial(name)
    }
    assert templates - frames <= {page.template for page in PAGES.values()}


def _is_partial(name: str) -> bool:
    """Return whether a template is a partial: a component, or a feature's (`links/_row.html`)."""
    return name.startswith("components/") or "/_" in name


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", PAGES)
async def test_template(gallery_url: str, watched: Watched, name: str) -> None:
    watched.complaints.clear()
    watched.hosts.clear()
    await watched.page.set_viewport_size({"width": 320, "height": 800})
    await watched.page.emulate_media(color_scheme="light")

    answer = await watched.page.goto(f"{gallery_url}/sample/{name}", wait_until="load")
    assert answer is not None
    assert answer.status == 200

    for theme in THEMES:
        await watched.page.emulate_media(color_scheme=theme)
        for width in SIZES:
            await watched.page.set_viewport_size({"width": width, "height": 800})
            await watched.page.evaluate(SETTLED)
            if options := JUDGED.get((theme, width)):
                assert (theme, width, await watched.judge(options)) == (theme, width, [])
            assert await watched.page.evaluate(TOO_WIDE) == []
    assert await watched.page.evaluate("refused") == []
    assert watched.complaints == []
    assert watched.hosts == {"127.0.0.1"}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "opener",
    [
        "[data-dialog-open=new-link]",
        "[data-dialog-open=sample-dialog]",
        ".menu summary",
        ".confirm summary",
        ".chart-figures summary",
    ],
)
async def test_what_unfolds(gallery_url: str, watched: Watched, opener: str, theme: Any) -> None:
    await watched.page.set_viewport_size({"width": 320, "height": 800})
    await watched.page.emulate_media(color_scheme=theme)
    await watched.page.goto(f"{gallery_url}/sample/parts", wait_until="load")
    while await watched.page.locator("#toasts [data-toast]").count():
        await watched.page.locator("[data-toast-close]").first.click()
    await watched.page.locator(opener).first.click()

    assert await watched.judge(EVERYTHING) == []
    assert await watched.page.evaluate(TOO_WIDE) == []
