"""Limits per user on concurrent live streams and exports.

The finding: 200 streams and 4 exports per process were first come, first served; one user could
take them all.
"""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.concurrency_limits import UserConcurrencyLimits
from refract.identity.errors import ExportLimitReached, StreamLimitReached
from refract.identity.models import User
from tests import make
from tests.client import by_key, on_sqlite

pytestmark = on_sqlite


async def test_a_sixth_stream_is_refused_and_another_person_is_not(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    shares = rt.singleton(UserConcurrencyLimits)
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
        key = by_key(await make.key(session, rt, ada))
    streams = [shares.count_stream(ada.id) for _ in range(5)]
    for stream in streams:
        stream.__enter__()

    refused = await client.get(f"/api/v1/links/{link.id}/stats/live", headers=key)

    assert (refused.status_code, refused.json()["code"]) == (429, "STREAM_LIMIT_REACHED")
    with (
        shares.count_stream(bob.id),
        pytest.raises(StreamLimitReached),
        shares.count_stream(ada.id),
    ):
        pass
    for stream in streams:
        stream.__exit__(None, None, None)
    with shares.count_stream(ada.id):
        pass


@pytest.mark.parametrize(
    "path", ["/api/v1/me/export", "/api/v1/library/export", "/api/v1/links/{id}/stats/export"]
)
async def test_a_second_export_is_refused_until_the_first_is_done(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, path: str
) -> None:
    shares = rt.singleton(UserConcurrencyLimits)
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
        key = by_key(await make.key(session, rt, ada))
    asked = path.format(id=link.id)
    with shares.count_export(ada.id), shares.count_export(bob.id):
        refused = await client.get(asked, headers=key)
        with pytest.raises(ExportLimitReached), shares.count_export(bob.id):
            pass

    assert (refused.status_code, refused.json()["code"]) == (429, "EXPORT_LIMIT_REACHED")
    for _ in range(2):
        assert (await client.get(asked, headers=key)).status_code == 200
