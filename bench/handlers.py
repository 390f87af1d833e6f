"""How long do our scripts hold up the browser, on the data of the demo?

    python -m bench handlers [--top N]

A real server with the demo's data, and Chromium with its tracing on: pages are opened, and what
people do there is done, by mouse and keyboard. Every event handler, timer, module and callback of
`/static/` is measured by the CPU time of the page's thread, so that a busy machine changes little.
The bar is 50 ms for each. Exit status 1 if one takes longer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

from bench.page_weight import FLAGS
from tests.serving import Served, refract, serving

BAR_MS = 50.0
CATEGORIES = "devtools.timeline,disabled-by-default-devtools.timeline"
ENTRY_POINTS = frozenset(
    {"FunctionCall", "EvaluateScript", "v8.evaluateModule", "TimerFire", "FireAnimationFrame"}
)


@dataclass(frozen=True)
class Call:
    """One entry into a script, and what it cost."""

    doing: str
    where: str
    cpu_ms: float


def _walk_home(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("road")
    page.wait_for_timeout(500)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.keyboard.press("Escape")


def _walk_links(page: Page) -> None:
    page.goto("/app/links")
    page.locator("#filter-q").fill("example")
    page.wait_for_timeout(600)
    for key in ("Escape", "j", "j", "x", "Shift+J", "Shift+J", "k", "Escape", "n"):
        page.keyboard.press(key)
    destination = page.locator("#drawer [name=destination]")
    destination.press_sequentially("https://docs.example.com/a?utm_source=x", delay=5)
    page.wait_for_timeout(800)


def _walk_link(page: Page) -> None:
    page.goto("/app/links?sort=clicks")
    page.locator("[data-row-open]").first.click()
    page.wait_for_timeout(1_000)
    chart = page.locator("[data-chart]").first
    chart.hover()
    page.mouse.move(500, 400)
    page.mouse.move(700, 400)
    page.wait_for_timeout(300)


def _walk_analytics(page: Page) -> None:
    page.goto("/app/analytics")
    page.wait_for_timeout(1_500)
    page.locator("[data-chart]").first.hover()
    page.locator("main .bars a").first.click()
    page.wait_for_timeout(1_500)


def _walk_lists(page: Page) -> None:
    page.goto("/app/lists")
    page.get_by_role("link", name="Offsite").first.click()
    page.locator("#about input[name=title]").press_sequentially(" (two)", delay=5)
    page.locator("[data-entry] [data-move='1']").first.click()
    page.wait_for_timeout(1_000)


def _walk_library(page: Page) -> None:
    page.goto("/app/library")
    page.locator("main [data-key=n]").fill("queue")
    page.wait_for_timeout(600)
    page.goto("/app/review")
    for key in ("1", "2", "y", "n", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.wait_for_timeout(800)


def _walk_docs(page: Page) -> None:
    page.goto("/api/docs")
    page.locator("input[type=search]").first.press_sequentially("links", delay=5)
    page.wait_for_timeout(500)


STORIES: tuple[tuple[str, Callable[[Page], None]], ...] = (
    ("home and command bar", _walk_home),
    ("links, selection, new link", _walk_links),
    ("a link and its chart", _walk_link),
    ("analytics and a filter", _walk_analytics),
    ("list builder", _walk_lists),
    ("library and review", _walk_library),
    ("API docs and their search", _walk_docs),
)


def trace(
    devtools: CDPSession, page: Page, doing: str, story: Callable[[Page], None]
) -> list[Call]:
    """Do what a story says; return every entry into a script of ours."""
    events: list[dict[str, Any]] = []
    done: list[bool] = []
    devtools.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    devtools.on("Tracing.tracingComplete", lambda _: done.append(True))
    devtools.send("Tracing.start", {"categories": CATEGORIES, "transferMode": "ReportEvents"})
    story(page)
    devtools.send("Tracing.end")
    while not done:
        page.wait_for_timeout(20)
    return list(_find_calls(events, doing))


def _find_calls(events: list[dict[str, Any]], doing: str) -> Iterator[Call]:
    for event in events:
        data = event.get("args", {}).get("data", {})
        url = str(data.get("url") or data.get("fileName") or "")
        if event["name"] in ENTRY_POINTS and "/static/" in url and "tdur" in event:
            name = url.rpartition("/static/")[2].partition("/")[2]
            where = f"{name} {data.get('functionName') or event['name']}"
            yield Call(doing, where, event["tdur"] / 1000)


def measure(served: Served) -> list[Call]:
    """Sign in, and walk through every story with a warm cache."""
    calls: list[Call] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=FLAGS
        )
        context = browser.new_context(base_url=served.url, viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(served.signin_link)
        page.get_by_role("button", name="Sign in").click()
        devtools = browser.new_browser_cdp_session()
        for doing, story in STORIES:
            calls += trace(devtools, page, doing, story)
            devtools.detach()
            devtools = browser.new_browser_cdp_session()
        browser.close()
    return calls


def report(calls: list[Call], top: int) -> bool:
    """Print the slowest of each story; return whether all are below the bar."""
    for doing, _ in STORIES:
        found = sorted((call for call in calls if call.doing == doing), key=lambda c: -c.cpu_ms)
        sys.stdout.write(f"{doing}: {len(found)} calls\n")
        for call in found[:top]:
            sys.stdout.write(f"  {call.cpu_ms:7.1f} ms  {call.where}\n")
    slowest = max((call.cpu_ms for call in calls), default=0.0)
    sys.stdout.write(f"{slowest:.1f} ms for the slowest of {len(calls)}; the bar is {BAR_MS:g}\n")
    return bool(calls) and slowest <= BAR_MS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make bench handlers", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--top", type=int, default=3, help="how many to print of each story")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        made = refract("demo", "--data-dir", str(data))
        if made.returncode:
            sys.stderr.write(made.stderr)
            return 1
        with serving(data) as served:
            return 0 if report(measure(served), options.top) else 1
