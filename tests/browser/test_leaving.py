"""Ways out of a form to another site, which the policy `form-action 'self'` must not block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leaving") / "data"


@pytest.fixture(scope="module")
def site(data_dir: Path) -> Iterator[Served]:
    with serving(data_dir) as served:
        yield served


@pytest.fixture(scope="module")
def elsewhere(gallery_url: str) -> str:
    """A page on another origin: the same machine by another name."""
    return gallery_url.replace("127.0.0.1", "localhost") + "/sample/landing"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def owner(chromium: Browser, site: Served, elsewhere: str) -> AsyncIterator[BrowserContext]:
    context = await chromium.new_context(base_url=site.url)
    page = await context.new_page()
    await page.goto(site.signin_link)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(f"{site.url}/")
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in await context.cookies())
    async with httpx.AsyncClient(
        base_url=site.url, headers={"Origin": site.url, "Cookie": cookies}, timeout=PATIENCE
    ) as client:
        for name, visibility in (("there", "unlisted"), ("members", "secure")):
            answer = await client.post(
                "/api/v1/links",
                json={"destination": elsewhere, "names": [name], "visibility": visibility},
            )
            assert answer.status_code == 201, answer.text
    yield context
    await context.close()


async def test_a_name_typed_into_the_command_bar_opens(
    owner: BrowserContext, elsewhere: str
) -> None:
    page = await owner.new_page()
    await page.goto("/")
    await page.keyboard.press("/")
    await page.keyboard.type("there")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(elsewhere)


async def test_a_name_opens_without_script(
    chromium: Browser, owner: BrowserContext, site: Served, elsewhere: str
) -> None:
    context = await chromium.new_context(base_url=site.url, java_script_enabled=False)
    await context.add_cookies(await owner.cookies())  # type: ignore[arg-type]  # what was returned
    page = await context.new_page()
    await page.goto("/app/links")
    await page.locator("#omnibox").fill("there")
    await page.locator("#omnibox").press("Enter")
    await expect(page).to_have_url(elsewhere)
    await context.close()


async def test_a_sign_in_on_the_way_to_a_secure_link_leads_to_its_destination(
    chromium: Browser, owner: BrowserContext, site: Served, data_dir: Path, elsewhere: str
) -> None:
    context = await chromium.new_context(base_url=site.url)
    page = await context.new_page()
    await page.goto("/members")
    await expect(page).to_have_url(f"{site.url}/auth/sign-in")
    await expect(page.locator("main")).to_contain_text(
        "/members is restricted. Sign in to open it."
    )
    await page.goto(_new_signin_link(site, data_dir))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(elsewhere)
    await context.close()


def _new_signin_link(site: Served, data_dir: Path) -> str:
    made = refract("signin-link", "--data-dir", str(data_dir))
    assert made.returncode == 0, made.stderr
    return next(word for word in made.stdout.split() if word.startswith(site.url))
