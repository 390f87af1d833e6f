"""Pages of tags, shared and personal."""

import re
from html import unescape

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.tags import personal_tags
from refract.tags.pages import PER_PAGE
from tests import make
from tests.client import by_cookie, on_sqlite

pytestmark = on_sqlite


@pytest.mark.parametrize("here", ["/app/tags", "/app/tags/mine"])
async def test_turning_the_page_keeps_what_was_searched_for(
    client: AsyncClient, rt: Runtime, ada: User, here: str
) -> None:
    """The cursor belongs to its query, and would be rejected without the search text."""
    names = [f"blue {number:03}" for number in range(PER_PAGE + 1)] + ["red 0"]
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
        if here.endswith("mine"):
            await personal_tags.ensure_tags(session, rt.ids, ada.id, names, rt.clock.now())
        else:
            for start in range(0, len(names), 20):
                await make.link(session, rt, ada, tags=names[start : start + 20])
    first = (await client.get(here, params={"q": "blue", "sort": "name"}, headers=cookie)).text
    further = re.search(rf'href="({here}\?[^"]*cursor=[^"]+)"', first)
    assert further

    second = await client.get(unescape(further[1]), headers=cookie)

    assert second.status_code == 200
    assert re.findall(r"blue (\d{3})</a>", second.text) == [f"{PER_PAGE:03}"]


async def test_tags_of_links_lead_to_their_analytics(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
        await make.link(session, rt, ada, name="both", tags=["C++ & Co"])
        await personal_tags.ensure_tags(session, rt.ids, ada.id, ["mine"], rt.clock.now())

    page = (await client.get("/app/tags", headers=cookie)).text

    href = re.search(r'href="(/app/analytics\?tag=[^"]+)" title="Analytics"', page)
    assert href
    assert "C++ &amp; Co" in (await client.get(unescape(href[1]), headers=cookie)).text
    mine = (await client.get("/app/tags/mine", headers=cookie)).text
    assert "/app/analytics?tag=" not in mine
