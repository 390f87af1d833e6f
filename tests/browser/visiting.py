"""A real server and a signed-in browser for stories, with its console errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Dialog, Page, expect

from tests.serving import Served, serving
from tests.waiting import PATIENCE

WATCH = """window.refused = [];
document.addEventListener('securitypolicyviolation', (e) =>
  refused.push(e.violatedDirective + ' ' + e.blockedURI))"""

PAYLOADS = [
    "<script>window.ran=1</script>",
    '"><img src=x onerror="window.ran=1">',
    "'-window.ran=1-'",
    "{{constructor.constructor('window.ran=1')()}}",
    "</textarea></title></style><svg onload=window.ran=1>",
]
"""Payloads that must never run, for several contexts."""


class Visit:
    """A signed-in browser and its console errors."""

    def __init__(self, context: BrowserContext, page: Page, site: Served) -> None:
        self.context = context
        self.page = page
        self.site = site
        self.complaints: list[str] = []
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        page.on("dialog", self._interrupted)
        page.on("pageerror", lambda wrong: self.complaints.append(str(wrong)))
        page.on(
            "request",
            lambda asked: (
                self.complaints.append(asked.url)
                if not asked.url.startswith((site.url, "data:"))
                else None
            ),
        )

    async def _interrupted(self, shown: Dialog) -> None:
        self.complaints.append(f"a dialog: {shown.message}")
        await shown.dismiss()

    async def ask(
        self, method: str, path: str, *, stranger: bool = False, key: str | None = None, **body: Any
    ) -> httpx.Response:
        """Send a request like the page's, with its cookie and origin; or as another caller."""
        cookies = "; ".join(f"{one['name']}={one['value']}" for one in await self.context.cookies())
        headers = (
            {"X-API-Key": key}
            if key
            else {}
            if stranger
            else {"Origin": self.site.url, "Cookie": cookies}
        )
        async with httpx.AsyncClient(
            base_url=self.site.url, headers=headers, timeout=PATIENCE
        ) as client:
            return await client.request(method, path, json=body or None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("stories") / "data") as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def visit(chromium: Browser, site: Served) -> AsyncIterator[Visit]:
    """A browser for all stories, signed in by the link that the first start prints."""
    context = await chromium.new_context(
        base_url=site.url, viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
    )
    await context.add_init_script(WATCH)
    page = await context.new_page()
    await page.goto(site.signin_link)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(f"{site.url}/")
    yield Visit(context, page, site)
    await context.close()


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def silent(visit: Visit) -> AsyncIterator[None]:
    """Fail a story that leaves a console error, a CSP violation or a foreign request."""
    visit.complaints.clear()
    yield
    assert visit.complaints == []
    assert await visit.page.evaluate("window.refused ?? []") == []
