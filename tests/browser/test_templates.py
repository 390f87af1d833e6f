"""Every template at three widths, light and dark: accessible, no console errors or requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from refract.app import TEMPLATES
from refract.web.static_files import STATIC
from refract.web.templating import template_loader
from tests.browser.accessibility import FAINT, SETTLED, THEMES, TOO_WIDE, find_violations
from tests.browser.samples import PAGES

JUDGED: list[tuple[int, Literal["light", "dark"], Literal["light", "dark"]]] = [
    (320, "light", "dark"),
    (1280, "dark", "light"),
]
"""Widths, each with the theme that axe judges there and the one whose contrast is computed: all
that a theme changes are colours.
"""
SIZE_RULES = ("scrollable-region-focusable", "target-size")
"""For 768 pixels: what is shown there is shown at 320 or 1280 as well, but not in the same size."""
FADED = """
<style>
  div { background: rgb(0 0 0 / 60%); padding: 9px } b { font-weight: 400; display: block }
  .large { font-size: 24px }
</style>
<main><h1>Faded</h1>
  <div><b style="color: #fff">fine</b><b style="color: #bbb">faint</b></div>
  <b style="color: #767676">fine</b><b style="color: #777">faint</b>
  <b class="large" style="color: #949494">fine</b><b class="large" style="color: #999">faint</b>
  <b style="color: #000; opacity: 0.5">faint</b><b style="color: rgb(0 0 0 / 60%)">fine</b>
  <button disabled style="color: #999">disabled</button>
</main>"""
DRAWN_ANIMATIONS = """async () => {
  const draw = () => new Promise((done) => requestAnimationFrame(done));
  await draw();
  await draw();
  return document.getAnimations().length;
}"""
WATCH_CSP = """window.refused = [];
document.addEventListener('securitypolicyviolation', (e) =>
  refused.push(e.violatedDirective + ' ' + e.blockedURI))"""


@dataclass
class Watched:
    """A page and its console messages since they were last read."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    hosts: set[str | None] = field(default_factory=set)


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


def test_a_theme_changes_nothing_but_colours() -> None:
    """`light-dark()` is for colours alone; anything may depend on a media query."""
    sheets = [file for file in STATIC.rglob("*.css") if "prefers-color-scheme" in file.read_text()]
    assert sheets == []


@pytest.mark.asyncio(loop_scope="session")
async def test_contrast_is_computed_as_by_axe(watched: Watched) -> None:
    await watched.page.goto("about:blank")
    await watched.page.set_content(FADED)

    [(rule, nodes)] = await find_violations(watched.page, ["color-contrast"])
    faint = await watched.page.evaluate(FAINT)

    assert [node.partition(" ")[2] for node in faint] == nodes
    assert rule == "color-contrast"
    assert len(nodes) == FADED.count(">faint<")


@pytest.mark.asyncio(loop_scope="session")
async def test_reduced_motion_starts_no_transition(gallery_url: str, watched: Watched) -> None:
    """A transition of 1 ms was one of every property of every element: 859 for one theme."""
    await watched.page.set_viewport_size({"width": 320, "height": 800})
    await watched.page.emulate_media(color_scheme="light")
    await watched.page.goto(f"{gallery_url}/sample/list-team", wait_until="load")
    await watched.page.evaluate(SETTLED)

    await watched.page.emulate_media(color_scheme="dark")

    assert await watched.page.evaluate(DRAWN_ANIMATIONS) == 0


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", PAGES)
async def test_template(gallery_url: str, watched: Watched, name: str) -> None:
    watched.complaints.clear()
    watched.hosts.clear()
    await watched.page.set_viewport_size({"width": 320, "height": 800})

    answer = await watched.page.goto(f"{gallery_url}/sample/{name}", wait_until="load")
    assert answer is not None
    assert answer.status == 200

    for width, theme, other in JUDGED:
        await watched.page.set_viewport_size({"width": width, "height": 800})
        await watched.page.emulate_media(color_scheme=theme)
        assert (width, await find_violations(watched.page)) == (width, [])
        assert (width, await watched.page.evaluate(TOO_WIDE)) == (width, [])
        await watched.page.emulate_media(color_scheme=other)
        await watched.page.evaluate(SETTLED)
        assert (width, await watched.page.evaluate(FAINT)) == (width, [])
    await watched.page.set_viewport_size({"width": 768, "height": 800})
    assert await find_violations(watched.page, SIZE_RULES) == []
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

    assert await find_violations(watched.page) == []
    assert await watched.page.evaluate(TOO_WIDE) == []
