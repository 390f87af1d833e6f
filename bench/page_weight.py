"""P11: what a first visit costs, in bytes as they cross the network, and which hosts it asks.

    python -m bench page_weight                           the sample start page, then analytics
    python -m bench page_weight https://go.example.com/   a running server, signed out
    python -m bench page_weight https://go.example.com/ --cookie "session=…"            signed in

A real browser with an empty cache counts bodies and response headers. Exit status 1 when over the
budget or when another host is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from playwright.async_api import Browser, async_playwright

BUDGETS = {"/": 90_000, "/sample/analytics": 120_000}
"""Bytes of a first visit by the path of a sample page. Other pages have the budget of `/`."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


@dataclass
class LoadedFile:
    """A file that a page requested: its size, and its bytes on the network."""

    url: str
    kind: str
    encoding: str = "-"
    unpacked: int = 0
    sent: int = 0

    @property
    def host(self) -> str | None:
        """The host that was asked, or None for data in the page itself."""
        parts = urlsplit(self.url)
        return parts.hostname if parts.scheme in {"http", "https"} else None


async def load_page(browser: Browser, url: str, cookie: str | None = None) -> list[LoadedFile]:
    """Load a page with an empty cache, and return every file that it requested."""
    files: dict[str, LoadedFile] = {}

    def begin(event: dict[str, Any]) -> None:
        files[event["requestId"]] = LoadedFile(
            event["request"]["url"], event.get("type", "Other").lower()
        )

    def read_head(event: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in event["response"]["headers"].items()}
        files[event["requestId"]].encoding = headers.get("content-encoding", "-")

    def add_part(event: dict[str, Any]) -> None:
        files[event["requestId"]].unpacked += event["dataLength"]

    def finish(event: dict[str, Any]) -> None:
        # The chunks of a document report nothing as sent; this total is right for every file.
        files[event["requestId"]].sent = int(event["encodedDataLength"])

    context = await browser.new_context()
    if cookie:
        name, _, value = cookie.partition("=")
        await context.add_cookies([{"name": name, "value": value, "url": url}])
    page = await context.new_page()
    devtools = await context.new_cdp_session(page)
    await devtools.send("Network.enable")
    devtools.on("Network.requestWillBeSent", begin)
    devtools.on("Network.responseReceived", read_head)
    devtools.on("Network.dataReceived", add_part)
    devtools.on("Network.loadingFinished", finish)
    await page.goto(url, wait_until="networkidle")
    await context.close()
    unweighed = [file.url for file in files.values() if file.host and not file.sent]
    if unweighed:
        raise SystemExit(
            f"No size was reported for {', '.join(unweighed)}: the total would be too small."
        )
    return list(files.values())


def report_page(url: str, files: Sequence[LoadedFile]) -> bool:
    """Print the files of a page; return whether it is within its budget and asks no other host."""
    for file in files:
        sys.stdout.write(
            f"{file.sent:>8,}  {file.unpacked:>8,}  {file.encoding:<6} {file.kind:<12}"
            f" {urlsplit(file.url).path or file.url[:40]}\n"
        )
    sent = sum(file.sent for file in files)
    budget = BUDGETS.get(urlsplit(url).path, BUDGETS["/"])
    others = {file.host for file in files if file.host} - {urlsplit(url).hostname}
    sys.stdout.write(f"{sent:>8,}  bytes sent in {len(files)} requests; budget {budget:,}\n")
    sys.stdout.write(f"{len(others):>8}  other hosts {sorted(map(str, others)) or ''}\n")
    return sent <= budget and not others


async def weigh_pages(urls: Sequence[str], cookie: str | None) -> bool:
    """Load and report pages; return whether all of them are within their budgets."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=FLAGS
        )
        results = [report_page(url, await load_page(browser, url, cookie)) for url in urls]
        await browser.close()
    return all(results)


@contextmanager
def sample_server() -> Iterator[str]:
    """Serve the gallery of the browser tests; yield its origin."""
    from tests.browser.gallery import (  # noqa: PLC0415 - a real server needs no tests
        gallery,
    )

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(gallery(), log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make bench page_weight", description="Weigh the first visit to a page."
    )
    parser.add_argument(
        "url", nargs="?", help="the page of a running server; left out: sample pages"
    )
    parser.add_argument("--cookie", help="name=value of a session")
    options = parser.parse_args(arguments)
    if options.url:
        return 0 if asyncio.run(weigh_pages([options.url], options.cookie)) else 1
    with sample_server() as origin:
        return 0 if asyncio.run(weigh_pages([origin + path for path in BUDGETS], None)) else 1
