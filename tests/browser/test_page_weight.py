"""The bytes of a first visit, as a browser with an empty cache receives them."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from bench.page_weight import BUDGETS, load_page

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("path", BUDGETS)
async def test_a_first_visit_is_within_its_budget(
    chromium: Browser, gallery_url: str, path: str
) -> None:
    files = await load_page(chromium, gallery_url + path)
    assert {file.host for file in files if file.host} == {"127.0.0.1"}
    assert sum(file.sent for file in files) <= BUDGETS[path]
