"""The cookie of anonymous forms (finding: a sibling subdomain could plant it)."""

from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.runtime import Runtime
from tests.client import client_of, on_sqlite
from tests.conftest import make_settings

pytestmark = on_sqlite


@pytest.fixture(params=["http://go.test", "https://go.test"])
async def stranger(rt: Runtime, request: pytest.FixtureRequest) -> AsyncIterator[AsyncClient]:
    rt.settings = make_settings(
        rt.settings.data_dir, base_url=request.param, database_url=rt.settings.database_url
    )
    app = WebNode(rt)
    async with client_of(app) as client:
        yield client
    assert app.engine is not None
    app.engine.spool.close()


async def test_it_belongs_to_this_host_alone_where_browsers_can_see_to_that(
    rt: Runtime, stranger: AsyncClient
) -> None:
    prefix = "__Host-" if rt.settings.https else ""
    page = await stranger.get("/auth/sign-in", headers={"Accept": "text/html"})

    (cookie,) = [line for line in page.headers.get_list("set-cookie") if "refract_visit=" in line]
    assert cookie.startswith(f"{prefix}refract_visit=")
    assert ("Secure" in cookie, "Path=/;" in cookie, "Domain" in cookie) == (
        rt.settings.https,
        True,
        False,
    )
    again = await stranger.get(
        "/auth/sign-in", headers={"Accept": "text/html", "Cookie": cookie.partition(";")[0]}
    )
    assert not [
        line for line in again.headers.get_list("set-cookie") if "refract_visit=" in line
    ]  # it was read
