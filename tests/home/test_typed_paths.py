"""What the omnibox opens stays on this host (security finding "Low": `//evil.test` was answered `303 Location: //evil.test`)."""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.people import ada

__all__ = ["ada"]


@on_sqlite
@pytest.mark.parametrize(
    ("typed", "location"),
    [
        ("/road", "/road"),
        ("//evil.test", "/evil.test"),
        ("////evil.test/x", "/evil.test/x"),
        ("/\\evil.test", "/%5Cevil.test"),
        ("//", "/"),
    ],
)
async def test_a_typed_path_stays_on_this_host(client: AsyncClient, rt: Runtime, ada: User, typed: str, location: str) -> None:
    async with rt.db.write() as session:
        headers = by_cookie(rt, await make.cookie(session, rt, ada))

    answer = await client.post("/app/omnibox", headers=headers, data={"q": typed})

    assert (answer.status_code, answer.headers["location"]) == (303, location)
