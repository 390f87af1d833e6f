"""Every page on the data of the demo: nothing shifts, overflows, or opens inaccessibly.

The templates themselves are checked with sample data by `test_templates`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.accessibility import COLOUR_RULES, SETTLED, TOO_WIDE, find_violations
from tests.browser.visiting import Visit, silent, visit
from tests.serving import Served, refract, serving
from tests.waiting import eventually

__all__ = ["silent", "visit"]
pytestmark = pytest.mark.asyncio(loop_scope="session")
MAX_SHIFT = 0.02
WATCH_SHIFTS = """window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (!entry.hadRecentInput) {
      const moved = entry.sources.map((one) => one.node?.className || one.node?.nodeName);
      shifts.push([entry.value, ...moved]);
    }
  }
}).observe({ type: "layout-shift", buffered: true });"""
WATCH_LABELS = """window.labels = [];
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
  labels.push(text);
  return fillText.call(this, text, ...place);
};"""
# Charts are drawn by a script, and what a page asks for when it has loaded has come.
DRAWN = """() => [...document.querySelectorAll('[data-chart]')].every(
    (chart) => !chart.checkVisibility() || chart.querySelector('canvas, svg'))
  && document.querySelectorAll('.htmx-request').length === 0"""
# What opens something, once for each kind: a dialog, a drawer, a menu, a question, a fold.
KINDS = """const kinds = () => {
  const found = new Map();
  for (const one of document.querySelectorAll(
    '[data-dialog-open], [data-drawer], [data-row-menu], details:not([open]) > summary')) {
    if (!one.checkVisibility({ visibilityProperty: true })) continue;
    const plain = (text) => (text || '').replace(/[0-9]+/g, 'N');
    const kind = [one.tagName, one.className, one.dataset.dialogOpen, one.dataset.drawer,
      one.closest('details, form, section')?.className,
      plain(one.getAttribute('href')?.split('?')[0]),
      plain(one.closest('form')?.getAttribute('action'))].join('|');
    if (!found.has(kind)) found.set(kind, one);
  }
  return found;
};"""
OPENERS = f"() => {{ {KINDS} return [...kinds().keys()]; }}"
OPENER = f"(kind) => {{ {KINDS} return kinds().get(kind) ?? null; }}"
OPENED = "dialog[open], details[open], [role=menu]"
OPEN = "dialog[open], details[open] > :not(summary), [role=menu]"
IS_OPEN = f"() => [...document.querySelectorAll('{OPEN}')].some((one) => one.checkVisibility())"
PAGES = {
    "home": "/",
    "links": "/app/links",
    "links by tag": "/app/links?tag=marketing&sort=clicks",
    "new link": "/app/links/new",
    "link": "{link}",
    "link settings": "{link}?tab=settings",
    "link people": "{link}?tab=people",
    "link history": "{link}?tab=history",
    "edit link": "{link}/edit",
    "analytics": "/app/analytics",
    "lists": "/app/lists",
    "list builder": "{draft}",
    "published list": "{published}",
    "public list": "/reading",
    "library": "/app/library",
    "item": "{item}",
    "review": "/app/review",
    "imports": "/app/library/imports",
    "search": "/app/search?q=queue",
    "tags": "/app/tags",
    "teams": "/app/teams",
    "my tags": "/app/tags/mine",
    "rules": "/app/tags/rules",
    "settings": "/app/settings",
    "share": "/app/share?text=https://example.com/shared",
    "invitations": "/app/invitations",
    "admin": "/app/admin",
    "people": "/app/admin/people",
    "all links": "/app/admin/links",
    "all lists": "/app/admin/lists",
    "domains": "/app/admin/domains",
    "jobs": "/app/admin/jobs",
    "audit log": "/app/admin/audit",
    "reports": "/app/admin/reports",
    "deleted accounts": "/app/admin/barred",
    "blocked domains": "/app/admin/blocked-domains",
    "API docs": "/api/docs",
    "API of links": "/api/docs/links",
    "preview": "/roadmap+",
}
_tried: set[str] = set()
_openers: dict[str, list[str]] = {}
"""What opens something on each page that has been loaded, by the name of the page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the data of the demo."""
    data = tmp_path_factory.mktemp("demo") / "data"
    made = refract("demo", "--data-dir", str(data))
    assert made.returncode == 0, made.stderr
    with serving(data) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(visit: Visit) -> dict[str, str]:
    """The pages of the demo's objects."""
    links = (await visit.ask("GET", "/api/v1/links?q=jira")).json()["items"]
    lists = (await visit.ask("GET", "/api/v1/lists")).json()["items"]
    items = (await visit.ask("GET", "/api/v1/library?q=queue")).json()["items"]
    by_status = {made["status"]: made["id"] for made in lists}
    return {
        "link": f"/app/links/{links[0]['id']}",
        "draft": f"/app/lists/{by_status['draft']}",
        "published": f"/app/lists/{by_status['published']}",
        "item": f"/app/library/{items[0]['id']}",
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tab(visit: Visit) -> AsyncIterator[Page]:
    """A page of its own, since a new one starts a process."""
    tab = await visit.context.new_page()
    await tab.add_init_script(WATCH_SHIFTS)
    yield tab
    await tab.close()


async def _load(tab: Page, path: str, width: int) -> None:
    await tab.set_viewport_size({"width": width, "height": 800})
    await tab.emulate_media(color_scheme="light")
    answer = await tab.goto(path, wait_until="load")
    assert answer is not None
    assert answer.status == 200, path
    await eventually(lambda: tab.evaluate(DRAWN), pause=0.1)
    await tab.evaluate(SETTLED)


@pytest.mark.parametrize("name", PAGES)
async def test_nothing_shifts_or_overflows(tab: Page, places: dict[str, str], name: str) -> None:
    for width in (320, 1280):
        await _load(tab, PAGES[name].format(**places), width)
        shifts = await tab.evaluate("shifts")
        assert sum(shift[0] for shift in shifts) <= MAX_SHIFT, (width, shifts)
        assert await tab.evaluate(TOO_WIDE) == [], width
    _openers[name] = await tab.evaluate(OPENERS)


@pytest.mark.parametrize("name", PAGES)
async def test_everything_that_opens_is_accessible(
    tab: Page, places: dict[str, str], name: str
) -> None:
    path = PAGES[name].format(**places)
    if name not in _openers:
        await _load(tab, path, 1280)
        _openers[name] = await tab.evaluate(OPENERS)
    for kind in _openers[name]:
        if kind in _tried:  # on an earlier page
            continue
        _tried.add(kind)
        await _load(tab, path, 1280)
        await _open(tab, kind)
        await tab.evaluate(SETTLED)  # faint while it fades in
        assert (kind, await find_violations(tab, within=OPENED)) == (kind, [])
        await tab.emulate_media(color_scheme="dark")
        assert (kind, await find_violations(tab, COLOUR_RULES, within=OPENED)) == (kind, [])
        await tab.emulate_media(color_scheme="light")
        await tab.set_viewport_size({"width": 320, "height": 800})
        await tab.evaluate(SETTLED)
        assert await tab.evaluate(TOO_WIDE) == [], kind


async def test_the_analytics_of_a_link_fit_into_two_screens(
    tab: Page, places: dict[str, str]
) -> None:
    await _load(tab, places["link"] + "?tab=analytics", 1280)
    assert await tab.evaluate("document.documentElement.scrollHeight") <= 2 * 800


async def test_the_axis_of_a_chart_is_in_the_zone_of_the_user(visit: Visit, tab: Page) -> None:
    """Months were labelled by their last days, and hours of several days without the day."""
    await tab.add_init_script(WATCH_LABELS)
    chosen = await visit.ask("PATCH", "/api/v1/me", preferences={"time_zone": "Pacific/Auckland"})
    assert chosen.status_code == 200, chosen.text
    try:
        await _load(tab, "/app/analytics?range=12m&by=month", 1280)
        months = [text for text in await tab.evaluate("labels") if re.search("[A-Za-z]", text)]
        assert months
        assert all(re.fullmatch(r"[A-Z][a-z]{2}( \d{4})?", text) for text in months), months
        today = datetime.now(ZoneInfo("Pacific/Auckland")).date()
        span = f"from={today - timedelta(days=2)}&to={today}"
        await _load(tab, f"/app/analytics?{span}&by=hour", 1280)
        texts = await tab.evaluate("labels")
        days = {text for text in texts if re.fullmatch(r"[A-Z][a-z]{2} \d+", text)}
        assert len(days) >= 2, texts
    finally:
        await visit.ask("PATCH", "/api/v1/me", preferences={"time_zone": None})


async def test_the_map_shows_every_country(tab: Page) -> None:
    """It showed those alone that are among the rows of the panel."""
    await _load(tab, "/app/analytics/details/countries", 1280)
    listed = await tab.locator(".bar-label").all_inner_texts()
    await _load(tab, "/app/analytics", 1280)
    await tab.locator("[data-map]").scroll_into_view_if_needed()
    await expect(tab.locator("[data-map] a")).to_have_count(len(listed))
    assert len(listed) > 10


async def _open(tab: Page, kind: str) -> None:
    opener = (await tab.evaluate_handle(OPENER, kind)).as_element()
    assert opener is not None, kind
    await opener.click()
    await eventually(lambda: tab.evaluate(IS_OPEN), pause=0.05)
    await expect(tab.locator(".htmx-request")).to_have_count(0)
