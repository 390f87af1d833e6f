"""Fixtures: a server thread and a browser per session."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import uvicorn
from playwright.async_api import Browser, async_playwright, expect

from tests.browser.gallery import gallery
from tests.waiting import PATIENCE, eventually_blocking

expect.set_options(
    timeout=1000 * PATIENCE
)  # five seconds, unless told otherwise: too few on a busy machine

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def gallery_url() -> Iterator[str]:
    """The URL of the sample pages."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(gallery(), log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    eventually_blocking(lambda: server.started)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """The system's Chromium, whose start takes longer than most tests.

    Whoever uses it makes a context and closes it. The synchronous API leaves a loop that breaks
    async tests.
    """
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=FLAGS
        )
        yield browser
        await browser.close()
