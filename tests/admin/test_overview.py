"""The overview of an instance, the same on three databases."""

import re
from datetime import timedelta

from httpx import AsyncClient

from refract.admin.overview import TREND_DAYS, load_overview
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie
from tests.people import root

__all__ = ["root"]


async def test_new_links_by_day_storage_and_versions(
    rt: Runtime, client: AsyncClient, root: User, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, root, name="old")
    clock.advance(timedelta(days=2).total_seconds())
    async with rt.db.write() as session:
        for name in ("one", "two"):
            await make.link(session, rt, root, name=name)
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}

    found = await load_overview(rt)

    assert list(found.new_links) == [0] * (TREND_DAYS - 3) + [1, 0, 2]
    assert sum(found.new_people) == 1
    assert found.database_bytes > 0
    assert 0 < found.disk_free <= found.disk_size
    assert re.fullmatch(r"(SQLite|PostgreSQL|MariaDB) \d+(\.\d+)*", found.versions[-1])
    page = (await client.get("/app/admin", headers=browser)).text
    assert found.versions[-1] in page
    assert "New links" in page
