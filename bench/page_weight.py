"""P11: what the first visit to the start page costs, in bytes as they cross the network, and whom
it talks to.

    python -m bench page_weight                           the sample start page
    python -m bench page_weight https://go.example.com/   a running server, signed out
    python -m bench page_weight https://go.example.com/ --cookie "session=…"            signed in

A real browser with an empty cache counts bodies and response headers. Exit status 1 when over the
budget or when another host is asked.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from playwright.sync_api import sync_playwright

BUDGET_KB = 80
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


@dataclass
class Asked:
    """One file the page wanted: how big it is, and how big it was on the wire."""

    url: str
    kind: str
    encoding: str = "-"
    unpacked: int = 0
    sent: int = 0


def visit(url: str, cookie: str | None) -> list[Asked]:
    """Load the page once with nothing cached, and list everything that came."""
    asked: dict[str, Asked] = {}

    def begin(event: dict[str, Any]) -> None:
        asked[event["requestId"]] = Asked(
            event["request"]["url"], event.get("type", "Other").lower()
        )

    def head(event: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in event["response"]["headers"].items()}
        asked[event["requestId"]].encoding = headers.get("content-encoding", "-")

    def body(event: dict[str, Any]) -> None:
        asked[event["requestId"]].unpacked += event["dataLength"]

    def end(event: dict[str, Any]) -> None:
        # Only this total is true for every kind of file: the chunks of a document report nothing as
        # sent.
        asked[event["requestId"]].sent = int(event["encodedDataLength"])

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=FLAGS
        )
        context = browser.new_context()
        if cookie:
            name, _, value = cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": url}])
        page = context.new_page()
        devtools = context.new_cdp_session(page)
        devtools.send("Network.enable")
        devtools.on("Network.requestWillBeSent", begin)
        devtools.on("Network.responseReceived", head)
        devtools.on("Network.dataReceived", body)
        devtools.on("Network.loadingFinished", end)
        page.goto(url, wait_until="networkidle")
        browser.close()
    files = list(asked.values())
    unweighed = [
        file.url
        for file in files
        if not file.sent and urlsplit(file.url).scheme in {"http", "https"}
    ]
    if unweighed:
        raise SystemExit(
            f"No size was reported for {', '.join(unweighed)}: the total would be too small."
        )
    return files


def report(files: list[Asked], host: str | None) -> bool:
    """Print the table; true when within the budget and alone."""
    for file in files:
        parts = urlsplit(file.url)
        sys.stdout.write(
            f"{file.sent:>8,}  {file.unpacked:>8,}  {file.encoding:<6} {file.kind:<12}"
            f" {parts.path or file.url[:40]}\n"
        )
    sent = sum(file.sent for file in files)
    strangers = {
        urlsplit(file.url).hostname
        for file in files
        if urlsplit(file.url).scheme in {"http", "https"}
    } - {host}
    sys.stdout.write(
        f"{sent:>8,}  bytes sent in {len(files)} requests; budget {BUDGET_KB * 1000:,}\n"
    )
    sys.stdout.write(f"{len(strangers):>8}  other hosts {sorted(map(str, strangers)) or ''}\n")
    return sent <= BUDGET_KB * 1000 and not strangers


@contextmanager
def sample_server() -> Iterator[str]:
    """The gallery of the browser tests, when no server is given."""
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
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make bench page_weight", description="Weigh the start page."
    )
    parser.add_argument(
        "url", nargs="?", help="the page of a running server; left out: the sample start page"
    )
    parser.add_argument("--cookie", help="name=value of a session")
    options = parser.parse_args(arguments)
    if options.url:
        return (
            0 if report(visit(options.url, options.cookie), urlsplit(options.url).hostname) else 1
        )
    with sample_server() as url:
        return 0 if report(visit(url, None), urlsplit(url).hostname) else 1
