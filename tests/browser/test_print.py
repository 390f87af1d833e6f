"""Pages on paper."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def paper(chromium: Browser, gallery_url: str) -> AsyncIterator[Page]:
    context = await chromium.new_context(base_url=gallery_url, color_scheme="dark")
    page = await context.new_page()
    await page.emulate_media(media="print")
    yield page
    await context.close()


@pytest.mark.parametrize("name", ["item", "library", "home-full"])
async def test_the_frame_does_not_print(paper: Page, name: str) -> None:
    await paper.goto(f"/sample/{name}")
    for part in (".topbar", ".rail", "#toasts", "#omnibox"):
        await expect(paper.locator(part).first).to_be_hidden()
    await expect(paper.locator("h1, .item, .row").first).to_be_visible()


async def test_the_reader_prints_from_the_edge_in_dark_ink(paper: Page) -> None:
    await paper.goto("/sample/item")
    box = await paper.locator(".reader h1").bounding_box()
    assert box is not None
    assert box["x"] < 40
    assert box["y"] < 60
    ink = await paper.evaluate("getComputedStyle(document.body).color")
    assert all(int(part) < 80 for part in ink.removeprefix("rgb(").removesuffix(")").split(","))
