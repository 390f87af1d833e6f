"""Wide screens: one centred column of at most 1,280 px, its heading and content on one axis."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

MAX_COLUMN = 1280
COLUMN = """() => {
  const box = (element) => element.getBoundingClientRect();
  const page = document.querySelector('.page');
  const style = getComputedStyle(page);
  const left = box(page).left + Number.parseFloat(style.paddingLeft);
  const right = box(page).right - Number.parseFloat(style.paddingRight);
  const start = box(document.querySelector('.rail')).right;
  return {width: right - left, before: left - start,
          after: document.body.getBoundingClientRect().right - right};
}"""
AXES = """() => ['.page h1', '.page .card'].map(
  (one) => document.querySelector(one).getBoundingClientRect().left)"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(chromium: Browser, gallery_url: str) -> AsyncIterator[Page]:
    context = await chromium.new_context(
        base_url=gallery_url, viewport={"width": 1920, "height": 1000}, reduced_motion="reduce"
    )
    yield await context.new_page()
    await context.close()


@pytest.mark.parametrize(
    "name", ["home-full", "links", "link", "lists", "library", "tags", "settings", "rules", "admin"]
)
async def test_the_column_is_centred(page: Page, name: str) -> None:
    await page.goto(f"/sample/{name}")
    column = await page.evaluate(COLUMN)
    assert column["width"] <= MAX_COLUMN
    assert column["before"] == pytest.approx(column["after"], abs=1)


@pytest.mark.parametrize("name", ["rules", "imports", "share"])
async def test_heading_and_card_share_an_axis(page: Page, name: str) -> None:
    await page.goto(f"/sample/{name}")
    heading, card = await page.evaluate(AXES)
    assert heading == card


async def test_the_backdrop_of_a_dialog_covers_the_page_to_its_edge(page: Page) -> None:
    await page.goto("/sample/settings")
    await page.keyboard.type("?")
    width = await page.evaluate("document.documentElement.clientWidth")
    assert await page.evaluate("document.body.getBoundingClientRect().right") == width
